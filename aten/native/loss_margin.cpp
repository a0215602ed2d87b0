// Losses in terms of other operators.
#include <taeda/aten/core/tensor_base.h>
#include <taeda/gen/native/cosine_embedding_loss.h>
#include <taeda/gen/native/hinge_embedding_loss.h>
#include <taeda/gen/native/kl_div.h>
#include <taeda/gen/native/margin_ranking_loss.h>
#include <taeda/gen/native/poisson_nll_loss.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/le.h>
#include <taeda/gen/ops/log.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/rsqrt.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/xlogy.h>
#include <taeda/gen/ops/zeros_like.h>

#include <cmath>

namespace taeda::native {

namespace {

constexpr double kPi = 3.14159265358979323846;

Tensor reduced(const Tensor& loss, int64_t reduction) {
  if (reduction == 1) return ops::mean(loss);
  if (reduction == 2) return ops::sum(loss);
  return loss;
}

Tensor zero_like(const Tensor& t) {
  return ops::zeros_like(
      t, std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt);
}

const Scalar kOne = int64_t{1};

}  // namespace

Tensor kl_div(const Tensor& self,
              const Tensor& target,
              int64_t reduction,
              bool log_target) {
  TAEDA_CHECK(!self.is_complex() && !target.is_complex(),
              "kl_div: complex inputs are not supported");
  TAEDA_CHECK(self.is_floating_point() && target.is_floating_point(),
              "kl_div: expected floating-point input and target, got ",
              self.dtype(),
              " and ",
              target.dtype());
  Tensor loss =
      log_target
          ? ops::mul(ops::exp(target), ops::sub(target, self, kOne))
          : ops::sub(ops::xlogy(target, target), ops::mul(target, self), kOne);
  return reduced(loss, reduction);
}

Tensor margin_ranking_loss(const Tensor& input1,
                           const Tensor& input2,
                           const Tensor& target,
                           double margin,
                           int64_t reduction) {
  Tensor difference = ops::sub(input1, input2, kOne);
  Tensor loss = ops::clamp_min(
      ops::add(ops::mul(ops::neg(target), difference), Scalar(margin), kOne),
      Scalar(int64_t{0}));
  return reduced(loss, reduction);
}

Tensor hinge_embedding_loss(const Tensor& self,
                            const Tensor& target,
                            double margin,
                            int64_t reduction) {
  Tensor zero = zero_like(self);
  Tensor far = ops::clamp_min(ops::add(ops::neg(self), Scalar(margin), kOne),
                              Scalar(int64_t{0}));
  Tensor negative = ops::where(ops::eq(target, Scalar(int64_t{1})), zero, far);
  Tensor positive =
      ops::where(ops::eq(target, Scalar(int64_t{-1})), zero, self);
  return reduced(ops::add(negative, positive, kOne), reduction);
}

Tensor cosine_embedding_loss(const Tensor& input1,
                             const Tensor& input2,
                             const Tensor& target,
                             double margin,
                             int64_t reduction) {
  bool one = target.dim() == 0;
  TAEDA_CHECK(one || target.dim() == 1,
              "0D or 1D target tensor expected, multi-target not supported");
  int64_t rank = one ? 1 : 2;
  TAEDA_CHECK(input1.dim() == rank && input2.dim() == rank,
              one ? "0D" : "1D",
              " target tensor expects ",
              rank,
              "D input tensors, but found inputs with sizes ",
              input1.sizes(),
              " and ",
              input2.sizes(),
              ".");
  constexpr double kEpsilon = 1e-12;
  auto total = [&](const Tensor& a, const Tensor& b) {
    return ops::sum(ops::mul(a, b), IntArrayRef{-1}, false);
  };
  Tensor squares =
      ops::mul(ops::add(total(input1, input1), Scalar(kEpsilon), kOne),
               ops::add(total(input2, input2), Scalar(kEpsilon), kOne));
  Tensor cosine = ops::mul(total(input1, input2), ops::rsqrt(squares));
  Tensor zero = zero_like(cosine);
  Tensor alike = ops::add(ops::neg(cosine), Scalar(1.0), kOne);
  Tensor unlike = ops::clamp_min(ops::sub(cosine, Scalar(margin), kOne),
                                 Scalar(int64_t{0}));
  Tensor loss =
      ops::add(ops::where(ops::eq(target, Scalar(int64_t{1})), alike, zero),
               ops::where(ops::eq(target, Scalar(int64_t{-1})), unlike, zero),
               kOne);
  return reduced(loss, reduction);
}

Tensor poisson_nll_loss(const Tensor& input,
                        const Tensor& target,
                        bool log_input,
                        bool full,
                        double eps,
                        int64_t reduction) {
  Tensor loss =
      log_input
          ? ops::sub(ops::exp(input), ops::mul(target, input), kOne)
          : ops::sub(
                input,
                ops::mul(target, ops::log(ops::add(input, Scalar(eps), kOne))),
                kOne);
  if (full) {
    // Stirling's approximation of log(target!).
    // The derivative by target is added up from the last call to the first: the
    // logarithms' large and opposite parts meet each other before small ones.
    Tensor half =
        ops::mul(ops::log(ops::mul(target, Scalar(2 * kPi))), Scalar(0.5));
    Tensor logs = ops::log(target);
    Tensor term =
        ops::add(ops::sub(ops::mul(target, logs), target, kOne), half, kOne);
    loss = ops::add(
        loss,
        ops::masked_fill(
            term, ops::le(target, Scalar(int64_t{1})), Scalar(int64_t{0})),
        kOne);
  }
  return reduced(loss, reduction);
}

}  // namespace taeda::native
