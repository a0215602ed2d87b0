// Losses that are a pointwise function of self and target, then reduced.
#include <taeda/aten/iter/copy.h>
#include <taeda/gen/native/binary_cross_entropy.h>
#include <taeda/gen/native/binary_cross_entropy_backward.h>
#include <taeda/gen/native/binary_cross_entropy_with_logits.h>
#include <taeda/gen/native/huber_loss.h>
#include <taeda/gen/native/huber_loss_backward.h>
#include <taeda/gen/native/l1_loss.h>
#include <taeda/gen/native/mse_loss.h>
#include <taeda/gen/native/mse_loss_backward.h>
#include <taeda/gen/native/smooth_l1_loss.h>
#include <taeda/gen/native/smooth_l1_loss_backward.h>
#include <taeda/gen/native/soft_margin_loss.h>
#include <taeda/gen/native/soft_margin_loss_backward.h>
#include <taeda/gen/ops/_bce.h>
#include <taeda/gen/ops/_bce_backward.h>
#include <taeda/gen/ops/_bce_logits.h>
#include <taeda/gen/ops/_bce_logits_weighted.h>
#include <taeda/gen/ops/_huber.h>
#include <taeda/gen/ops/_huber_backward.h>
#include <taeda/gen/ops/_mse.h>
#include <taeda/gen/ops/_mse_backward.h>
#include <taeda/gen/ops/_smooth_l1.h>
#include <taeda/gen/ops/_smooth_l1_backward.h>
#include <taeda/gen/ops/_soft_margin.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/sigmoid.h>
#include <taeda/gen/ops/sign.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>

namespace taeda::native {

namespace {

// The numbers that the Python layer gives for reduction=.
constexpr int64_t kMean = 1, kSum = 2;

Tensor reduced(const Tensor& loss, int64_t reduction) {
  if (reduction == kMean) return ops::mean(loss);
  return reduction == kSum ? ops::sum(loss) : loss;
}

// What a mean divides by; self and target may broadcast each other.
double share(const Tensor& self, const Tensor& target, int64_t reduction) {
  if (reduction != kMean) return 1.0;
  if (self.sizes() == target.sizes()) {
    return 1.0 / static_cast<double>(self.numel());
  }
  double count = 1;
  for (int64_t s :
       broadcast_shapes<int64_t>("loss", self.sizes(), target.sizes())) {
    count *= static_cast<double>(s);
  }
  return 1.0 / count;
}

void check_probabilities(const Tensor& self) {
  Tensor plain = contiguous_as(self, kDouble);
  const double* p = plain.const_data<double>();
  bool inside = true;
  for (int64_t i = 0, n = plain.numel(); i < n; ++i) {
    inside &= !(p[i] < 0.0 || p[i] > 1.0);
  }
  TAEDA_CHECK(inside,
              "binary_cross_entropy: all elements of input should be between "
              "0 and 1");
}

void check_bce_types(const Tensor& self, const Tensor& target) {
  TAEDA_CHECK(self.dtype() == target.dtype(),
              "binary_cross_entropy: Found dtype ",
              target.dtype(),
              " but expected ",
              self.dtype());
}

Tensor weighted(const Tensor& loss, const OptionalTensor& weight) {
  return weight && weight->defined() ? ops::mul(loss, *weight) : loss;
}

}  // namespace

Tensor mse_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced(ops::_mse(self, target), reduction);
}
Tensor mse_loss_backward(const Tensor& grad_output,
                         const Tensor& self,
                         const Tensor& target,
                         int64_t reduction) {
  double norm = 2.0 * share(self, target, reduction);
  return ops::_mse_backward(grad_output, self, target, Scalar(norm));
}

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced(ops::abs(ops::sub(self, target)), reduction);
}

Tensor smooth_l1_loss(const Tensor& self,
                      const Tensor& target,
                      int64_t reduction,
                      double beta) {
  TAEDA_CHECK(beta >= 0,
              "smooth_l1_loss does not support negative values for beta. Got ",
              beta);
  if (beta == 0) return l1_loss(self, target, reduction);
  return reduced(ops::_smooth_l1(self, target, Scalar(beta)), reduction);
}
Tensor smooth_l1_loss_backward(const Tensor& grad_output,
                               const Tensor& self,
                               const Tensor& target,
                               int64_t reduction,
                               double beta) {
  double norm = share(self, target, reduction);
  if (beta == 0) {
    Tensor signs = ops::sign(ops::sub(self, target));
    return ops::mul(ops::mul(signs, grad_output), Scalar(norm));
  }
  return ops::_smooth_l1_backward(
      grad_output, self, target, Scalar(norm), Scalar(beta));
}

Tensor huber_loss(const Tensor& self,
                  const Tensor& target,
                  int64_t reduction,
                  double delta) {
  TAEDA_CHECK(delta > 0,
              "huber_loss does not support non-positive values for delta. Got ",
              delta);
  return reduced(ops::_huber(self, target, Scalar(delta)), reduction);
}
Tensor huber_loss_backward(const Tensor& grad_output,
                           const Tensor& self,
                           const Tensor& target,
                           int64_t reduction,
                           double delta) {
  double norm = share(self, target, reduction);
  return ops::_huber_backward(
      grad_output, self, target, Scalar(norm), Scalar(delta));
}

Tensor binary_cross_entropy(const Tensor& self,
                            const Tensor& target,
                            const OptionalTensor& weight,
                            int64_t reduction) {
  check_bce_types(self, target);
  if (!self.is_meta()) check_probabilities(self);
  return reduced(weighted(ops::_bce(self, target), weight), reduction);
}
Tensor binary_cross_entropy_backward(const Tensor& grad_output,
                                     const Tensor& self,
                                     const Tensor& target,
                                     const OptionalTensor& weight,
                                     int64_t reduction) {
  Tensor grad = weighted(ops::_bce_backward(grad_output, self, target), weight);
  if (reduction != kMean) return grad;
  return ops::mul(grad, Scalar(share(self, target, reduction)));
}

Tensor binary_cross_entropy_with_logits(const Tensor& self,
                                        const Tensor& target,
                                        const OptionalTensor& weight,
                                        const OptionalTensor& pos_weight,
                                        int64_t reduction) {
  bool scaled = pos_weight && pos_weight->defined();
  Tensor loss = scaled ? ops::_bce_logits_weighted(self, target, *pos_weight)
                       : ops::_bce_logits(self, target);
  return reduced(weighted(loss, weight), reduction);
}

Tensor soft_margin_loss(const Tensor& self,
                        const Tensor& target,
                        int64_t reduction) {
  return reduced(ops::_soft_margin(self, target), reduction);
}
Tensor soft_margin_loss_backward(const Tensor& grad_output,
                                 const Tensor& self,
                                 const Tensor& target,
                                 int64_t reduction) {
  Tensor slope = ops::sigmoid(ops::neg(ops::mul(self, target)));
  Tensor grad = ops::neg(ops::mul(ops::mul(grad_output, target), slope));
  if (reduction != kMean) return grad;
  return ops::mul(grad, Scalar(share(self, target, reduction)));
}

}  // namespace taeda::native
