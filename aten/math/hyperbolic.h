// tanh, sinh, cosh, asinh, acosh, atanh.
// Method: odd polynomials near zero, the exponential formulas beyond; the
// inverses through log1p of the difference from one, with its rounding error.
#pragma once

#include <taeda/aten/math/exp.h>
#include <taeda/aten/math/inverse_trig.h>
#include <taeda/aten/math/log.h>

namespace taeda::math {

template <typename T>
TAEDA_FN T tanh_impl(T x) {
  const T a = fabs_of(x);
  const T z = x * x;
  const T small = x + x * z * tanh_poly(z);
  const T capped = a > T(30) ? T(30) : a;
  const T large = T(1) - T(2) / (exp_unscaled(T(2) * capped) + T(1));
  return with_sign(a < T(0.625) ? small : large, x);
}

template <typename T>
TAEDA_FN T sinh_impl(T x) {
  const T a = fabs_of(x);
  const T z = x * x;
  const T small = x + x * z * sinh_poly(z);
  const Pair<T> half = exp_parts(a, T(-1));
  const T large = half.high + (half.low - T(0.25) / half.high);
  return with_sign(a < T(1) ? small : large, x);
}

template <typename T>
TAEDA_FN T cosh_impl(T x) {
  const Pair<T> half = exp_parts(fabs_of(x), T(-1));
  return half.high + (half.low + T(0.25) / half.high);
}

// log(1 + u + tail); for a > 2^(mantissa bits / 2 + 2), log(2 a) instead.
template <typename T>
TAEDA_FN T log1p_with_tail(T u, T tail, T a) {
  const bool large = a > (sizeof(T) == 4 ? T(0x1p14f) : T(0x1p29));
  const LogSplit<T> split = log_split(large ? a : T(1) + u);
  const T scale = pow2_integral(large ? T(0) : -split.exponent);
  const T f = large ? split.f : (scale - T(1)) + scale * u;
  const T low = large ? T(0) : scale * tail * (T(1) - f + f * f);
  return log_sum(f, split.exponent + (large ? T(1) : T(0)), low);
}

template <typename T>
TAEDA_FN T asinh_impl(T x) {
  const T a = fabs_of(x);
  // u = a + a^2 / (1 + sqrt(1 + a^2)); a large a is not used squared.
  const T safe = a > T(0x1p40) ? T(0x1p40) : a;
  const Pair<T> square = two_product(safe, safe);
  const Pair<T> sum = two_sum(T(1), square.high);
  const T sum_low = sum.low + square.low;
  const T root = sqrt(sum.high);
  const Pair<T> den = fast_two_sum(root, T(1));
  const Pair<T> den_full = {den.high,
                            den.low + sqrt_tail(root, sum.high, sum_low)};
  const Pair<T> ratio = divide_pairs(square, den_full);
  const Pair<T> u = two_sum(safe, ratio.high);
  const T result = log1p_with_tail(u.high, u.low + ratio.low, a);
  const bool keep = a < FloatTraits<T>::kTinyArgument || !(a < kInfinity<T>);
  return keep ? x : with_sign(result, x);
}

template <typename T>
TAEDA_FN T acosh_impl(T x) {
  // u = (x - 1) + sqrt(x^2 - 1)
  const T safe = x > T(0x1p40) ? T(0x1p40) : x;
  const Pair<T> less = two_sum(safe, T(-1));
  const Pair<T> more = two_sum(safe, T(1));
  const Pair<T> product = two_product(less.high, more.high);
  const T product_low =
      product.low + (less.high * more.low + less.low * more.high);
  const T root = sqrt(product.high);
  const T root_low = sqrt_tail(root, product.high, product_low);
  const Pair<T> u = two_sum(less.high, root);
  const T tail = (u.low + less.low) + root_low;
  const T result = log1p_with_tail(u.high, tail, x);
  return x < T(1) ? kNan<T> : (x < kInfinity<T> ? result : x);
}

template <typename T>
TAEDA_FN T atanh_impl(T x) {
  const T a = fabs_of(x);
  const Pair<T> den = fast_two_sum(T(1), -a);
  const Pair<T> num = {T(2) * a, T(0)};
  const Pair<T> u = divide_pairs(num, den);
  const T result = T(0.5) * log1p_with_tail(u.high, u.low, T(0));
  const T outside = a == T(1) ? kInfinity<T> : kNan<T>;
  const T any = a < T(1) ? result : outside;
  return a < FloatTraits<T>::kTinyArgument ? x : with_sign(any, x);
}

TAEDA_FN float tanh(float x) { return tanh_impl(x); }
TAEDA_FN double tanh(double x) { return tanh_impl(x); }
TAEDA_FN float sinh(float x) { return sinh_impl(x); }
TAEDA_FN double sinh(double x) { return sinh_impl(x); }
TAEDA_FN float cosh(float x) { return cosh_impl(x); }
TAEDA_FN double cosh(double x) { return cosh_impl(x); }
TAEDA_FN float asinh(float x) { return asinh_impl(x); }
TAEDA_FN double asinh(double x) { return asinh_impl(x); }
TAEDA_FN float acosh(float x) { return acosh_impl(x); }
TAEDA_FN double acosh(double x) { return acosh_impl(x); }
TAEDA_FN float atanh(float x) { return atanh_impl(x); }
TAEDA_FN double atanh(double x) { return atanh_impl(x); }

}  // namespace taeda::math
