// erf, erfc, erfinv.
// Method: a polynomial in x^2 below one; beyond, 1 - e^P(x) in float, and
// erfc x = e^(-x^2) P(t) / (1 + 2 x), t = (x - k) / (x + k), of Shepherd &
// Laframboise, Mathematics of Computation 36 (1981), 249-253.
#pragma once

#include <taeda/aten/math/exp.h>
#include <taeda/aten/math/inverse_trig.h>
#include <taeda/aten/math/log.h>

namespace taeda::math {

// e^(x^2) erfc(x) for x >= 0.5, as high + low
template <typename T>
TAEDA_FN Pair<T> erfcx_pair(T x) {
  const T k = sizeof(T) == 4 ? T(2) : T(4);
  const T t = (x - k) / (x + k);
  const Pair<T> den = fast_two_sum(T(2) * x, T(1));
  const Pair<T> num = erfc_parts(t);
  return divide_pairs(num, den);
}

// erfc for x >= 0.5
template <typename T>
TAEDA_FN T erfc_tail(T x) {
  const T largest = sizeof(T) == 4 ? T(10.1) : T(27.3);
  x = x > largest ? largest : x;
  const Pair<T> ratio = erfcx_pair(x);
  const Pair<T> square = two_product(x, x);
  const ExpSplit<T> gauss = exp_split(-square.high, -square.low);
  const T low = gauss.low * ratio.high + gauss.high * ratio.low;
  return scale_by_pow2(gauss.high * ratio.high + low, gauss.n);
}

TAEDA_FN float erf(float x) {
  const float a = fabs_of(x);
  const float small = x + x * erf_poly(x * x);
  const float t = (a > 4.0f ? 4.0f : a) - 1.0f;
  const float large = 1.0f - exp_unscaled(erf_log_poly(t));
  return a < 1.0f ? small : with_sign(large, x);
}
// Beyond one erfc is small beside 1, so that its plain evaluation serves.
TAEDA_FN double erf(double x) {
  const double a = fabs_of(x);
  const double small = x + x * erf_poly(x * x);
  const double capped = a > 6.0 ? 6.0 : a;
  const double t = (capped - 4.0) / (capped + 4.0);
  const Pair<double> ratio = erfc_parts(t);
  const double gauss = exp_unscaled(-capped * capped);
  const double large = 1.0 - gauss * ratio.high / (1.0 + 2.0 * capped);
  return a < 1.0 ? small : with_sign(large, x);
}

template <typename T>
TAEDA_FN T erfc_impl(T x) {
  const T a = fabs_of(x);
  const T small = T(1) - (x + x * erf_poly(x * x));
  const T tail = erfc_tail(a);
  const T large = x < T(0) ? T(2) - tail : tail;
  return a < T(0.5) ? small : large;
}
TAEDA_FN float erfc(float x) { return erfc_impl(x); }
TAEDA_FN double erfc(double x) { return erfc_impl(x); }

// x P(w), w = -log(1 - x^2), near; x P(sqrt w) far out.
TAEDA_FN float erfinv(float x) {
  const float a = fabs_of(x);
  const float w = -log_positive((1.0f - a) * (1.0f + a));
  const Pair<float> near = erfinv_parts((w < 5.0f ? w : 5.0f) - 2.5f);
  const Pair<float> far = erfinv_tail_parts(sqrt(w) - 3.125f);
  const bool central = w < 5.0f;
  const float high = central ? near.high : far.high;
  const float low = central ? near.low : far.low;
  const float inside = x * high + x * low;
  const float edge = a == 1.0f ? with_sign(kInfinity<float>, x) : kNan<float>;
  return with_sign(a < 1.0f ? inside : edge, x);
}

// Far out, a start with 20 bits and one step of Halley's method on
// erfc(y) = 1 - |x|, in the scale of e^(y^2).
TAEDA_FN double erfinv(double x) {
  const double a = fabs_of(x);
  const double w = -log_positive((1.0 - a) * (1.0 + a));
  const Pair<double> near = erfinv_parts((w < 5.0 ? w : 5.0) - 2.5);
  const double y = a * erfinv_tail_parts(sqrt(w < 5.0 ? 5.0 : w) - 4.25).high;
  const double scaled = (1.0 - a) * exp_unscaled(y * y);
  const double u = (erfcx_pair(y).high - scaled) * -0x1.c5bf891b4ef6ap-1;
  const double far = y - u / (1.0 + y * u);
  const double inside = x * near.high + x * near.low;
  const double edge = a == 1.0 ? kInfinity<double> : kNan<double>;
  const double value = w < 5.0 ? inside : far;
  return with_sign(a < 1.0 ? value : edge, x);
}

}  // namespace taeda::math
