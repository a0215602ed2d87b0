// The modified Bessel function of the first kind of order 1, and those of the
// orders 0 and 1 without their growth: times e^-|x|.
#pragma once

#include <taeda/aten/math/gamma.h>

namespace taeda::math {

// Of order 1 for a >= 0: a power series up to 20 (Abramowitz & Stegun 9.6.10),
// an asymptotic series beyond (9.7.1), the latter times e^-a. 42 and 20 terms
// reach the precision of double.
TAEDA_FN double i1_near(double a) {
  const double quarter = 0.25 * a * a;
  double term = 0.5 * a;
  double near = term;
  for (int k = 1; k < 42; ++k) {
    term *= quarter / (static_cast<double>(k) * (k + 1));
    near += term;
  }
  return near;
}
TAEDA_FN double i1_far(double a) {
  const double inverse = 1.0 / (8.0 * a);
  double part = 1.0;
  double series = 1.0;
  for (int k = 1; k < 20; ++k) {
    const double odd = 2.0 * k - 1.0;
    part *= -(4.0 - odd * odd) * inverse / k;
    series += part;
  }
  return series / sqrt(a * 6.283185307179586);
}

TAEDA_FN double i1(double x) {
  const double a = fabs_of(x);
  // Two halves, so that the exponential does not overflow before the result.
  const double root = exp(0.5 * a);
  const double far = root * i1_far(a) * root;
  const double value = a <= 20.0 ? i1_near(a) : far;
  return flip_sign(a < kInfinity<double> ? value : a, x);
}
TAEDA_FN double i1e(double x) {
  const double a = fabs_of(x);
  return flip_sign(a <= 20.0 ? i1_near(a) * exp(-a) : i1_far(a), x);
}
TAEDA_FN float i1(float x) {
  return static_cast<float>(i1(static_cast<double>(x)));
}
TAEDA_FN float i1e(float x) {
  return static_cast<float>(i1e(static_cast<double>(x)));
}

template <Floating T>
TAEDA_FN T i0e(T x) {
  const T a = fabs_of(x);
  const T half = T(0.5) * a;
  const T near = i0_poly(half * half) * exp(-a);
  const T far = i0_tail_poly(T(8) / a - T(0.5)) / sqrt(a);
  return a <= T(8) ? near : far;
}

}  // namespace taeda::math
