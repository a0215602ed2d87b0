// Regularised incomplete gamma functions, and the slopes of the quantiles of
// the gamma and beta distributions by their parameters.
// A sample x of a distribution F(x; a) that keeps its probability moves by
// dx/da = -(dF/da) / (dF/dx) (Figurnov, Mohamed, Mnih, "Implicit
// Reparameterization Gradients", 2018). F or 1 - F, divided by the density, is
// a power series or a continued fraction; their derivatives by a come from the
// same loops run on pairs (value, derivative). On either side of the mean of
// log x the sums that follow have terms of one sign only.
#pragma once

#include <taeda/aten/math/gamma.h>

namespace taeda::math {

// A number and its first two derivatives by one parameter.
struct Slope {
  double value;
  double slope;
  double curve;
};
TAEDA_FN Slope operator+(Slope x, Slope y) {
  return {x.value + y.value, x.slope + y.slope, x.curve + y.curve};
}
TAEDA_FN Slope operator*(Slope x, Slope y) {
  return {x.value * y.value,
          x.slope * y.value + x.value * y.slope,
          x.curve * y.value + 2.0 * x.slope * y.slope + x.value * y.curve};
}
TAEDA_FN Slope operator/(Slope x, Slope y) {
  const double q = x.value / y.value;
  const double slope = (x.slope - q * y.slope) / y.value;
  return {q, slope, (x.curve - 2.0 * slope * y.slope - q * y.curve) / y.value};
}
TAEDA_FN bool settled(Slope factor) {
  return fabs_of(factor.value - 1.0) <= 4e-16 && fabs_of(factor.slope) <= 4e-16;
}

// Beyond this size of the parameters the loops would take thousands of steps
// around the mean, and the integrals below take their place.
constexpr double kManySteps = 1000.0;

// The integrals of w, v w and v^2 w, w = e^h(v), over v > 0 for a falling
// and concave h that bends at about `scale`, by the trapezoidal rule in y where
// v = scale exp(y - exp(-y)). (Takahasi & Mori 1974, the double exponential)
template <typename H>
TAEDA_PART_FN Slope tail_moments(double scale, H h) {
  Slope sum{0.0, 0.0, 0.0};
  for (int k = -30; k <= 36; ++k) {
    const double y = 0.125 * k;
    const double inner = exp(-y);
    const double v = scale * exp(y - inner);
    const double weight = exp(h(v)) * v * (1.0 + inner) * 0.125;
    sum = sum + Slope{weight, weight * v, weight * v * v};
  }
  return sum;
}

// Gamma ----------------------------------------------------------------------

// a F / (x f) and its derivative by a, for x <= a + 1.
// F / f = x / a sum over n of x^n / ((a + 1) ... (a + n))
TAEDA_PART_FN Slope gamma_lower(double a, double x) {
  if (a > kManySteps) {
    // t = x e^-v in the integral of the density.
    const double gap = a - x;
    const double scale = 1.0 / (fabs_of(gap) + sqrt(x) + 1e-300);
    const Slope m = tail_moments(
        scale, [=](double v) { return -gap * v - x * (expm1(-v) + v); });
    return {a * m.value, m.value - a * m.slope, a * m.curve - 2.0 * m.slope};
  }
  double term = 1.0;
  double harmonic = 0.0;
  double squares = 0.0;
  Slope sum{1.0, 0.0, 0.0};
  for (int n = 1; n < 10000; ++n) {
    const double step = 1.0 / (a + n);
    term *= x * step;
    harmonic += step;
    squares += step * step;
    sum = sum +
          Slope{term, -term * harmonic, term * (harmonic * harmonic + squares)};
    if (term <= 1e-17 * sum.value) break;
  }
  return sum;
}

// (1 - F) / f and its derivative by a, for x >= a + 1, by Legendre's continued
// fraction (Abramowitz & Stegun 6.5.31) with Lentz' method.
TAEDA_PART_FN Slope gamma_upper(double a, double x) {
  if (a > kManySteps) {
    const double gap = x - a;
    const double scale = 1.0 / (fabs_of(gap) + sqrt(x));
    const Slope m = tail_moments(
        scale, [=](double v) { return -gap * v - x * (expm1(v) - v); });
    return {x * m.value, x * m.slope, x * m.curve};
  }
  const Slope one{1.0, 0.0, 0.0};
  Slope b{x + 1.0 - a, -1.0, 0.0};
  Slope c{1e300, 0.0, 0.0};
  Slope d = one / b;
  Slope h = d;
  for (int n = 1; n < 10000; ++n) {
    const Slope numerator{-n * (n - a), static_cast<double>(n), 0.0};
    b.value += 2.0;
    d = one / (numerator * d + b);
    c = b + numerator / c;
    const Slope factor = d * c;
    h = h * factor;
    if (settled(factor)) break;
  }
  return {x * h.value, x * h.slope, x * h.curve};
}

// x^a e^-x / gamma(a + 1), for large a by Stirling's series about x = a, where
// the large terms cancel.
TAEDA_PART_FN double gamma_power(double a, double x) {
  if (a < 10.0) return exp(a * log(x) - x - lgamma(a + 1.0));
  const double u = (x - a) / a;
  const double bend = fabs_of(u) < 0.5 ? log1p(u) - u : log(x / a) - u;
  const double inverse = 1.0 / a;
  const double tail = inverse * stirling_poly(inverse * inverse);
  return exp(a * bend - tail) / sqrt(0x1.921fb54442d18p2 * a);
}

// The gamma distribution function of x with the shape a and its complement.
TAEDA_PART_FN double gamma_probability(double a, double x, bool upper) {
  const double whole = upper ? 0.0 : 1.0;
  const bool outside = !(a >= 0.0) || !(x >= 0.0);
  if (outside || (a == 0.0 && x == 0.0) || (is_inf(a) && is_inf(x))) {
    return kNan<double>;
  }
  if (a == 0.0 || is_inf(x)) return whole;
  if (x == 0.0 || is_inf(a)) return 1.0 - whole;
  const bool low = x <= a + 1.0;
  const double ratio =
      low ? gamma_lower(a, x).value : gamma_upper(a, x).value * (a / x);
  const double part = gamma_power(a, x) * ratio;
  return low != upper ? part : 1.0 - part;
}
TAEDA_SHARED_FN double igamma(double a, double x) {
  return gamma_probability(a, x, false);
}
TAEDA_SHARED_FN double igammac(double a, double x) {
  return gamma_probability(a, x, true);
}

// g = dx/da of the gamma distribution with the shape a at the sample x, and the
// derivative of g by a with x kept.
TAEDA_PART_FN Slope gamma_quantile(double a, double x) {
  const double nan = kNan<double>;
  if (!(a > 0.0) || !(x >= 0.0) || is_inf(x)) return {nan, nan, nan};
  if (x == 0.0) return {0.0, 0.0, 0.0};
  // digamma(a) - log(x), for large a without the two logarithms
  const double i = 1.0 / a;
  const double far =
      log(a / x) - i * (0.5 + i * (1.0 / 12.0 - i * i * (1.0 / 120.0)));
  if (x > (a > kManySteps ? a : a + 1.0)) {
    const double mean = a > kManySteps ? far : digamma(a) - log(x);
    const Slope upper = gamma_upper(a, x);
    const double bend = upper.slope * mean + upper.value * trigamma(a);
    return {upper.slope - upper.value * mean, upper.curve - bend, 0.0};
  }
  const double mean = a > kManySteps ? far + i : digamma(a + 1.0) - log(x);
  const Slope lower = gamma_lower(a, x);
  const double g = x * i * (lower.value * mean - lower.slope);
  const double bend = lower.slope * mean + lower.value * trigamma(a + 1.0);
  return {g, i * (x * (bend - lower.curve) - g), 0.0};
}
TAEDA_SHARED_FN double gamma_quantile_slope(double a, double x) {
  return gamma_quantile(a, x).value;
}
TAEDA_SHARED_FN double gamma_quantile_curve(double a, double x) {
  return gamma_quantile(a, x).slope;
}

// Beta -----------------------------------------------------------------------

// digamma(a + b) - digamma(a) with few roundings also where b is small: by the
// recurrence up to a >= 8, then term by term of the asymptotic series.
TAEDA_PART_FN double digamma_step(double a, double b) {
  double sum = 0.0;
  for (; a < 8.0; a += 1.0) sum += b / (a * (a + b));
  const double i = 1.0 / a;
  const double j = 1.0 / (a + b);
  if (j <= 0.0 || j > 0.125) {  // b < 0: the other end is not yet large
    return sum + digamma(a + b) - digamma(a);
  }
  const double rest = i * i * digamma_poly(i * i) - j * j * digamma_poly(j * j);
  return sum + (log1p(b * i) + (0.5 * b * i * j + rest));
}

// p F / (x (1 - x) f) of the beta distribution with p and q, and its
// derivative along (p.slope, q.slope), by the continued fraction of
// DLMF 8.17.22 for x < (p + 1) / (p + q + 2). y = 1 - x.
TAEDA_PART_FN Slope beta_fraction(Slope p, Slope q, double x) {
  const Slope one{1.0, 0.0, 0.0};
  const Slope z{x, 0.0, 0.0};
  const Slope total = p + q;
  Slope c = one;
  Slope d = one / (one + z * total / (p + one) * Slope{-1.0, 0.0, 0.0});
  Slope h = d;
  for (int m = 1; m < 5000; ++m) {
    const Slope step{static_cast<double>(m), 0.0, 0.0};
    const Slope minus{-static_cast<double>(m), 0.0, 0.0};
    const Slope at = p + step + step;
    const Slope before = at + Slope{-1.0, 0.0, 0.0};
    const Slope even = step * (q + minus) * z / (before * at);
    d = one / (one + even * d);
    c = one + even / c;
    h = h * d * c;
    const Slope odd =
        Slope{-x, 0.0, 0.0} * (p + step) * (total + step) / (at * (at + one));
    d = one / (one + odd * d);
    c = one + odd / c;
    const Slope factor = d * c;
    h = h * factor;
    if (settled(factor)) break;
  }
  return h;
}

// The slope for large a and b by integrals on the side of x where it is
// smaller; `mean` is the mean of log(t / x).
TAEDA_PART_FN double beta_slope_large(double x,
                                      double a,
                                      double b,
                                      double mean) {
  const double y = 1.0 - x;
  const bool low = mean > 0.0;
  const double odds = x / y;
  const double gap = fabs_of((b - 1.0) * odds - a);
  const double sign = low ? -1.0 : 1.0;
  // t = x e^(sign v)
  const double scale = 1.0 / (gap + sqrt(b * x) / y);
  const Slope m = tail_moments(scale, [=](double v) {
    const double left = -odds * expm1(sign * v);
    const double rest = left > -1.0 ? log1p(left) : -kInfinity<double>;
    return sign * a * v + (b - 1.0) * rest;
  });
  return odds * (m.slope - sign * mean * m.value);
}

// dx/da / (1 - x) of the beta distribution with a and b at the sample x, b
// kept. The slopes of a Dirichlet sample x_j by a_i are this at x_i and the sum
// of the other parameters, times (i == j) - x_j.
TAEDA_SHARED_FN double beta_quantile_slope(double x, double a, double b) {
  const bool outside = !(x >= 0.0) || !(x <= 1.0);
  if (outside || !(a > 0.0) || !(b > 0.0)) return kNan<double>;
  if (x == 0.0) return 0.0;
  const double total = a + b;
  if (a > kManySteps && b > kManySteps && x < 1.0) {
    const double i = 1.0 / a;
    const double j = 1.0 / total;
    const double mean = log(a / (total * x)) - 0.5 * (i - j) -
                        (i * i - j * j) * (1.0 / 12.0) +
                        (i * i * i * i - j * j * j * j) * (1.0 / 120.0);
    return beta_slope_large(x, a, b, mean);
  }
  if (x * (total + 2.0) < a + 1.0) {
    const Slope lower = beta_fraction({a, 1.0, 0.0}, {b, 0.0, 0.0}, x);
    const double mean = -digamma_step(a + 1.0, b - 1.0) - log(x);
    return x / a * (lower.value * mean - lower.slope);
  }
  const Slope upper = beta_fraction({b, 0.0, 0.0}, {a, 1.0, 0.0}, 1.0 - x);
  const double mean = digamma_step(a, b) + log(x);
  return x / b * (upper.value * mean + upper.slope);
}

}  // namespace taeda::math
