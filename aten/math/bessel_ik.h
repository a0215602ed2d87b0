// The modified Bessel functions I and K of the orders 0 and 1, K also without
// its decay.
// Method: polynomials, of x^2 up to 1, of I e^-x cell by cell up to 8, beyond
// in 1 / x after the asymptotic forms DLMF 10.40.1 and 10.40.2 (K from 1 on);
// for K of small arguments the logarithm and the pole apart
// (DLMF 10.31.1, 10.31.2).
#pragma once

#include <taeda/aten/math/cell.h>
#include <taeda/aten/math/compare.h>
#include <taeda/aten/math/power.h>

namespace taeda::math {

// I of |x|
TAEDA_PART_FN double modified_bessel_i(int order, double a) {
  if (!(a < 720.0)) return a != a ? a : kInfinity<double>;
  if (a <= 1.0) {
    const double z = a * a;
    return order == 0 ? cell_of(kSmallI0, z, 1.0)
                      : a * cell_of(kSmallI1, z, 1.0);
  }
  if (a < 8.0) {
    const double value = order == 0 ? cell_of(kScaledI0, a, 1.0, 1.0)
                                    : cell_of(kScaledI1, a, 1.0, 1.0);
    return exp_quotient(value, {a, 0.0}, {1.0, 0.0});
  }
  const double value = order == 0 ? cell_of(kFarI0, 1.0 / a, 32.0)
                                  : cell_of(kFarI1, 1.0 / a, 32.0);
  return exp_quotient(value, {a, 0.0}, root_of_pair({a, 0.0}));
}

TAEDA_SHARED_FN double modified_bessel_i0(double x) {
  return modified_bessel_i(0, fabs_of(x));
}
TAEDA_SHARED_FN double modified_bessel_i1(double x) {
  return flip_sign(modified_bessel_i(1, fabs_of(x)), x);
}

// K for 0 < x <= 1, -log(x) I0 + P and log(x) I1 + 1 / x + x P
TAEDA_FN Pair<double> k_near(int order, double x) {
  const double z = x * x;
  const Pair<double> log = log_double_parts(x);
  if (order == 0) {
    const double i = cell_of(kSmallI0, z, 1.0);
    const Pair<double> product = multiply_pairs(log, {-i, 0.0});
    return add_pairs(product, {cell_of(kSmallK0, z, 1.0), 0.0});
  }
  const double i = x * cell_of(kSmallI1, z, 1.0);
  const Pair<double> pole =
      divide_pairs(Pair<double>{1.0, 0.0}, Pair<double>{x, 0.0});
  const Pair<double> rest = add_pairs(multiply_pairs(log, {i, 0.0}),
                                      {x * cell_of(kSmallK1, z, 1.0), 0.0});
  return add_pairs(pole, rest);
}

// K e^x, or K itself
TAEDA_PART_FN double modified_bessel_k(int order, double x, bool scaled) {
  if (!(x > 0.0)) return x == 0.0 ? kInfinity<double> : kNan<double>;
  if (order == 1 && x < 0x1p-1000) return 1.0 / x;
  if (x <= 1.0) {
    const Pair<double> value = k_near(order, x);
    if (!scaled) return value.high + value.low;
    const Pair<double> grown = multiply_pairs(value, exp_parts(x, 0.0));
    return grown.high + grown.low;
  }
  if (is_inf(x)) return 0.0;
  const double value = order == 0 ? cell_of(kFarK0, 1.0 / x, 8.0)
                                  : cell_of(kFarK1, 1.0 / x, 8.0);
  const Pair<double> power{scaled ? 0.0 : -x, 0.0};
  return exp_quotient(value, power, root_of_pair({x, 0.0}));
}

TAEDA_SHARED_FN double modified_bessel_k0(double x) {
  return modified_bessel_k(0, x, false);
}
TAEDA_SHARED_FN double modified_bessel_k1(double x) {
  return modified_bessel_k(1, x, false);
}
TAEDA_SHARED_FN double scaled_modified_bessel_k0(double x) {
  return modified_bessel_k(0, x, true);
}
TAEDA_SHARED_FN double scaled_modified_bessel_k1(double x) {
  return modified_bessel_k(1, x, true);
}

}  // namespace taeda::math
