// Unary operators with optional arguments, over private pointwise records.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/gen/native/logit.h>
#include <taeda/gen/native/nan_to_num.h>
#include <taeda/gen/native/polygamma.h>
#include <taeda/gen/native/round.h>
#include <taeda/gen/ops/_logit.h>
#include <taeda/gen/ops/_logit_clamped.h>
#include <taeda/gen/ops/_polygamma.h>
#include <taeda/gen/ops/_replace_nonfinite.h>
#include <taeda/gen/ops/_round_scaled.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/digamma.h>
#include <taeda/gen/ops/polygamma.h>
#include <taeda/gen/ops/round.h>

#include <cmath>
#include <limits>

namespace taeda::native {

namespace {

// The largest finite number of a floating-point type.
double largest(ScalarType t) {
  switch (t) {
    case kHalf:
      return 65504.0;
    case kBFloat16:
      return 0x1.fep127;
    case kDouble:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

}  // namespace

Tensor polygamma(int64_t n, const Tensor& self) {
  TAEDA_CHECK(n >= 0,
              "polygamma: polygamma(n, x) does not support negative n. Got ",
              n);
  return n == 0 ? ops::digamma(self) : ops::_polygamma(self, Scalar(n));
}

void polygamma_(const Tensor& self, int64_t n) {
  Tensor result = ops::polygamma(n, self);
  check_castable("polygamma", result.dtype(), self.dtype());
  ops::copy_(self, result);
}

Tensor nan_to_num(const Tensor& self,
                  std::optional<double> nan,
                  std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (is_integral(self.dtype(), true)) return ops::clone(self);
  double limit = largest(real_type_of(self.dtype()));
  return ops::_replace_nonfinite(self,
                                 Scalar(nan.value_or(0.0)),
                                 Scalar(posinf.value_or(limit)),
                                 Scalar(neginf.value_or(-limit)));
}

Tensor logit(const Tensor& self, std::optional<double> eps) {
  if (!eps || *eps < 0) return ops::_logit(self);
  return ops::_logit_clamped(self, Scalar(*eps));
}

Tensor round_decimals(const Tensor& self, int64_t decimals) {
  if (decimals == 0) return ops::round(self);
  if (!self.is_floating_point()) not_implemented_for("round", self.dtype());
  double scale = std::pow(10.0, static_cast<double>(std::llabs(decimals)));
  return ops::_round_scaled(self, Scalar(scale), decimals < 0);
}

}  // namespace taeda::native
