// The Hurwitz zeta function and the derivatives of digamma.
#pragma once

#include <taeda/aten/math/gamma.h>

namespace taeda::math {

// A sum of two parts that grows term by term. (Neumaier 1974)
struct GrowingSum {
  double high = 0.0;
  double low = 0.0;
  TAEDA_FN void add(double term) {
    const Pair<double> sum = two_sum(high, term);
    high = sum.high;
    low += sum.low;
  }
};

// 1 / w^s for w > 1, of whole s by products. These round a few times, which
// only terms behind a greater one may: its first term a sum takes from `pow`.
struct LaterTerm {
  double exponent;
  int whole;  // 0 if it is none, or too large for products to be quicker

  TAEDA_FN explicit LaterTerm(double s)
      : exponent(-s),
        whole(s <= 32.0 && s == floor(s) ? static_cast<int>(s) : 0) {}

  TAEDA_FN double operator()(double w) const {
    if (whole == 0) return pow(w, exponent);
    double power = (whole & 1) != 0 ? w : 1.0;
    for (int rest = whole >> 1; rest != 0; rest >>= 1) {
      w *= w;
      if ((rest & 1) != 0) power *= w;
    }
    return 1.0 / power;
  }
};

// For s > 1 and q > 0 by Euler and Maclaurin's formula (Abramowitz & Stegun
// 23.1.30 with q in place of 1) where q is large beside s, after as many terms
// as lead there.
TAEDA_PART_FN double zeta_right(double s, double q) {
  GrowingSum sum;
  const double far = 8.0 + 2.0 * s;
  const LaterTerm later(s);
  double w = q;
  for (int k = 0; w < (far < 10.0 ? 10.0 : far); ++k) {
    const double term = k == 0 ? pow(w, -s) : later(w);
    if (is_inf(term)) return term;
    sum.add(term);
    w = q + (k + 1);
    // Also where all terms are 0: there may be as many as s is large.
    if (term * w / (s - 1.0) <= 1e-18 * sum.high) return sum.high + sum.low;
  }
  const double power = w == q ? pow(w, -s) : later(w);
  // B_2k / (2k)!, Abramowitz & Stegun table 23.2
  const double weights[] = {1.0 / 12.0,
                            -1.0 / 720.0,
                            1.0 / 30240.0,
                            -1.0 / 1209600.0,
                            1.0 / 47900160.0,
                            -691.0 / 1307674368000.0,
                            1.0 / 74724249600.0,
                            -3617.0 / 10670622842880000.0};
  double factor = s * power / w;
  double rest = 0.5 * power;
  for (int k = 0; k < 8; ++k) {
    rest += weights[k] * factor;
    factor *= ((s + (2 * k + 1)) / w) * ((s + (2 * k + 2)) / w);
  }
  sum.add(power * (w / (s - 1.0)));
  return sum.high + (sum.low + rest);
}

// The terms of zeta_right(s, q) before those of zeta_right(s, end).
TAEDA_PART_FN double zeta_between(double s, double q, double end) {
  if (end - q > 40.0) return zeta_right(s, q) - zeta_right(s, end);
  const LaterTerm later(s);
  GrowingSum sum;
  const double first = pow(q, -s);
  if (is_inf(first)) return first;
  sum.add(first);
  for (int k = 1; q + k < end - 0.5; ++k) sum.add(later(q + k));
  return sum.high + sum.low;
}

// The terms of q < 0, whose s must be integral, are those of a series to the
// right without its own tail. A pole has no sign.
TAEDA_SHARED_FN double zeta(double s, double q) {
  if (s == 1.0) return kInfinity<double>;
  if (!(s > 1.0) || q != q) return kNan<double>;
  if (q > 0.0) return is_inf(q) ? 0.0 : zeta_right(s, q);
  if (q == floor(q)) return kInfinity<double>;
  if (s != floor(s)) return kNan<double>;
  const double f = q - floor(q);
  const double half = 0.5 * s;
  const double sign = half == floor(half) ? 1.0 : -1.0;
  return zeta_right(s, f) + sign * zeta_between(s, 1.0 - f, 1.0 - q);
}

// The n-th derivative of digamma. (Abramowitz & Stegun 6.4.10)
TAEDA_SHARED_FN double polygamma(double n, double x) {
  if (n == 0.0) return digamma(x);
  if (n == 1.0) return trigamma(x);
  double factorial = 1.0;
  for (double k = 2.0; k <= n && k < 200.0; k += 1.0) factorial *= k;
  const double even = n * 0.5 == floor(n * 0.5) ? -1.0 : 1.0;
  return even * factorial * zeta(n + 1.0, x);
}

}  // namespace taeda::math
