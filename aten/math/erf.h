// erf, erfc, erfinv.
// Method: a polynomial in x^2 below one; beyond, 1 - e^P(x) in float, and
// erfc x = e^(-x^2) P(t) / (1 + 2 x), t = (x - k) / (x + k), of Shepherd &
// Laframboise, Mathematics of Computation 36 (1981), 249-253.
#pragma once

#include "exp.h"
#include "log.h"

namespace taeda::math {


// erfc for x >= 0.5
template <typename T>
TAEDA_FN T erfc_tail(T x) {
  const T k = sizeof(T) == 4 ? T(2) : T(4);
  const T largest = sizeof(T) == 4 ? T(10.1) : T(27.3);
  x = x > largest ? largest : x;
  const T t = (x - k) / (x + k);
  const Pair<T> square = two_product(x, x);
  const T gauss = exp_with_tail(-square.high, -square.low);
  return gauss * (erfc_poly(t) / (T(1) + T(2) * x));
}

TAEDA_FN float erf(float x) {
  const float a = fabs_of(x);
  const float small = x + x * erf_poly(x * x);
  const float t = (a > 4.0f ? 4.0f : a) - 1.0f;
  const float large = 1.0f - exp_unscaled(erf_log_poly(t));
  return a < 1.0f ? small : with_sign(large, x);
}
TAEDA_FN double erf(double x) {
  const double a = fabs_of(x);
  const double small = x + x * erf_poly(x * x);
  const double large = 1.0 - erfc_tail(a);
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

}  // namespace taeda::math
