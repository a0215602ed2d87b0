// pow of floating-point numbers.
// Method: x^y = e^(y log x) with the logarithm in twice the digits: for float
// simply in double, for double as a sum of two, after the series
// log(1 + f) = 2 atanh(f / (2 + f)).
#pragma once

#include <taeda/aten/math/exp.h>
#include <taeda/aten/math/inverse_trig.h>
#include <taeda/aten/math/log.h>
#include <taeda/aten/math/rounding.h>

namespace taeda::math {

// IEEE 754's special cases, given |x|^y.
template <typename T>
TAEDA_FN T pow_special(T x, T y, T magnitude) {
  const bool integral = y == trunc(y);
  const T half = y * T(0.5);
  const bool odd = integral && half != trunc(half);
  const bool negative = to_bits(x) >= FloatTraits<T>::kSignMask;
  const T a = fabs_of(x);
  const T signed_value = negative && odd ? -magnitude : magnitude;
  const bool invalid = negative && !integral && a < kInfinity<T> && a != T(0);
  const T value = invalid ? kNan<T> : signed_value;
  const bool unit = a == T(1) && (!negative || fabs_of(y) == kInfinity<T>);
  return y == T(0) || unit ? T(1) : value;
}

TAEDA_FN float pow(float x, float y) {
  const double a = fabs_of(x);
  const LogSplit<double> split = log_split_normal(a);
  const double s = split.f / (2.0 + split.f);
  const double log2 = split.exponent + s * pow_log2_poly(s * s);
  const double edge = a == 0.0 ? -kInfinity<double> : kInfinity<double>;
  const bool inside = a > 0.0 && a < kInfinity<double>;
  const double t = (inside ? log2 : (a != a ? a : edge)) * y;
  const double clamped = clamp_range(t, -160.0, 160.0);
  const double n = round_small(clamped);
  const double magnitude = pow_exp2_poly(clamped - n) * pow2_integral(n);
  return pow_special(x, y, static_cast<float>(magnitude));
}

// log a to about 2^-68 for positive finite a.
TAEDA_FN Pair<double> log_double_parts(double a) {
  using Traits = LogTraits<double>;
  const LogSplit<double> split = log_split(a);
  const double f = split.f;
  const Pair<double> den = fast_two_sum(2.0, f);
  const Pair<double> ratio = divide_pairs(Pair<double>{f, 0.0}, den);
  const double s = ratio.high;
  const double s_low = ratio.low;
  const Pair<double> z = two_product(s, s);
  const double z_low = z.low + 2.0 * s * s_low;
  // 2/3 + z P(z), the first term in two parts
  const Pair<double> head =
      fast_two_sum(0x1.5555555555555p-1, z.high * pow_atanh_poly(z.high));
  const double head_low = head.low + 0x1.5555555555555p-55;
  const Pair<double> cube = two_product(z.high, s);
  const double cube_low = cube.low + z_low * s + z.high * s_low;
  const Pair<double> term = two_product(cube.high, head.high);
  const double term_low =
      term.low + cube_low * head.high + cube.high * head_low;
  const Pair<double> first =
      fast_two_sum(split.exponent * Traits::kLn2High, 2.0 * s);
  const Pair<double> second = fast_two_sum(first.high, term.high);
  const double low =
      (first.low + second.low) +
      (term_low + (2.0 * s_low + split.exponent * Traits::kLn2Low));
  return fast_two_sum(second.high, low);
}

TAEDA_FN double pow(double x, double y) {
  const double a = fabs_of(x);
  const Pair<double> log = log_double_parts(a);
  // Far below the range of y that matters, where two_product may overflow.
  const double far = 0x1p80;
  const double factor = clamp_range(y, -far, far);
  const Pair<double> product = two_product(log.high, factor);
  const double tail = product.low + log.low * factor;
  const bool moderate = fabs_of(product.high) < 1000.0;
  const double edge = a == 0.0 ? -kInfinity<double> : kInfinity<double>;
  const bool inside = a > 0.0 && a < kInfinity<double>;
  const double exponent = inside ? product.high : (a != a ? a : edge) * y;
  const double clamped =
      exponent != exponent ? exponent : clamp_range(exponent, -760.0, 760.0);
  const ExpSplit<double> power =
      exp_split(clamped, inside && moderate ? tail : 0.0);
  const double magnitude = scale_by_pow2(power.high + power.low, power.n);
  return pow_special(x, y, magnitude);
}

}  // namespace taeda::math
