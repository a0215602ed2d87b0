// Classical orthogonal polynomials of degree n at x, 0 for n < 0; n counts
// without its fraction.
// Method: their recurrences (DLMF 18.9.1 with table 18.9.1) in numbers of two
// doubles, so that what the result is given to loses only what its last
// rounding loses; for float in double. Where such a pair overflows, in double.
#pragma once

#include <taeda/aten/math/cell.h>
#include <taeda/aten/math/compare.h>
#include <taeda/aten/math/rounding.h>

namespace taeda::math {

// The arithmetic that recurrences need, of double and of pairs.
TAEDA_FN double times(double a, double b) { return a * b; }
TAEDA_FN double plus(double a, double b) { return a + b; }
TAEDA_FN double over(double a, double b) { return a / b; }
TAEDA_FN double rounded(double a) { return a; }
TAEDA_FN Pair<double> times(Pair<double> a, Pair<double> b) {
  return multiply_pairs(a, b);
}
TAEDA_FN Pair<double> times(Pair<double> a, double b) {
  const Pair<double> product = two_product(a.high, b);
  return fast_two_sum(product.high, product.low + a.low * b);
}
TAEDA_FN Pair<double> plus(Pair<double> a, Pair<double> b) {
  return add_pairs(a, b);
}
TAEDA_FN Pair<double> over(Pair<double> a, double b) {
  const Pair<double> ratio = divide_pairs(a, Pair<double>{b, 0.0});
  return fast_two_sum(ratio.high, ratio.low);
}
TAEDA_FN double rounded(Pair<double> a) { return a.high + a.low; }

template <typename N>
TAEDA_FN N number(double high, double low = 0.0) {
  if constexpr (kIsSame<N, double>) {
    return high;
  } else {
    return fast_two_sum(high, low);
  }
}

// The number whose whole part counts, or -1 where the degree is none: NaN, or
// more than 64 bits hold.
TAEDA_FN double degree_of(double n) {
  return n > -1.0 && n < 0x1p63 ? trunc(n) : -1.0;
}

// T, U, V, W by kind 0 to 3 from T_n and U_(n-1), found by n's binary digits:
// T_2k = 2 T_k^2 - 1, U_(2k-1) = 2 T_k U_(k-1), and both of k + 1 from those of
// k (DLMF 18.7.3, 18.18.21; V and W are in the sense of 18.5.3, 18.5.4).
template <typename N>
TAEDA_PART_FN double chebyshev(int kind, N x, double n) {
  const N one = number<N>(1.0);
  const N minus = number<N>(-1.0);
  if (n <= 0.0) return n < 0.0 ? 0.0 : 1.0;
  const N gap = times(plus(x, minus), plus(x, one));
  N t = x;
  N u = one;
  double digit = 1.0;
  while (digit * 2.0 <= n) digit *= 2.0;
  for (double rest = n - digit; digit > 1.0;) {
    digit *= 0.5;
    u = times(times(t, u), 2.0);
    t = plus(times(times(t, t), 2.0), minus);
    if (rest >= digit) {
      rest -= digit;
      const N next = plus(times(x, t), times(gap, u));
      u = plus(times(x, u), t);
      t = next;
    }
  }
  if (kind == 0) return rounded(t);
  const N shift = kind == 1 ? x : plus(x, kind == 2 ? minus : one);
  return rounded(plus(times(shift, u), t));
}

// P (kind 0), L (1), H (2), He (3) by one step for each degree.
template <typename N>
TAEDA_PART_FN double recurrence(int kind, N x, double n) {
  if (n <= 0.0) return n < 0.0 ? 0.0 : 1.0;
  const N one = number<N>(1.0);
  N before = one;
  N now = kind == 1 ? plus(one, times(x, -1.0)) : x;
  if (kind == 2) now = times(x, 2.0);
  for (double k = 1.0; k < n; k += 1.0) {
    const double odd = 2.0 * k + 1.0;
    N next = times(now, x);
    if (kind == 0) next = times(next, odd);
    if (kind == 1) next = plus(times(now, odd), times(next, -1.0));
    if (kind == 2) next = times(next, 2.0);
    next = plus(next, times(before, kind == 2 ? -2.0 * k : -k));
    if (kind < 2) next = over(next, k + 1.0);
    before = now;
    now = next;
    if (!is_finite(rounded(now))) {
      // A sum of terms of one sign stays infinite, another may come back.
      const double size = rounded(x);
      const double parity = n * 0.5 == trunc(n * 0.5) ? 1.0 : size;
      const double sign = kind == 1 ? -size : parity;
      const bool same = kind == 0 || (kind == 1 && size < 0.0);
      if (same) return with_sign(kInfinity<double>, sign);
      return k + 1.0 < n ? kNan<double> : rounded(now);
    }
  }
  return rounded(now);
}

// x, or 2 x - 1 of the shifted polynomials.
template <typename N, bool kShifted>
TAEDA_FN N argument_of(double x) {
  const Pair<double> sum =
      kShifted ? two_sum(2.0 * x, -1.0) : Pair<double>{x, 0.0};
  return number<N>(sum.high, sum.low);
}
template <typename N, bool kSteps, bool kShifted>
TAEDA_FN double polynomial(int kind, double x, double n) {
  const N argument = argument_of<N, kShifted>(x);
  const double degree = degree_of(n);
  if constexpr (kSteps) return recurrence<N>(kind, argument, degree);
  return chebyshev<N>(kind, argument, degree);
}

// Beyond the range of pairs the plain result.
#define TAEDA_POLYNOMIAL(NAME, STEPS, SHIFTED, KIND)                           \
  TAEDA_SHARED_FN double NAME(double x, double n) {                            \
    const double value = polynomial<Pair<double>, STEPS, SHIFTED>(KIND, x, n); \
    return is_finite(value) ? value                                            \
                            : polynomial<double, STEPS, SHIFTED>(KIND, x, n);  \
  }                                                                            \
  TAEDA_SHARED_FN float NAME(float x, float n) {                               \
    return static_cast<float>(polynomial<double, STEPS, SHIFTED>(KIND, x, n)); \
  }
TAEDA_POLYNOMIAL(chebyshev_polynomial_t, false, false, 0)
TAEDA_POLYNOMIAL(chebyshev_polynomial_u, false, false, 1)
TAEDA_POLYNOMIAL(chebyshev_polynomial_v, false, false, 2)
TAEDA_POLYNOMIAL(chebyshev_polynomial_w, false, false, 3)
TAEDA_POLYNOMIAL(shifted_chebyshev_polynomial_t, false, true, 0)
TAEDA_POLYNOMIAL(shifted_chebyshev_polynomial_u, false, true, 1)
TAEDA_POLYNOMIAL(shifted_chebyshev_polynomial_v, false, true, 2)
TAEDA_POLYNOMIAL(shifted_chebyshev_polynomial_w, false, true, 3)
TAEDA_POLYNOMIAL(legendre_polynomial_p, true, false, 0)
TAEDA_POLYNOMIAL(laguerre_polynomial_l, true, false, 1)
TAEDA_POLYNOMIAL(hermite_polynomial_h, true, false, 2)
TAEDA_POLYNOMIAL(hermite_polynomial_he, true, false, 3)
#undef TAEDA_POLYNOMIAL

}  // namespace taeda::math
