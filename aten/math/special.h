// xlogy, xlog1py, logaddexp, logaddexp2, sinpi, cospi, sinc.
#pragma once

#include <taeda/aten/math/compare.h>
#include <taeda/aten/math/exp.h>
#include <taeda/aten/math/inverse_trig.h>
#include <taeda/aten/math/log.h>
#include <taeda/aten/math/rounding.h>
#include <taeda/aten/math/trig.h>

namespace taeda::math {

template <Floating T>
TAEDA_FN T xlogy(T x, T y) {
  const T product = x * log(y);
  const T value = x == T(0) ? T(0) : product;
  return y != y ? y : value;
}
template <Floating T>
TAEDA_FN T xlog1py(T x, T y) {
  const T product = x * log1p(y);
  const T value = x == T(0) ? T(0) : product;
  return y != y ? y : value;
}

// log(e^a + e^b)
template <Floating T>
TAEDA_FN T logaddexp(T a, T b) {
  const T larger = maximum(a, b);
  const T difference = -fabs_of(a - b);
  const T sum = larger + log1p(exp(difference));
  return a == b && is_inf(a) ? a : sum;
}
// log2(2^a + 2^b)
template <Floating T>
TAEDA_FN T logaddexp2(T a, T b) {
  constexpr T log2_e = T(0x1.71547652b82fep0);
  const T larger = maximum(a, b);
  const T difference = -fabs_of(a - b);
  const T sum = larger + log1p(exp2(difference)) * log2_e;
  return a == b && is_inf(a) ? a : sum;
}

// sin(pi x + quadrants pi/2): x - n / 2 is exact, so x has no limit.
template <Floating T>
TAEDA_FN T sinpi_quadrant(T x, BitsOf<T> quadrants) {
  using Pi = PiTraits<T>;
  const T nearest = round(x * T(0.5)) * T(2);
  const T period = x - nearest;  // in [-1, 1]
  const T half = round_small(period * T(2));
  const T rest = period - half * T(0.5);
  const Pair<T> product = two_product(rest, T(2) * Pi::kHalfHigh);
  const T tail = product.low + rest * (T(2) * Pi::kHalfLow);
  const T sine = sin_kernel(product.high, tail);
  const T cosine = cos_kernel(product.high, tail);
  const BitsOf<T> quadrant = low_bits(half) + quadrants;
  const T value = choose_by_bit(sine, cosine, quadrant);
  constexpr int sign_shift = sizeof(T) * 8 - 2;
  const BitsOf<T> sign = (quadrant & 2) << sign_shift;
  return from_bits(to_bits(value) ^ sign);
}
template <Floating T>
TAEDA_FN T sinpi(T x) {
  return sinpi_quadrant(x, BitsOf<T>(0));
}
template <Floating T>
TAEDA_FN T cospi(T x) {
  return sinpi_quadrant(x, BitsOf<T>(1));
}

// sin(pi x) / (pi x)
template <Floating T>
TAEDA_FN T sinc(T x) {
  const T product = x * (T(2) * PiTraits<T>::kHalfHigh);
  const T value = sinpi(x) / product;
  const T infinite = is_inf(x) ? kNan<T> : value;
  return fabs_of(x) < FloatTraits<T>::kTinyArgument ? T(1) : infinite;
}

}  // namespace taeda::math
