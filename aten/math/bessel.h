// The modified Bessel function of the first kind of order 1.
#pragma once

#include <taeda/aten/math/gamma.h>

namespace taeda::math {

// Power series up to 20 (Abramowitz & Stegun 9.6.10), asymptotic series beyond
// (9.7.1): 42 and 20 terms reach the precision of double.
TAEDA_FN double i1(double x) {
  const double a = fabs_of(x);
  const double quarter = 0.25 * a * a;
  double term = 0.5 * a;
  double near = term;
  for (int k = 1; k < 42; ++k) {
    term *= quarter / (static_cast<double>(k) * (k + 1));
    near += term;
  }
  const double inverse = 1.0 / (8.0 * a);
  double part = 1.0;
  double series = 1.0;
  for (int k = 1; k < 20; ++k) {
    const double odd = 2.0 * k - 1.0;
    part *= -(4.0 - odd * odd) * inverse / k;
    series += part;
  }
  // Two halves, so that the exponential does not overflow before the result.
  const double root = exp(0.5 * a);
  const double far = root * (series / sqrt(a * 6.283185307179586)) * root;
  const double value = a <= 20.0 ? near : far;
  return flip_sign(a < kInfinity<double> ? value : a, x);
}
TAEDA_FN float i1(float x) {
  return static_cast<float>(i1(static_cast<double>(x)));
}

}  // namespace taeda::math
