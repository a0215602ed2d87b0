// erfcx, and the logarithm and the inverse of the normal distribution function.
#pragma once

#include <taeda/aten/math/cell.h>
#include <taeda/aten/math/erf.h>
#include <taeda/aten/math/power.h>

namespace taeda::math {

// e^(x^2) erfc(x): where erf is small directly; then by the fit of erfc; then
// by its asymptotic series (Abramowitz & Stegun 7.1.23). For x < 0 from
// erfc(x) = 2 - erfc(-x).
TAEDA_SHARED_FN double erfcx(double x) {
  const double a = fabs_of(x);
  if (!(x > -30.0)) return x != x ? x : kInfinity<double>;
  const Pair<double> square = two_product(a, a);
  if (a < 0.5) {
    const ExpSplit<double> power = exp_split(square.high, square.low);
    // 1 - erf x in two parts
    const Pair<double> rest = fast_two_sum(1.0, -(x + x * erf_poly(x * x)));
    const double low = rest.low * power.high + rest.high * power.low;
    const Pair<double> product = two_product(power.high, rest.high);
    return scale_by_pow2(product.high + (product.low + low), power.n);
  }
  if (x > 27.0) {
    const double w = 0.5 / (x * x);
    const double series =
        poly_chain(w, 1.0, -1.0, 3.0, -15.0, 105.0, -945.0, 10395.0, -135135.0);
    return 0x1.20dd750429b6dp-1 / x * series;
  }
  const Pair<double> right = erfcx_pair(a);
  if (x > 0.0) return right.high + right.low;
  // Halves, since e^(x^2) may overflow where its double's half does not.
  const ExpSplit<double> power = exp_split(square.high, square.low, -2.0);
  const double grown = scale_by_pow2(power.high, power.n + 1.0);
  const double rest = power.n < 60.0 ? right.high + right.low : 0.0;
  return grown + (scale_by_pow2(power.low, power.n + 1.0) - rest);
}

constexpr double kRootHalf = 0x1.6a09e667f3bcdp-1;

TAEDA_SHARED_FN double log_ndtr(double x) {
  if (x < 0.0) return log(0.5 * erfcx(-x * kRootHalf)) - 0.5 * x * x;
  if (x > 40.0) return -0.0;
  // 1 - ndtr(x); erfcx does not feel the rounding of its argument.
  const Pair<double> square = two_product(x, x);
  const Pair<double> power{-0.5 * square.high, -0.5 * square.low};
  return log1p(-exp_quotient(0.5 * erfcx(x * kRootHalf), power, {1.0, 0.0}));
}

// From 1/16 to 1/2 cell by cell; below, r - g(1 / r) / r with
// r = sqrt(-2 log p), after the leading terms of the inverse (DLMF 7.17.3).
TAEDA_SHARED_FN double ndtri(double p) {
  const double q = p > 0.5 ? 1.0 - p : p;
  if (!(q > 0.0)) {
    const double edge = with_sign(kInfinity<double>, p - 0.5);
    return q == 0.0 ? edge : kNan<double>;
  }
  double value;
  if (q >= 0.0625) {
    const int index = static_cast<int>(q * 16.0) - 1;
    value = centred_cell(kQuantile[index < 7 ? index : 6], q);
  } else {
    const Pair<double> log = log_double_parts(q);
    const Pair<double> r = root_of_pair({-2.0 * log.high, -2.0 * log.low});
    const double s = 1.0 / r.high;
    value = (cell_of(kQuantileTail, s, 16.0) * s - r.low) - r.high;
  }
  return p > 0.5 ? -value : value;
}

}  // namespace taeda::math
