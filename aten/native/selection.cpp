// clamp, where, masked_fill: one value or another; and comparisons of whole
// tensors.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/gen/native/allclose.h>
#include <taeda/gen/native/clamp.h>
#include <taeda/gen/native/equal.h>
#include <taeda/gen/native/heaviside.h>
#include <taeda/gen/native/isclose.h>
#include <taeda/gen/native/masked_fill.h>
#include <taeda/gen/native/where.h>
#include <taeda/gen/ops/_clamp_between.h>
#include <taeda/gen/ops/_clamp_numbers.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/bitwise_and.h>
#include <taeda/gen/ops/bitwise_or.h>
#include <taeda/gen/ops/clamp_max.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/isclose.h>
#include <taeda/gen/ops/isfinite.h>
#include <taeda/gen/ops/isnan.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/le.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sub.h>

namespace taeda::native {

namespace {

bool is_complex_bound(const std::optional<Scalar>& s) {
  return s && s->is_complex();
}
bool is_complex_bound(const OptionalTensor& t) {
  return t && t->defined() && t->is_complex();
}
bool given(const std::optional<Scalar>& s) { return s.has_value(); }
bool given(const OptionalTensor& t) { return t && t->defined(); }

// Runs `both`, `low` or `high` with the bounds that are there.
template <class Bound, class Both, class Low, class High>
auto with_bounds(const Tensor& self,
                 const Bound& min,
                 const Bound& max,
                 Both&& both,
                 Low&& low,
                 High&& high) {
  TAEDA_CHECK(given(min) || given(max),
              "torch.clamp: At least one of 'min' or 'max' must not be None");
  TAEDA_CHECK_AS(
      NotImplemented,
      !self.is_complex() && !is_complex_bound(min) && !is_complex_bound(max),
      "clamp is not supported for complex types, got self ",
      self);
  if (given(min) && given(max)) return both(*min, *max);
  return given(min) ? low(*min) : high(*max);
}

template <class Bound>
Tensor clamp_new(const Tensor& self, const Bound& min, const Bound& max) {
  return with_bounds(
      self,
      min,
      max,
      [&](const auto& a, const auto& b) {
        return ops::_clamp_between(self, a, b);
      },
      [&](const auto& a) { return ops::clamp_min(self, a); },
      [&](const auto& b) { return ops::clamp_max(self, b); });
}

template <class Bound>
void clamp_inplace(const Tensor& self, const Bound& min, const Bound& max) {
  with_bounds(
      self,
      min,
      max,
      [&](const auto& a, const auto& b) { ops::_clamp_between_(self, a, b); },
      [&](const auto& a) { ops::clamp_min_(self, a); },
      [&](const auto& b) { ops::clamp_max_(self, b); });
}

template <class Bound>
void clamp_into(const Tensor& self,
                const Bound& min,
                const Bound& max,
                const Tensor& out) {
  with_bounds(
      self,
      min,
      max,
      [&](const auto& a, const auto& b) {
        ops::_clamp_between_out(self, a, b, out);
      },
      [&](const auto& a) { ops::clamp_min_out(self, a, out); },
      [&](const auto& b) { ops::clamp_max_out(self, b, out); });
}

}  // namespace

namespace {

// Whether the bounds leave the dtype as it is, so that they need no promotion.
// Those of 16-bit floats are rounded, which is done to operands.
bool keeps_dtype(const Tensor& self, const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) return false;
  if (self.is_floating_point()) return self.itemsize() > 2;
  bool whole = a.is_integral() && b.is_integral();
  return whole && is_integral(self.dtype(), /*include_bool=*/false);
}

}  // namespace

Tensor clamp(const Tensor& self,
             const std::optional<Scalar>& min,
             const std::optional<Scalar>& max) {
  if (min && max && keeps_dtype(self, *min, *max)) {
    return ops::_clamp_numbers(self, *min, *max);
  }
  return clamp_new(self, min, max);
}
Tensor clamp(const Tensor& self,
             const OptionalTensor& min,
             const OptionalTensor& max) {
  return clamp_new(self, min, max);
}
void clamp_(const Tensor& self,
            const std::optional<Scalar>& min,
            const std::optional<Scalar>& max) {
  clamp_inplace(self, min, max);
}
void clamp_(const Tensor& self,
            const OptionalTensor& min,
            const OptionalTensor& max) {
  clamp_inplace(self, min, max);
}
void clamp_out(const Tensor& self,
               const std::optional<Scalar>& min,
               const std::optional<Scalar>& max,
               const Tensor& out) {
  clamp_into(self, min, max, out);
}
void clamp_out(const Tensor& self,
               const OptionalTensor& min,
               const OptionalTensor& max,
               const Tensor& out) {
  clamp_into(self, min, max, out);
}

namespace {

void check_condition(const Tensor& condition) {
  TAEDA_CHECK(condition.dtype() == kBool || condition.dtype() == kByte,
              "where expected condition to be a boolean tensor, but got a "
              "tensor with dtype ",
              condition.dtype());
}

void check_mask(const Tensor& mask) {
  TAEDA_CHECK(mask.dtype() == kBool,
              "masked_fill_ only supports boolean masks, but got mask with "
              "dtype ",
              mask.dtype());
}

}  // namespace

void check_where(const Tensor& condition, const Tensor&, const Tensor&) {
  check_condition(condition);
}
void check_where(const Tensor& condition, const Tensor&, const Scalar&) {
  check_condition(condition);
}
void check_where(const Tensor& condition, const Scalar&, const Tensor&) {
  check_condition(condition);
}
void check_where(const Tensor& condition, const Scalar&, const Scalar&) {
  check_condition(condition);
}

void check_masked_fill(const Tensor& self,
                       const Tensor& mask,
                       const Scalar& value) {
  check_mask(mask);
  // Numbers outside the range are refused here, also where nothing is filled.
  alignas(16) char element[16];
  value.store(self.dtype(), element);
}
void check_masked_fill(const Tensor& self,
                       const Tensor& mask,
                       const Tensor& value) {
  check_mask(mask);
  TAEDA_CHECK(value.dim() == 0,
              "masked_fill_ only supports a 0-dimensional value tensor, but "
              "got tensor with ",
              value.dim(),
              " dimension(s).");
  TAEDA_CHECK(self.is_complex() || !value.is_complex(),
              "masked_fill: value cannot be converted to type ",
              self.dtype(),
              " without overflow, got one of dtype ",
              value.dtype());
}

void check_heaviside(const Tensor& self, const Tensor& values) {
  TAEDA_CHECK(!self.is_complex() && !values.is_complex(),
              "heaviside is not yet implemented for complex tensors.");
  TAEDA_CHECK(self.dtype() == values.dtype(),
              "heaviside is not yet implemented for tensors with different "
              "dtypes: ",
              self.dtype(),
              " and ",
              values.dtype());
}

Tensor isclose(const Tensor& self,
               const Tensor& other,
               double rtol,
               double atol,
               bool equal_nan) {
  TAEDA_CHECK(self.dtype() == other.dtype(),
              self.dtype(),
              " did not match ",
              other.dtype());
  TAEDA_CHECK(
      rtol >= 0, "rtol must be greater than or equal to zero, but got ", rtol);
  TAEDA_CHECK(
      atol >= 0, "atol must be greater than or equal to zero, but got ", atol);
  Tensor close = ops::eq(self, other);
  bool exact = self.is_floating_point() || self.is_complex();
  if (equal_nan && exact) {
    Tensor both = ops::bitwise_and(ops::isnan(self), ops::isnan(other));
    close = ops::bitwise_or(close, both);
  }
  if (rtol == 0 && atol == 0) return close;
  Tensor a = exact ? self : ops::_to_copy(self, kDouble);
  Tensor b = exact ? other : ops::_to_copy(other, kDouble);
  Tensor allowed = ops::add(ops::abs(ops::mul(b, Scalar(rtol))), Scalar(atol));
  Tensor actual = ops::abs(ops::sub(a, b));
  Tensor near =
      ops::bitwise_and(ops::isfinite(actual), ops::le(actual, allowed));
  return ops::bitwise_or(close, near);
}

bool allclose(const Tensor& self,
              const Tensor& other,
              double rtol,
              double atol,
              bool equal_nan) {
  Tensor close = ops::all(ops::isclose(self, other, rtol, atol, equal_nan));
  return ops::item(close).to_bool();
}

bool equal(const Tensor& self, const Tensor& other) {
  if (self.sizes() != other.sizes()) return false;
  if (self.numel() == 0) return true;
  Tensor same = ops::all(ops::eq(self, other));
  return ops::item(same).to_bool();
}

}  // namespace taeda::native
