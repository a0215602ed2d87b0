// What unary operators with parameters refuse; those made of others.
#include <taeda/aten/iter/exact_out.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/gen/native/mvlgamma.h>
#include <taeda/gen/native/nan_to_num.h>
#include <taeda/gen/native/polygamma.h>
#include <taeda/gen/native/round.h>
#include <taeda/gen/ops/_nan_to_num.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/lgamma.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/polygamma.h>
#include <taeda/gen/ops/resolve_conj.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/view_as_complex.h>
#include <taeda/gen/ops/view_as_real.h>

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

Tensor nan_to_num(const Tensor& self,
                  std::optional<double> nan,
                  std::optional<double> posinf,
                  std::optional<double> neginf) {
  if (!self.is_complex()) return ops::_nan_to_num(self, nan, posinf, neginf);
  Tensor parts = ops::view_as_real(ops::resolve_conj(self));
  return ops::view_as_complex(ops::_nan_to_num(parts, nan, posinf, neginf));
}

void nan_to_num_(const Tensor& self,
                 std::optional<double> nan,
                 std::optional<double> posinf,
                 std::optional<double> neginf) {
  if (!self.is_complex()) {
    ops::_nan_to_num_(self, nan, posinf, neginf);
  } else if (self.is_conj()) {
    ops::copy_(self, nan_to_num(self, nan, posinf, neginf));
  } else {
    ops::_nan_to_num_(ops::view_as_real(self), nan, posinf, neginf);
  }
}

void nan_to_num_out(const Tensor& self,
                    std::optional<double> nan,
                    std::optional<double> posinf,
                    std::optional<double> neginf,
                    const Tensor& out) {
  if (self.is_complex()) {
    derived::write_exact(
        "nan_to_num", nan_to_num(self, nan, posinf, neginf), out);
  } else {
    ops::_nan_to_num_out(self, nan, posinf, neginf, out);
  }
}

void check_round_decimals(const Tensor& self, int64_t decimals) {
  if (decimals != 0 && !self.is_floating_point()) {
    not_implemented_for("round", self.dtype());
  }
}

}  // namespace taeda::native
