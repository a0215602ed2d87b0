// lgamma, digamma, trigamma, i0.
// Methods: Abramowitz & Stegun 6.1.15-17 and 6.1.41 (recurrence, reflection,
// Stirling), 6.3.5-7 and 6.3.18 for the derivative, 9.6.12 and 9.7.1 for I0,
// with minimax polynomials in place of the series. lgamma and digamma are
// computed in double for float as well: near their zeros float has no digits.
#pragma once

#include <taeda/aten/math/power.h>
#include <taeda/aten/math/special.h>

namespace taeda::math {

// gamma(x) = gamma(2 + t) factor / divisor, |t| <= 0.5, for -0.5 <= x < 8.5.
struct GammaShift {
  double t;
  double factor;
  double divisor;
};

TAEDA_FN GammaShift gamma_shift(double x) {
  // Downwards while x >= 2.5 ...
  double factor = 1.0;
  double rest = x;
  TAEDA_MATH_UNROLL
  for (int step = 0; step < 6; ++step) {
    const bool high = rest >= 2.5;
    const double less = rest - 1.0;
    factor = high ? factor * less : factor;
    rest = high ? less : rest;
  }
  // ... or upwards by one or two.
  const double once = x < 1.5 ? x : 1.0;
  const double twice = x < 0.5 ? x + 1.0 : 1.0;
  const double up = (x < 1.5 ? 1.0 : 0.0) + (x < 0.5 ? 1.0 : 0.0);
  return {rest - (2.0 - up), factor, once * twice};
}

// log |gamma(z)| for z >= -0.5
TAEDA_FN double lgamma_right(double z) {
  const bool large = z >= 8.0;
  const GammaShift shift = gamma_shift(large ? 2.0 : z);
  // One logarithm: of w, of the factor, or of what divides.
  const double product = z < 1.5 ? fabs_of(shift.divisor) : shift.factor;
  const double logarithm = log(large ? z : product);
  const double near =
      shift.t * lgamma_poly(shift.t) + (z < 1.5 ? -logarithm : logarithm);
  const double inverse = 1.0 / z;
  const double far =
      (z - 0.5) * (logarithm - 1.0) +
      (0x1.acfe390c97d69p-2 + inverse * stirling_poly(inverse * inverse));
  const double finite = z < 0x1p1000 ? far : z * (logarithm - 1.0);
  return large ? finite : near;
}

TAEDA_FN double lgamma(double x) {
  const bool reflect = x < -0.5;
  const double right = lgamma_right(reflect ? 1.0 - x : x);
  // gamma(x) gamma(1 - x) = pi / sin(pi x)
  const double sine = fabs_of(sinpi(x));
  const double left = log(0x1.921fb54442d18p1 / sine) - right;
  const double value = reflect ? left : right;
  const bool pole = x <= 0.0 && x == trunc(x);
  return pole || is_inf(x) ? kInfinity<double> : value;
}
TAEDA_FN float lgamma(float x) {
  return static_cast<float>(lgamma(static_cast<double>(x)));
}

// The derivative of log gamma. -inf at 0, inf at -0, NaN at other poles.
TAEDA_FN double digamma(double x) {
  const bool reflect = x < 0.5;
  const double z = reflect ? 1.0 - x : x;
  // sum of 1 / (z + k), k < 8, as one quotient
  double numerator = 0.0;
  double denominator = 1.0;
  TAEDA_MATH_UNROLL
  for (int k = 0; k < 8; ++k) {
    const double term = z + k;
    numerator = numerator * term + denominator;
    denominator = denominator * term;
  }
  const bool small = z < 8.0;
  const double shifted = small ? numerator / denominator : 0.0;
  const double w = small ? z + 8.0 : z;
  const double inverse = 1.0 / w;
  const double y = inverse * inverse;
  const double far = log(w) - (0.5 * inverse + y * digamma_poly(y));
  const double right = far - shifted;
  // digamma(1 - x) - digamma(x) = pi / tan(pi x)
  const double cotangent = 0x1.921fb54442d18p1 * cospi(x) / sinpi(x);
  const double value = reflect ? right - cotangent : right;
  const bool pole = x < 0.0 && x == trunc(x);
  const double at_zero = with_sign(kInfinity<double>, -x);
  const double result = pole ? kNan<double> : value;
  return x == 0.0 ? at_zero : result;
}
TAEDA_FN float digamma(float x) {
  return static_cast<float>(digamma(static_cast<double>(x)));
}

// The derivative of digamma, by the same steps.
TAEDA_FN double trigamma(double x) {
  const bool reflect = x < 0.5;
  const double z = reflect ? 1.0 - x : x;
  double numerator = 0.0;
  double denominator = 1.0;
  TAEDA_MATH_UNROLL
  for (int k = 0; k < 8; ++k) {
    const double term = (z + k) * (z + k);
    numerator = numerator * term + denominator;
    denominator = denominator * term;
  }
  const bool small = z < 8.0;
  const double shifted = small ? numerator / denominator : 0.0;
  const double w = small ? z + 8.0 : z;
  const double inverse = 1.0 / w;
  const double y = inverse * inverse;
  const double right =
      shifted + (inverse + y * (0.5 + inverse * trigamma_poly(y)));
  // trigamma(1 - x) + trigamma(x) = (pi / sin(pi x))^2
  const double ratio = 0x1.921fb54442d18p1 / sinpi(x);
  return reflect ? ratio * ratio - right : right;
}
TAEDA_FN float trigamma(float x) {
  return static_cast<float>(trigamma(static_cast<double>(x)));
}

// The modified Bessel function of the first kind, order 0.
template <Floating T>
TAEDA_FN T i0(T x) {
  const T a = fabs_of(x);
  const T half = T(0.5) * a;
  const T near = i0_poly(half * half);
  const T inverse = T(8) / a;
  const T ratio = i0_tail_poly(inverse - T(0.5)) / sqrt(a);
  const T far = (exp_scaled(a, -8) * ratio) * T(256);
  const T bounded = a < kInfinity<T> ? far : a;
  return a <= T(8) ? near : bounded;
}

}  // namespace taeda::math
