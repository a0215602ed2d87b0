// Trigonometric and hyperbolic functions of complex numbers and their
// inverses: see complex_math.h for the method.
#pragma once

#include <taeda/aten/math/complex_math.h>

namespace taeda::math {

// x, less 20 where e^|x| overflows, and what that takes out: e^20 or 1.
template <Floating T>
TAEDA_FN Pair<T> without_overflow(T x) {
  const bool large = fabs_of(x) > ExpTraits<T>::kHighest - T(2);
  const T reduced = x - with_sign(T(20), x);
  return {large ? reduced : x, large ? exp(T(20)) : T(1)};
}

// Whether x says that the real part is infinite, which y does not tell.
template <Floating T>
TAEDA_FN bool is_endless(T x, T y) {
  return is_inf(x) && !is_finite(y);
}

// sinh x cos y + i cosh x sin y
template <Floating T>
TAEDA_FN Complex<T> sinh(Complex<T> z) {
  const Pair<T> x = without_overflow(z.real());
  const T y = z.imag();
  const T finite = sinh(x.high) * cos_any(y) * x.low;
  const T re = is_endless(z.real(), y) ? kInfinity<T> : finite;
  const T im = cosh(x.high) * sin_any(y) * x.low;
  return {z.real() == T(0) ? z.real() : re, y == T(0) ? y : im};
}
// cosh x cos y + i sinh x sin y
template <Floating T>
TAEDA_FN Complex<T> cosh(Complex<T> z) {
  const Pair<T> x = without_overflow(z.real());
  const T y = z.imag();
  const T finite = cosh(x.high) * cos_any(y) * x.low;
  const T re = is_endless(z.real(), y) ? kInfinity<T> : finite;
  const T im = sinh(x.high) * sin_any(y) * x.low;
  const T zero = flip_sign(flip_sign(T(0), z.real()), y);
  const bool real = z.real() == T(0) || y == T(0);
  return {re, real ? zero : im};
}
// With t = tan y and s = sinh x, (s sqrt(1 + s^2) (1 + t^2) + i t) over
// 1 + (1 + t^2) s^2; for large x the limit and its first correction.
template <Floating T>
TAEDA_FN Complex<T> tanh(Complex<T> z) {
  const T x = z.real();
  const T y = z.imag();
  const T largest = sizeof(T) == 4 ? T(11) : T(22);
  const bool large = fabs_of(x) > largest;
  const T s = sinh(large ? T(0) : x);
  const T t = tan_any(y);
  const T secant = T(1) + t * t;
  const T den = T(1) + secant * s * s;
  const T re = secant * s * sqrt(T(1) + s * s) / den;
  const T im = t / den;
  const T decay = exp(-fabs_of(x));
  const T far = T(4) * sin_any(y) * cos_any(y) * decay * decay;
  const T at_infinity = is_finite(y) ? far : T(0);
  return {large ? with_sign(T(1), x) : re, large ? at_infinity : im};
}
template <Floating T>
TAEDA_FN Complex<T> sin(Complex<T> z) {
  return over_i(sinh(times_i(z)));
}
template <Floating T>
TAEDA_FN Complex<T> cos(Complex<T> z) {
  return cosh(times_i(z));
}
template <Floating T>
TAEDA_FN Complex<T> tan(Complex<T> z) {
  return over_i(tanh(times_i(z)));
}

// sqrt(1 - z) and sqrt(1 + z), the sign of a zero imaginary part kept.
template <Floating T>
TAEDA_FN Complex<T> sqrt_one_minus(Complex<T> z) {
  return sqrt(Complex<T>(T(1) - z.real(), -z.imag()));
}
template <Floating T>
TAEDA_FN Complex<T> sqrt_one_plus(Complex<T> z) {
  return sqrt(Complex<T>(T(1) + z.real(), z.imag()));
}

template <Floating T>
TAEDA_FN Complex<T> asin(Complex<T> z) {
  const Complex<T> minus = sqrt_one_minus(z);
  const Complex<T> plus = sqrt_one_plus(z);
  const T product = minus.real() * plus.real() - minus.imag() * plus.imag();
  const T cross = minus.real() * plus.imag() - minus.imag() * plus.real();
  return {atan2(z.real(), product), asinh(cross)};
}
template <Floating T>
TAEDA_FN Complex<T> acos(Complex<T> z) {
  const Complex<T> minus = sqrt_one_minus(z);
  const Complex<T> plus = sqrt_one_plus(z);
  const T cross = plus.real() * minus.imag() - plus.imag() * minus.real();
  return {T(2) * atan2(minus.real(), plus.real()), asinh(cross)};
}
template <Floating T>
TAEDA_FN Complex<T> acosh(Complex<T> z) {
  const Complex<T> minus = sqrt(Complex<T>(z.real() - T(1), z.imag()));
  const Complex<T> plus = sqrt_one_plus(z);
  const T along = minus.real() * plus.real() + minus.imag() * plus.imag();
  return {asinh(along), T(2) * atan2(minus.imag(), plus.real())};
}
template <Floating T>
TAEDA_FN Complex<T> asinh(Complex<T> z) {
  return over_i(asin(times_i(z)));
}
// log((1 + z) / (1 - z)) / 2, from the squares' difference.
template <Floating T>
TAEDA_FN Complex<T> atanh(Complex<T> z) {
  const T x = z.real();
  const T y = z.imag();
  // Beyond, 1/z and the side of the cut say all.
  const T huge = sizeof(T) == 4 ? T(0x1p50f) : T(0x1p400);
  const bool far = fabs_of(x) > huge || fabs_of(y) > huge;
  const T sx = far ? T(0) : x;
  const T sy = far ? T(0) : y;
  const T beside = T(1) - fabs_of(sx);
  const T distance = beside * beside + sy * sy;
  const T re = T(0.25) * log1p(T(4) * fabs_of(sx) / distance);
  const T im =
      T(0.5) * atan2(T(2) * sy, beside * (T(1) + fabs_of(sx)) - sy * sy);
  const T far_re = is_inf(z) ? T(0) : (Complex<T>(T(1)) / z).real();
  const T side = with_sign(PiTraits<T>::kHalfHigh, y);
  const T quarter = is_nan(y) ? y : side;
  return {with_sign(far ? fabs_of(far_re) : re, x), far ? quarter : im};
}
template <Floating T>
TAEDA_FN Complex<T> atan(Complex<T> z) {
  return over_i(atanh(times_i(z)));
}

}  // namespace taeda::math
