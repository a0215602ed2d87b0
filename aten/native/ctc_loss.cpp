// Connectionist temporal classification (Graves et al., 2006): shapes, and the
// loss of the negative log likelihoods.
#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/ctc_loss.h>
#include <taeda/gen/native/_ctc_loss.h>
#include <taeda/gen/native/_ctc_loss_backward.h>
#include <taeda/gen/native/ctc_loss.h>
#include <taeda/gen/ops/_ctc_loss.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/ctc_loss.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>
#include <limits>

namespace taeda::native {

namespace {

int64_t longest(IntArrayRef lengths) {
  int64_t most = 0;
  for (int64_t n : lengths) most = std::max(most, n);
  return most;
}

template <class T>
void check_arguments(const T& log_probs,
                     const T& targets,
                     IntArrayRef input_lengths,
                     IntArrayRef target_lengths,
                     int64_t blank) {
  TAEDA_CHECK(log_probs.dim() == 3,
              "ctc_loss: expected log_probs [steps, batch, classes], got ",
              log_probs);
  TAEDA_CHECK(targets.dtype() == kLong || targets.dtype() == kInt,
              "ctc_loss: expected targets of type Long or Int, got ",
              targets.dtype());
  const auto steps = log_probs.sizes()[0], batch = log_probs.sizes()[1];
  TAEDA_CHECK(log_probs.numel() > 0,
              "ctc_loss: log_probs tensor must not be empty");
  TAEDA_CHECK(blank >= 0 && blank < log_probs.sizes()[2],
              "blank must be in label range, got ",
              blank,
              " with ",
              log_probs.sizes()[2],
              " classes");
  TAEDA_CHECK(static_cast<int64_t>(input_lengths.size()) == batch,
              "ctc_loss: input_lengths must be of size batch_size (",
              batch,
              "), got ",
              input_lengths);
  TAEDA_CHECK(static_cast<int64_t>(target_lengths.size()) == batch,
              "ctc_loss: target_lengths must be of size batch_size (",
              batch,
              "), got ",
              target_lengths);
  int64_t labels = 0;
  for (size_t b = 0; b < input_lengths.size(); ++b) {
    TAEDA_CHECK(input_lengths[b] >= 0 && input_lengths[b] <= steps,
                "Expected input_lengths to have value at most ",
                steps,
                ", but got value ",
                input_lengths[b]);
    TAEDA_CHECK(target_lengths[b] >= 0,
                "Expected target_lengths to have value at least 0, but got "
                "value ",
                target_lengths[b]);
    labels += target_lengths[b];
  }
  if (targets.dim() == 1) {
    TAEDA_CHECK(targets.sizes()[0] == labels,
                "Expected targets to have size ",
                labels,
                " at dimension 0, but got size ",
                targets.sizes());
    return;
  }
  TAEDA_CHECK(targets.dim() == 2 && targets.sizes()[0] == batch &&
                  targets.sizes()[1] >= longest(target_lengths),
              "Expected targets to have size [",
              batch,
              ", at least ",
              longest(target_lengths),
              "], but got size ",
              targets.sizes());
}

}  // namespace

template <class I>
void _ctc_loss_shape(const Spec<I>& log_probs,
                     const Spec<I>& targets,
                     ArrayRef<int64_t> input_lengths,
                     ArrayRef<int64_t> target_lengths,
                     int64_t blank,
                     bool,
                     Plan<I>& plan) {
  check_arguments(log_probs, targets, input_lengths, target_lengths, blank);
  I steps = log_probs.sizes()[0], batch = log_probs.sizes()[1];
  plan.set(0, {batch}, log_probs.dtype());
  plan.set(
      1, {batch, steps, 2 * longest(target_lengths) + 1}, log_probs.dtype());
}
TAEDA_SHAPE(_ctc_loss_shape);

template <class I>
void _ctc_loss_backward_shape(const Spec<I>&,
                              const Spec<I>& log_probs,
                              const Spec<I>& targets,
                              ArrayRef<int64_t> input_lengths,
                              ArrayRef<int64_t> target_lengths,
                              const Spec<I>&,
                              const Spec<I>&,
                              int64_t blank,
                              bool,
                              Plan<I>& plan) {
  check_arguments(log_probs, targets, input_lengths, target_lengths, blank);
  plan.set(0, log_probs.sizes(), log_probs.dtype());
}
TAEDA_SHAPE(_ctc_loss_backward_shape);

namespace {

// `lengths` are lists or tensors, of which `divisors` says how many labels each
// loss is divided by, in its dtype and on its device.
template <class L, class F>
Tensor reduced_loss(const Tensor& log_probs,
                    const Tensor& targets,
                    const L& input_lengths,
                    const L& target_lengths,
                    int64_t blank,
                    int64_t reduction,
                    bool zero_infinity,
                    F&& divisors) {
  bool batched = log_probs.dim() == 3;
  Tensor probs = batched ? log_probs : ops::unsqueeze(log_probs, 1);
  Tensor loss = std::get<0>(ops::_ctc_loss(
      probs, targets, input_lengths, target_lengths, blank, zero_infinity));
  if (zero_infinity) {
    Scalar infinity = std::numeric_limits<double>::infinity();
    loss = ops::masked_fill(loss, ops::eq(loss, infinity), Scalar(int64_t{0}));
  }
  if (reduction == 2) return ops::sum(loss);
  if (reduction != 1) return batched ? loss : ops::squeeze(loss, 0);
  return ops::mean(ops::div(loss, divisors(loss)));
}

}  // namespace

Tensor ctc_loss(const Tensor& log_probs,
                const Tensor& targets,
                ArrayRef<int64_t> input_lengths,
                ArrayRef<int64_t> target_lengths,
                int64_t blank,
                int64_t reduction,
                bool zero_infinity) {
  return reduced_loss(
      log_probs,
      targets,
      input_lengths,
      target_lengths,
      blank,
      reduction,
      zero_infinity,
      [&](const Tensor& loss) {
        Tensor lengths = make_tensor("ctc_loss", loss.sizes(), kDouble);
        for (size_t b = 0; b < target_lengths.size(); ++b) {
          lengths.mutable_data<double>()[b] =
              static_cast<double>(std::max<int64_t>(target_lengths[b], 1));
        }
        return ops::_to_copy(
            lengths, loss.dtype(), std::nullopt, loss.device());
      });
}

Tensor ctc_loss(const Tensor& log_probs,
                const Tensor& targets,
                const Tensor& input_lengths,
                const Tensor& target_lengths,
                int64_t blank,
                int64_t reduction,
                bool zero_infinity) {
  auto check_integral = [](const char* name, const Tensor& t) {
    bool fits = !t.is_floating_point() && !t.is_complex() && t.dtype() != kBool;
    TAEDA_CHECK(fits, name, " must be integral");
  };
  check_integral("input_lengths", input_lengths);
  check_integral("target_lengths", target_lengths);
  auto is_wrapped = [](const Tensor& t) {
    return wrapped_or_null(t) != nullptr || meets_python(t);
  };
  if (!is_wrapped(input_lengths) && !is_wrapped(target_lengths)) {
    return ops::ctc_loss(log_probs,
                         targets,
                         list_of(input_lengths),
                         list_of(target_lengths),
                         blank,
                         reduction,
                         zero_infinity);
  }
  return reduced_loss(log_probs,
                      targets,
                      input_lengths,
                      target_lengths,
                      blank,
                      reduction,
                      zero_infinity,
                      [&](const Tensor& loss) {
                        Tensor labels =
                            ops::clamp_min(target_lengths, Scalar(int64_t{1}));
                        return ops::_to_copy(labels, loss.dtype());
                      });
}

}  // namespace taeda::native
