// Connectionist temporal classification (Graves et al., 2006), in log space.
#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_ctc_loss.h>
#include <taeda/gen/native/_ctc_loss_backward.h>
#include <taeda/gen/native/ctc_loss.h>
#include <taeda/gen/ops/_ctc_loss.h>
#include <taeda/gen/ops/_ctc_loss_backward.h>
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
#include <cmath>
#include <limits>

namespace taeda::native {

namespace {

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) + exp(c)), rounded once.
template <class T>
T log_add(T a, T b, T c = kNever<T>) {
  T most = std::max(std::max(a, b), c);
  if (most == kNever<T>) return most;
  T sum = std::exp(a - most) + std::exp(b - most) + std::exp(c - most);
  return most + std::log(sum);
}

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
  TAEDA_CHECK(log_probs.numel() > 0, "ctc_loss: log_probs must not be empty");
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

// One sequence: labels with blanks before, between and behind them are states.
struct Sequence {
  const int64_t* labels;
  int64_t length, steps, blank;
  int64_t states() const { return 2 * length + 1; }
  int64_t label(int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  // Whether a path may go from state s - 2 to s: between unlike labels.
  bool skips(int64_t s) const {
    return s % 2 == 1 && s >= 2 && label(s) != label(s - 2);
  }
};

struct Sequences {
  Tensor labels;
  std::vector<Sequence> all;
};

Sequences sequences_of(const Tensor& targets,
                       IntArrayRef input_lengths,
                       IntArrayRef target_lengths,
                       int64_t blank,
                       int64_t classes) {
  Sequences found{contiguous_as(targets, kLong), {}};
  const int64_t* at = found.labels.const_data<int64_t>();
  for (size_t b = 0; b < input_lengths.size(); ++b) {
    Sequence s{at, target_lengths[b], input_lengths[b], blank};
    for (int64_t i = 0; i < s.length; ++i) {
      TAEDA_CHECK(s.labels[i] >= 0 && s.labels[i] < classes,
                  "ctc_loss: target ",
                  s.labels[i],
                  " out of range for ",
                  classes,
                  " classes");
    }
    found.all.push_back(s);
    at += targets.dim() == 1 ? s.length : targets.sizes()[1];
  }
  return found;
}

// Row-major steps of log_probs [steps, batch, classes] of one sequence.
template <class T>
struct Lattice {
  const T* probs;
  int64_t step;
  T prob(int64_t t, int64_t c) const { return probs[t * step + c]; }
};

// Log probabilities of all beginnings of the sequence, [steps, states]; returns
// its negative log likelihood.
template <class T>
T forward_pass(const Sequence& q, const Lattice<T>& p, T* alpha, int64_t row) {
  if (q.steps == 0) return q.length == 0 ? T(0) : -kNever<T>;
  alpha[0] = p.prob(0, q.blank);
  if (q.length > 0) alpha[1] = p.prob(0, q.labels[0]);
  for (int64_t t = 1; t < q.steps; ++t) {
    const T* from = alpha + (t - 1) * row;
    for (int64_t s = 0; s < q.states(); ++s) {
      T before = s > 0 ? from[s - 1] : kNever<T>;
      T skipped = q.skips(s) ? from[s - 2] : kNever<T>;
      alpha[t * row + s] =
          log_add(from[s], before, skipped) + p.prob(t, q.label(s));
    }
  }
  const T* last = alpha + (q.steps - 1) * row;
  T all = last[q.states() - 1];
  return -(q.length > 0 ? log_add(all, last[q.states() - 2]) : all);
}

// Adds to `sums` [steps, classes], in log space, the paths through each class.
template <class T>
void backward_pass(const Sequence& q,
                   const Lattice<T>& p,
                   const T* alpha,
                   int64_t row,
                   T* sums) {
  int64_t last = q.states() - 1;
  std::vector<T> beta(static_cast<size_t>(q.states()), kNever<T>), next;
  for (int64_t t = q.steps - 1; t >= 0; --t) {
    next = beta;
    for (int64_t s = last; s >= 0; --s) {
      T sum = s + 1 >= last ? T(0) : kNever<T>;
      if (t + 1 < q.steps) {
        const T* from = next.data() + s;
        T after = s < last ? from[1] : kNever<T>;
        bool skips = s + 2 <= last && q.skips(s + 2);
        sum = log_add(from[0], after, skips ? from[2] : kNever<T>);
      }
      int64_t c = q.label(s);
      T value = sum + p.prob(t, c);
      beta[static_cast<size_t>(s)] = value;
      T& total = sums[t * p.step + c];
      total = log_add(total, alpha[t * row + s] + value);
    }
  }
}

template <class F>
void visit_ctc_type(ScalarType t, F&& f) {
  if (t == kFloat) return f(float{});
  if (t == kDouble) return f(double{});
  not_implemented_for("ctc_loss_cpu", t);
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

void _ctc_loss_cpu(const Tensor& log_probs,
                   const Tensor& targets,
                   ArrayRef<int64_t> input_lengths,
                   ArrayRef<int64_t> target_lengths,
                   int64_t blank,
                   bool,
                   const Tensor& out0,
                   const Tensor& out1) {
  Tensor probs = contiguous(log_probs);
  int64_t batch = probs.sizes()[1], classes = probs.sizes()[2];
  Sequences all =
      sequences_of(targets, input_lengths, target_lengths, blank, classes);
  int64_t states = out1.sizes()[2], block = out1.sizes()[1] * states;
  visit_ctc_type(probs.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* loss = out0.mutable_data<T>();
    T* alpha = out1.mutable_data<T>();
    std::fill(alpha, alpha + out1.numel(), kNever<T>);
    parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Lattice<T> p{probs.const_data<T>() + b * classes, batch * classes};
        loss[b] = forward_pass(
            all.all[static_cast<size_t>(b)], p, alpha + b * block, states);
      }
    });
  });
}

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

void _ctc_loss_backward_cpu(const Tensor& grad,
                            const Tensor& log_probs,
                            const Tensor& targets,
                            ArrayRef<int64_t> input_lengths,
                            ArrayRef<int64_t> target_lengths,
                            const Tensor& neg_log_likelihood,
                            const Tensor& log_alpha,
                            int64_t blank,
                            bool zero_infinity,
                            const Tensor& out) {
  Tensor probs = contiguous(log_probs), alpha = contiguous(log_alpha);
  Tensor g = contiguous(grad), loss = contiguous(neg_log_likelihood);
  int64_t batch = probs.sizes()[1], classes = probs.sizes()[2];
  Sequences all =
      sequences_of(targets, input_lengths, target_lengths, blank, classes);
  int64_t states = alpha.sizes()[2], block = alpha.sizes()[1] * states;
  int64_t step = batch * classes;
  fill_with(out, int64_t{0});
  visit_ctc_type(probs.dtype(), [&](auto tag) {
    using T = decltype(tag);
    parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const Sequence& q = all.all[static_cast<size_t>(b)];
        T nll = loss.const_data<T>()[b], unit = g.const_data<T>()[b];
        if (zero_infinity && nll == -kNever<T>) continue;
        Lattice<T> p{probs.const_data<T>() + b * classes, step};
        T* sums = out.mutable_data<T>() + b * classes;
        for (int64_t t = 0; t < q.steps; ++t) {
          std::fill(sums + t * step, sums + t * step + classes, kNever<T>);
        }
        const T* beginnings = alpha.const_data<T>() + b * block;
        backward_pass(q, p, beginnings, states, sums);
        for (int64_t t = 0; t < q.steps; ++t) {
          for (int64_t c = 0; c < classes; ++c) {
            T& value = sums[t * step + c];
            T log_prob = p.prob(t, c);
            value =
                (std::exp(log_prob) - std::exp(value + nll - log_prob)) * unit;
          }
        }
      }
    });
  });
}

namespace {

using Lengths = std::vector<int64_t>;

Lengths list_of(const Tensor& lengths) {
  Tensor t = contiguous_as(lengths, kLong);
  return {t.const_data<int64_t>(), t.const_data<int64_t>() + t.numel()};
}

}  // namespace

std::tuple<Tensor, Tensor> _ctc_loss_of_tensors(const Tensor& log_probs,
                                                const Tensor& targets,
                                                const Tensor& input_lengths,
                                                const Tensor& target_lengths,
                                                int64_t blank,
                                                bool zero_infinity) {
  Lengths steps = list_of(input_lengths), labels = list_of(target_lengths);
  return ops::_ctc_loss(
      log_probs, targets, steps, labels, blank, zero_infinity);
}

Tensor _ctc_loss_backward_of_tensors(const Tensor& grad,
                                     const Tensor& log_probs,
                                     const Tensor& targets,
                                     const Tensor& input_lengths,
                                     const Tensor& target_lengths,
                                     const Tensor& neg_log_likelihood,
                                     const Tensor& log_alpha,
                                     int64_t blank,
                                     bool zero_infinity) {
  Lengths steps = list_of(input_lengths), labels = list_of(target_lengths);
  return ops::_ctc_loss_backward(grad,
                                 log_probs,
                                 targets,
                                 steps,
                                 labels,
                                 neg_log_likelihood,
                                 log_alpha,
                                 blank,
                                 zero_infinity);
}

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
        return cast(lengths, loss.dtype());
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
