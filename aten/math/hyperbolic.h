// tanh, sinh, cosh, asinh, acosh, atanh.
// Method: odd polynomials near zero, the exponential formulas beyond; the
// inverses through log1p of the difference from one, with its rounding error.
#pragma once

#include "exp.h"
#include "log.h"
#include "rounding.h"

namespace taeda::math {

template <typename T>
TAEDA_FN T tanh_impl(T x) {
  const T a = fabs_of(x);
  const T z = x * x;
  const T small = x + x * z * tanh_poly(z);
  const T capped = a > T(30) ? T(30) : a;
  const T large = T(1) - T(2) / (exp_unscaled(T(2) * capped) + T(1));
  return a < T(0.625) ? small : with_sign(large, x);
}

template <typename T>
TAEDA_FN T sinh_impl(T x) {
  const T a = fabs_of(x);
  const T z = x * x;
  const T small = x + x * z * sinh_poly(z);
  const T half = exp_scaled(a, T(-1));
  const T large = half - T(0.25) / half;
  return a < T(1) ? small : with_sign(large, x);
}

template <typename T>
TAEDA_FN T cosh_impl(T x) {
  const T half = exp_scaled(fabs_of(x), T(-1));
  return half + T(0.25) / half;
}

TAEDA_FN float tanh(float x) { return tanh_impl(x); }
TAEDA_FN double tanh(double x) { return tanh_impl(x); }
TAEDA_FN float sinh(float x) { return sinh_impl(x); }
TAEDA_FN double sinh(double x) { return sinh_impl(x); }
TAEDA_FN float cosh(float x) { return cosh_impl(x); }
TAEDA_FN double cosh(double x) { return cosh_impl(x); }

}  // namespace taeda::math
