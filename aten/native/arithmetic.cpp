// What arithmetic refuses before it computes, and the operators that are made
// of others.
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/creation.h>
#include <taeda/gen/native/add.h>
#include <taeda/gen/native/addcdiv.h>
#include <taeda/gen/native/div.h>
#include <taeda/gen/native/floor_divide.h>
#include <taeda/gen/native/fmod.h>
#include <taeda/gen/native/lerp.h>
#include <taeda/gen/native/neg.h>
#include <taeda/gen/native/positive.h>
#include <taeda/gen/native/pow.h>
#include <taeda/gen/native/remainder.h>
#include <taeda/gen/native/rsub.h>
#include <taeda/gen/native/sub.h>
#include <taeda/gen/ops/_cube.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/pow.h>
#include <taeda/gen/ops/reciprocal.h>
#include <taeda/gen/ops/rsqrt.h>
#include <taeda/gen/ops/sqrt.h>

namespace taeda::native {

namespace {

// The factor must be of a kind that the result can hold.
void check_alpha(std::string_view op,
                 const Scalar& alpha,
                 bool integral,
                 bool boolean,
                 bool complex) {
  TAEDA_CHECK(!alpha.is_bool() || boolean,
              op,
              ": Boolean alpha only supported for Boolean results.");
  TAEDA_CHECK(!integral || alpha.is_integral() || alpha.is_bool(),
              op,
              ": For integral input tensors, argument alpha must not be a "
              "floating point number.");
  TAEDA_CHECK(complex || !alpha.is_complex(),
              op,
              ": For non-complex input tensors, argument alpha must not be a "
              "complex number.");
}

bool is_one(const Scalar& alpha) {
  return alpha.kind() == Scalar::Kind::Int && alpha.to_int() == 1;
}

template <class Other>
void check_alpha_of(std::string_view op,
                    const Tensor& self,
                    const Other& other,
                    const Scalar& alpha) {
  if (is_one(alpha)) return;
  ScalarType common = result_type(self, other);
  check_alpha(op,
              alpha,
              is_integral(common, /*include_bool=*/true),
              common == kBool,
              is_complex(common));
}

void refuse_bool(std::string_view op, bool one, bool both) {
  TAEDA_CHECK(!both,
              op,
              ": Subtraction, the `-` operator, with two bool tensors is not "
              "supported. Use the `^` or `logical_xor()` operator instead.");
  TAEDA_CHECK(!one,
              op,
              ": Subtraction, the `-` operator, with a bool tensor is not "
              "supported. If you are trying to invert a mask, use the `~` or "
              "`logical_not()` operator instead.");
}

// Integers have no infinity to answer with. Elsewhere than on the CPU looking
// would wait for the device, whose quotients by 0 are any numbers.
void refuse_zero(std::string_view op, const Tensor& divisor) {
  if (!divisor.is_cpu()) return;
  TAEDA_CHECK(*ops::all(divisor).const_data<bool>(),
              op,
              ": ZeroDivisionError (an integer divisor is 0)");
}

bool integral_pair(const Tensor& a, const Tensor& b) {
  return is_integral(a.dtype(), true) && is_integral(b.dtype(), true);
}

}  // namespace

void check_add(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  check_alpha_of("add", self, other, alpha);
}
void check_add(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  check_alpha_of("add", self, other, alpha);
}

void check_sub(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  bool a = self.dtype() == kBool, b = other.dtype() == kBool;
  refuse_bool("sub", a || b, a && b);
  check_alpha_of("sub", self, other, alpha);
}
void check_sub(const Tensor& self, const Scalar& other, const Scalar& alpha) {
  refuse_bool("sub", self.dtype() == kBool || other.is_bool(), false);
  check_alpha_of("sub", self, other, alpha);
}

void check_neg(const Tensor& self) {
  TAEDA_CHECK(self.dtype() != kBool,
              "neg: Negation, the `-` operator, on a bool tensor is not "
              "supported. If you are trying to invert a mask, use the `~` or "
              "`logical_not()` operator instead.");
}

Tensor positive(const Tensor& self) {
  TAEDA_CHECK(self.dtype() != kBool,
              "positive: The `+` operator, on a bool tensor is not supported.");
  return self;
}

void check_integer_division(const Tensor& self, const Tensor& other) {
  if (integral_pair(self, other)) refuse_zero("div", other);
}
void check_integer_division(const Tensor& self, const Scalar& other) {
  if (!is_integral(self.dtype(), true)) return;
  TAEDA_CHECK(other.is_floating() || other.is_complex() || other.to_int() != 0,
              "div: ZeroDivisionError (an integer divisor is 0)");
}
void check_integer_division(const Scalar& self, const Tensor& other) {
  bool whole = self.is_integral() || self.is_bool();
  if (whole && is_integral(other.dtype(), true)) refuse_zero("div", other);
}

void check_addcdiv(const Tensor& self,
                   const Tensor& tensor1,
                   const Tensor& tensor2,
                   const Scalar& value) {
  (void)self;
  (void)value;
  TAEDA_CHECK(
      !integral_pair(tensor1, tensor2),
      "Integer division with addcdiv is no longer supported; use self + "
      "value * torch.trunc(tensor1 / tensor2) or, for true division, "
      "give tensor1 a floating point dtype");
}

void check_lerp(const Tensor& self, const Tensor& end, const Scalar& weight) {
  (void)weight;
  TAEDA_CHECK(self.dtype() == end.dtype(),
              "lerp: expected dtype ",
              self.dtype(),
              " for `end` but got dtype ",
              end.dtype());
}
void check_lerp(const Tensor& self, const Tensor& end, const Tensor& weight) {
  check_lerp(self, end, Scalar());
  // A weight of no dims takes part in promotion.
  TAEDA_CHECK(weight.dim() == 0 || self.dtype() == weight.dtype(),
              "lerp: expected dtype ",
              self.dtype(),
              " for `weight` but got dtype ",
              weight.dtype());
}

namespace {

template <class A, class B>
void check_mode(const A& self,
                const B& other,
                std::optional<std::string_view> mode) {
  if (!mode) return;
  TAEDA_CHECK(*mode == "trunc" || *mode == "floor",
              "div expected rounding_mode to be one of None, 'trunc', or "
              "'floor' but found '",
              *mode,
              "'");
  check_integer_division(self, other);
}

}  // namespace

void check_div_mode(const Tensor& self,
                    const Tensor& other,
                    std::optional<std::string_view> rounding_mode) {
  check_mode(self, other, rounding_mode);
}
void check_div_mode(const Tensor& self,
                    const Scalar& other,
                    std::optional<std::string_view> rounding_mode) {
  check_mode(self, other, rounding_mode);
}

template <class I>
void pow_scalar_shape(const Spec<I>& self,
                      const Scalar& exponent,
                      Plan<I>& plan) {
  ScalarType common = result_type(self, exponent);
  bool whole = is_integral(common, true);
  TAEDA_CHECK(!whole || exponent.is_bool() || exponent.to_int() >= 0,
              "pow: Integers to negative integer powers are not allowed.");
  plan.set_like(0, self, common);
}
TAEDA_SHAPE(pow_scalar_shape);

void pow_scalar_cpu(const Tensor& self,
                    const Scalar& exponent,
                    const Tensor& out) {
  if (exponent.equal(0.0)) return fill_with(out, Scalar(int64_t{1}));
  if (exponent.equal(1.0)) return copy_into(out, self);
  Tensor base = self.dtype() == out.dtype() ? self : cast(self, out.dtype());
  bool fraction = !is_integral(out.dtype(), true);
  if (exponent.equal(2.0)) {
    ops::mul_out(base, base, out);
  } else if (exponent.equal(3.0)) {
    ops::_cube_out(base, out);
  } else if (fraction && exponent.equal(0.5)) {
    ops::sqrt_out(base, out);
  } else if (fraction && exponent.equal(-0.5)) {
    ops::rsqrt_out(base, out);
  } else if (fraction && exponent.equal(-1.0)) {
    ops::reciprocal_out(base, out);
  } else if (fraction && exponent.equal(-2.0)) {
    ops::mul_out(base, base, out);
    ops::reciprocal_(out);
  } else {
    ops::pow_out(base, wrap_number(exponent), out);
  }
}

Tensor pow_scalar_means(const Tensor& self, const Scalar& exponent) {
  bool stays = self.is_floating_point() && !exponent.is_complex();
  if (stays && exponent.equal(1.0)) return ops::clone(self);
  if (stays && exponent.equal(2.0)) return ops::mul(self, self);
  if (stays && exponent.equal(3.0)) return ops::_cube(self);
  if (stays && exponent.equal(0.5)) return ops::sqrt(self);
  if (stays && exponent.equal(-0.5)) return ops::rsqrt(self);
  if (stays && exponent.equal(-1.0)) return ops::reciprocal(self);
  return ops::pow(self, wrap_number(exponent));
}

}  // namespace taeda::native
