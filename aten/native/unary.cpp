// What unary operators with parameters refuse; those made of others.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/gen/native/mvlgamma.h>
#include <taeda/gen/native/polygamma.h>
#include <taeda/gen/native/round.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/lgamma.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/polygamma.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::native {

void check_polygamma(int64_t n, const Tensor& self) {
  (void)self;
  TAEDA_CHECK(n >= 0,
              "polygamma: polygamma(n, x) does not support negative n. Got ",
              n);
}

void polygamma_(const Tensor& self, int64_t n) {
  Tensor result = ops::polygamma(n, self);
  check_castable("polygamma", result.dtype(), self.dtype());
  ops::copy_(self, result);
}

Tensor mvlgamma(const Tensor& self, int64_t p) {
  TAEDA_CHECK(self.dtype() != kBool,
              "mvlgamma: expected a tensor of numbers, got a boolean one");
  TAEDA_CHECK(p >= 1, "mvlgamma: expected p of at least 1, got ", p);
  if (self.is_complex()) not_implemented_for("mvlgamma", self.dtype());
  ScalarType dtype = self.is_floating_point() ? self.dtype() : default_dtype();
  Tensor steps =
      ops::arange(Scalar(p), dtype, std::nullopt, self.device(), std::nullopt);
  Tensor shifted =
      ops::add(ops::unsqueeze(self, -1), ops::mul(steps, Scalar(-0.5)));
  const double log_pi = 1.1447298858494002;
  Tensor sum = ops::sum(ops::lgamma(shifted), IntArrayRef{-1});
  return ops::add(sum, Scalar(0.25 * log_pi * (p * (p - 1))));
}

void check_round_decimals(const Tensor& self, int64_t decimals) {
  if (decimals != 0 && !self.is_floating_point()) {
    not_implemented_for("round", self.dtype());
  }
}

}  // namespace taeda::native
