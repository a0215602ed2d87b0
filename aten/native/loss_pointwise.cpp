// What losses of one element each refuse, and l1_loss.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/formula_support.h>
#include <taeda/gen/native/binary_cross_entropy.h>
#include <taeda/gen/native/huber_loss.h>
#include <taeda/gen/native/l1_loss.h>
#include <taeda/gen/native/smooth_l1_loss.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/sub.h>

namespace taeda::native {

namespace {

// On the CPU alone: elsewhere looking would wait for the device.
void check_probabilities(const Tensor& self) {
  if (!self.is_cpu()) return;
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

}  // namespace

Tensor l1_loss(const Tensor& self, const Tensor& target, int64_t reduction) {
  return reduced_loss(ops::abs(ops::sub(self, target)), reduction);
}

void check_smooth_l1_loss(const Tensor& self,
                          const Tensor& target,
                          int64_t reduction,
                          double beta) {
  (void)self, (void)target, (void)reduction;
  TAEDA_CHECK(beta >= 0,
              "smooth_l1_loss does not support negative values for beta. Got ",
              beta);
}

void check_huber_loss(const Tensor& self,
                      const Tensor& target,
                      int64_t reduction,
                      double delta) {
  (void)self, (void)target, (void)reduction;
  TAEDA_CHECK(delta > 0,
              "huber_loss does not support non-positive values for delta. Got ",
              delta);
}

void check_binary_cross_entropy(const Tensor& self,
                                const Tensor& target,
                                const OptionalTensor& weight,
                                int64_t reduction) {
  (void)weight, (void)reduction;
  TAEDA_CHECK(self.dtype() == target.dtype(),
              "binary_cross_entropy: Found dtype ",
              target.dtype(),
              " but expected ",
              self.dtype());
  if (!self.is_meta()) check_probabilities(self);
}

}  // namespace taeda::native
