// The functions that PyTorch defines for complex numbers.
// Method: W. Kahan, "Branch cuts for complex elementary functions" (1987), so
// that signs of zero pick the side of a cut and nothing overflows before the
// result does. Errors are relative to |result|, not to each part.
#pragma once

#include <taeda/aten/math/hyperbolic.h>
#include <taeda/aten/math/inverse_trig.h>
#include <taeda/aten/math/log.h>
#include <taeda/aten/math/special.h>
#include <taeda/aten/math/trig.h>
#include <taeda/c10/util/complex.h>

namespace taeda::math {

template <typename T>
using Complex = ::taeda::complex<T>;

using ::taeda::conj;
using ::taeda::imag;
using ::taeda::real;

template <Floating T>
TAEDA_FN T abs(Complex<T> z) {
  return hypot(z.real(), z.imag());
}
// The argument of z; of a real number 0 or pi.
template <Floating T>
TAEDA_FN T angle(Complex<T> z) {
  return atan2(z.imag(), z.real());
}
template <Floating T>
TAEDA_FN T angle(T x) {
  const T side = x < T(0) ? T(2) * PiTraits<T>::kHalfHigh : T(0);
  return x != x ? x : side;
}
template <Floating T>
TAEDA_FN bool is_nan(Complex<T> z) {
  return is_nan(z.real()) || is_nan(z.imag());
}
template <Floating T>
TAEDA_FN bool is_inf(Complex<T> z) {
  return is_inf(z.real()) || is_inf(z.imag());
}
template <Floating T>
TAEDA_FN bool is_finite(Complex<T> z) {
  return is_finite(z.real()) && is_finite(z.imag());
}
// z / |z|, 0 for 0.
template <Floating T>
TAEDA_FN Complex<T> sgn(Complex<T> z) {
  const T length = abs(z);
  const T divisor = length == T(0) ? T(1) : length;
  return {z.real() / divisor, z.imag() / divisor};
}
// i z and -i z
template <Floating T>
TAEDA_FN Complex<T> times_i(Complex<T> z) {
  return {-z.imag(), z.real()};
}
template <Floating T>
TAEDA_FN Complex<T> over_i(Complex<T> z) {
  return {z.imag(), -z.real()};
}

// The first number with another imaginary part, where it has one.
template <Floating T>
TAEDA_FN Complex<T> with_imag(Complex<T> z, Complex<T> imag) {
  return {z.real(), imag.real()};
}
template <Floating T>
TAEDA_FN T with_imag(T x, T) {
  return x;
}

// scale (cos y + i sin y), keeping a zero y and a zero scale free of NaN, and
// the real part of an infinite scale.
template <Floating T>
TAEDA_FN Complex<T> polar(T scale, T y) {
  const bool endless = is_inf(scale) && !is_finite(y);
  const T re = endless ? scale : scale * cos_any(y);
  const T im = scale * sin_any(y);
  const bool vanished = scale == T(0) && !is_finite(y);
  return {vanished ? T(0) : re, vanished ? T(0) : (y == T(0) ? y : im)};
}

template <Floating T>
TAEDA_FN Complex<T> exp(Complex<T> z) {
  // In two factors, since e^x alone may overflow where the product does not.
  const T x = z.real();
  const T large = x > ExpTraits<T>::kHighest - T(2) ? T(20) : T(0);
  const Complex<T> unit = polar(exp(x - large), z.imag());
  const T rest = exp(large);
  return {unit.real() * rest, unit.imag() * rest};
}
template <Floating T>
TAEDA_FN Complex<T> exp2(Complex<T> z) {
  constexpr T ln2 = T(0x1.62e42fefa39efp-1);
  return exp(Complex<T>(z.real() * ln2, z.imag() * ln2));
}
// e^x cos y - 1 as expm1(x) cos y - 2 sin^2(y / 2)
template <Floating T>
TAEDA_FN Complex<T> expm1(Complex<T> z) {
  const T half = sin_any(z.imag() * T(0.5));
  const T re = expm1(z.real()) * cos_any(z.imag()) - T(2) * half * half;
  return {re, polar(exp(z.real()), z.imag()).imag()};
}

// log |z|: from |z|^2 - 1 where that is small.
template <Floating T>
TAEDA_FN T log_abs(T x, T y) {
  const T ax = fabs_of(x);
  const T ay = fabs_of(y);
  const T large = ax > ay ? ax : ay;
  const T small = ax > ay ? ay : ax;
  const Pair<T> a = two_product(large - T(1), large + T(1));
  const Pair<T> b = two_product(small, small);
  const Pair<T> sum = two_sum(a.high, b.high);
  const T near = T(0.5) * log1p(sum.high + (sum.low + (a.low + b.low)));
  // Where hypot would overflow, and where it loses digits to denormals.
  const T scale = large > T(1) ? T(0x1p-30f) : T(0x1p30f);
  const T shift = large > T(1) ? T(30) : T(-30);
  const T far = log(hypot(large * scale, small * scale)) +
                shift * T(0x1.62e42fefa39efp-1);
  const bool middle = large > T(0.5) && large < T(2);
  const bool plain = large > T(0x1p-60f) && large < T(0x1p60f);
  const T result = plain ? log(hypot(large, small)) : far;
  return middle ? near
                : (ax < kInfinity<T> && ay < kInfinity<T> ? result
                                                          : log(hypot(x, y)));
}
template <Floating T>
TAEDA_FN Complex<T> log(Complex<T> z) {
  return {log_abs(z.real(), z.imag()), angle(z)};
}
template <Floating T>
TAEDA_FN Complex<T> log2(Complex<T> z) {
  constexpr T log2_e = T(0x1.71547652b82fep0);
  const Complex<T> natural = log(z);
  return {natural.real() * log2_e, natural.imag() * log2_e};
}
template <Floating T>
TAEDA_FN Complex<T> log10(Complex<T> z) {
  constexpr T log10_e = T(0x1.bcb7b1526e50ep-2);
  const Complex<T> natural = log(z);
  return {natural.real() * log10_e, natural.imag() * log10_e};
}
// |1 + z|^2 - 1 = x (2 + x) + y^2
template <Floating T>
TAEDA_FN Complex<T> log1p(Complex<T> z) {
  const T x = z.real();
  const T y = z.imag();
  const T near = T(0.5) * log1p(x * (T(2) + x) + y * y);
  const bool small = fabs_of(x) < T(0.5) && fabs_of(y) < T(0.5);
  const T re = small ? near : log_abs(T(1) + x, y);
  return {re, atan2(y, T(1) + x)};
}

// Half the sum of |z| and |x| under the root, scaled by powers of four.
template <Floating T>
TAEDA_FN Complex<T> sqrt(Complex<T> z) {
  const T ax = fabs_of(z.real());
  const T ay = fabs_of(z.imag());
  const T largest = ax > ay ? ax : ay;
  constexpr T big = T(0x1p100f);
  const T scale =
      largest > big ? T(0x1p-40f) : (largest < T(1) / big ? T(0x1p60f) : T(1));
  const T back =
      largest > big ? T(0x1p20f) : (largest < T(1) / big ? T(0x1p-30f) : T(1));
  const T sx = ax * scale;
  const T sy = ay * scale;
  const T root = sqrt(T(0.5) * (sx + hypot(sx, sy)));
  const T other = root == T(0) ? T(0) : sy / (T(2) * root);
  const bool left = z.real() < T(0);
  const T re = (left ? other : root) * back;
  const T im = (left ? root : other) * back;
  const bool endless = ay == kInfinity<T>;
  const T re_inf = left ? T(0) : kInfinity<T>;
  const T im_inf = left ? kInfinity<T> : T(0);
  const bool along = ax == kInfinity<T> && is_finite(z.imag());
  const T re_any = endless ? kInfinity<T> : (along ? re_inf : re);
  const T im_any = endless ? kInfinity<T> : (along ? im_inf : im);
  return {re_any, with_sign(im_any, z.imag())};
}
template <Floating T>
TAEDA_FN Complex<T> rsqrt(Complex<T> z) {
  return Complex<T>(T(1)) / sqrt(z);
}

// The error of w log z is one of the result's angle and of its size, so float
// takes the logarithm in double.
template <Floating T>
TAEDA_FN Complex<T> power_of(Complex<T> z, Complex<T> w) {
  if constexpr (sizeof(T) == sizeof(float)) {
    const Complex<double> base(double(z.real()), double(z.imag()));
    const Complex<double> exponent(double(w.real()), double(w.imag()));
    const Complex<double> power = exp(exponent * log(base));
    return {T(power.real()), T(power.imag())};
  } else {
    return exp(w * log(z));
  }
}

template <Floating T>
TAEDA_FN Complex<T> pow(Complex<T> z, Complex<T> w) {
  const Complex<T> power = power_of(z, w);
  const bool zero = z == Complex<T>(T(0));
  const bool one = w == Complex<T>(T(0));
  const Complex<T> at_zero = w.real() > T(0) ? Complex<T>(T(0)) : power;
  const Complex<T> value = zero ? at_zero : power;
  return one ? Complex<T>(T(1)) : value;
}

}  // namespace taeda::math
