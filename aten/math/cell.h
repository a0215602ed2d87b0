// Polynomials of the tables of cells.h, and the parts that the functions over
// them share: square roots in two parts, sine and cosine of a sum of two.
#pragma once

#include <taeda/aten/math/cells.h>
#include <taeda/aten/math/exp.h>
#include <taeda/aten/math/inverse_trig.h>
#include <taeda/aten/math/trig.h>

namespace taeda::math {

// c[0] + c[1] t + ..., whose first term is added last, with what its rounding
// left, c[kTerms]; even and odd powers of the rest apart, for half the latency.
template <int kTerms>
TAEDA_FN double cell_poly(const double* c, double t) {
  const double square = t * t;
  constexpr int kTop = kTerms - 1;
  double one = c[kTop];
  double other = c[kTop - 1];
  TAEDA_MATH_UNROLL
  for (int k = kTop - 2; k >= 2; k -= 2) {
    one = one * square + c[k];
    other = other * square + c[k - 1];
  }
  if constexpr (kTop % 2 == 0) {
    return c[0] + (t * (other + t * one) + c[kTerms]);
  } else {
    return c[0] + (t * (one * square + c[1] + t * other) + c[kTerms]);
  }
}

// Of a row that begins with its centre.
template <int kSize>
TAEDA_FN double centred_cell(const double (&row)[kSize], double x) {
  return cell_poly<kSize - 3>(row + 2, (x - row[0]) - row[1]);
}

// Of a table without centres whose cells of 1 / per_unit begin at `first`; a
// lone cell has its centre there.
template <int kRows, int kSize>
TAEDA_FN double cell_of(const double (&table)[kRows][kSize],
                        double x,
                        double per_unit,
                        double first = 0.0) {
  if constexpr (kRows == 1) return cell_poly<kSize - 1>(table[0], x);
  int index = static_cast<int>((x - first) * per_unit);
  index = index < kRows ? index : kRows - 1;
  const double centre = first + (index + 0.5) / per_unit;
  return cell_poly<kSize - 1>(table[index], x - centre);
}

TAEDA_FN Pair<double> multiply_pairs(Pair<double> a, Pair<double> b) {
  const Pair<double> product = two_product(a.high, b.high);
  return fast_two_sum(product.high,
                      product.low + (a.high * b.low + a.low * b.high));
}
TAEDA_FN Pair<double> add_pairs(Pair<double> a, Pair<double> b) {
  const Pair<double> high = two_sum(a.high, b.high);
  const Pair<double> low = two_sum(a.low, b.low);
  const Pair<double> sum = fast_two_sum(high.high, high.low + low.high);
  return fast_two_sum(sum.high, sum.low + low.low);
}

// The square root of a.high + a.low > 0.
TAEDA_FN Pair<double> root_of_pair(Pair<double> a) {
  const double root = sqrt(a.high);
  const Pair<double> square = two_product(root, root);
  const double rest = ((a.high - square.high) - square.low) + a.low;
  return {root, rest * 0.5 / root};
}

// sin(high + low + quadrants pi / 2), |low| below an ulp or so of high.
TAEDA_FN double wave_of_pair(double high, double low, int quadrants) {
  if (fabs_of(high) > kTrigLimit<double>) {
    const double sine = libm_sin(high);
    const double cosine = libm_cos(high);
    return quadrants == 0 ? sine + low * cosine : cosine - low * sine;
  }
  const Reduced<double> reduced = reduce_half_pi(high);
  const Pair<double> r = fast_two_sum(reduced.high, reduced.low + low);
  const auto quadrant =
      static_cast<BitsOf<double>>(reduced.quadrant + quadrants);
  const double value = (quadrant & 1) == 0 ? sin_kernel(r.high, r.low)
                                           : cos_kernel(r.high, r.low);
  return (quadrant & 2) == 0 ? value : -value;
}

// value e^(x.high + x.low) / divisor with one rounding of the whole.
TAEDA_FN double exp_quotient(double value,
                             Pair<double> x,
                             Pair<double> divisor) {
  // Of results that are representable e^x may be 2^8 times too large.
  const ExpSplit<double> power = exp_split(x.high, x.low, -8.0);
  const Pair<double> product =
      multiply_pairs({value, 0.0}, {power.high, power.low});
  const Pair<double> ratio = divide_pairs(product, divisor);
  return scale_by_pow2(ratio.high + ratio.low, power.n);
}

}  // namespace taeda::math
