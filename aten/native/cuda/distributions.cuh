// Random numbers by rejection: each element draws from a subsequence of its
// own, as many words as it needs.
#pragma once

#include <taeda/aten/native/cuda/random.cuh>

namespace taeda {

class DrawnWords {
 public:
  template <class G>
  __device__ inline DrawnWords(const G& g, Long i)
      : words_(static_cast<unsigned long long>(g.seed.integer()),
               static_cast<unsigned long long>(i),
               static_cast<unsigned long long>(g.offset.integer() / 4)) {}
  // In (0, 1].
  __device__ inline double uniform() {
    if (left_ == 0) {
      block_ = words_.next_block();
      left_ = 4;
    }
    left_ -= 2;
    return Draw::unit(block_.word[left_], block_.word[left_ + 1]);
  }
  __device__ inline double normal() {
    const double size = math::sqrt(-2.0 * math::log(uniform()));
    return size * math::cos_any(6.283185307179586 * uniform());
  }

 private:
  Philox4x32 words_;
  Philox4 block_;
  int left_ = 0;
};

// Transformed rejection (PTRS) of W. Hoermann, "The transformed rejection
// method for generating Poisson random variables", 1993; rate >= 10.
__device__ inline double poisson_large(DrawnWords& from, double rate) {
  const double b = 0.931 + 2.53 * math::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double enough = 0.9277 - 3.6224 / (b - 2);
  for (;;) {
    const double u = from.uniform() - 0.5, v = from.uniform();
    const double away = 0.5 - (u < 0 ? -u : u);
    const double k = math::floor((2 * a / away + b) * u + rate + 0.43);
    if (away >= 0.07 && v <= enough) return k;
    if (k < 0 || (away < 0.013 && v > away)) continue;
    const double left = math::log(v * inverse_alpha / (a / (away * away) + b));
    if (left <= k * math::log(rate) - rate - math::lgamma(k + 1)) return k;
  }
}

// Products of uniform numbers (D. Knuth, TAOCP 2, 3.4.1) below rate 10. Of a
// rate below 0 there is no number.
__device__ inline double poisson_of(DrawnWords& from, double rate) {
  if (!(rate >= 0)) return math::kNan<double>;
  if (rate >= 10) return poisson_large(from, rate);
  const double limit = math::exp(-rate);
  double count = 0;
  for (double product = from.uniform(); product > limit;) {
    count += 1;
    product *= from.uniform();
  }
  return count;
}

// Sums of geometric waiting times: quick where trials * p is small.
__device__ inline double binomial_small(DrawnWords& from,
                                        double trials,
                                        double p) {
  const double log_failure = math::log1p(-p);
  double waited = 0, successes = 0;
  for (;;) {
    const double wait = math::log(from.uniform()) / log_failure;
    // ceil, and at least one trial.
    waited += wait > 0 ? -math::floor(-wait) : 1;
    if (waited > trials) return successes;
    successes += 1;
  }
}

// log(k!) - Stirling's approximation of it.
__device__ inline double stirling_rest(double k) {
  const double log_factorial = math::lgamma(k + 1);
  return log_factorial -
         ((k + 0.5) * math::log(k + 1) - (k + 1) + 0.9189385332046728);
}

// Transformed rejection (BTRS) of W. Hoermann, "The generation of binomial
// random variates", 1993; trials * p >= 10, p <= 1/2.
__device__ inline double binomial_large(DrawnWords& from,
                                        double trials,
                                        double p) {
  const double deviation = math::sqrt(trials * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double enough = 0.92 - 4.2 / b, odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = math::floor((trials + 1) * p);
  for (;;) {
    const double u = from.uniform() - 0.5, v = from.uniform();
    const double away = 0.5 - (u < 0 ? -u : u);
    const double k = math::floor((2 * a / away + b) * u + trials * p + 0.5);
    if (away >= 0.07 && v <= enough) return k;
    if (k < 0 || k > trials) continue;
    const double left = math::log(v * alpha / (a / (away * away) + b));
    const double bound =
        (mode + 0.5) * math::log((mode + 1) / (odds * (trials - mode + 1))) +
        (trials + 1) * math::log((trials - mode + 1) / (trials - k + 1)) +
        (k + 0.5) * math::log(odds * (trials - k + 1) / (k + 1)) +
        stirling_rest(mode) + stirling_rest(trials - mode) - stirling_rest(k) -
        stirling_rest(trials - k);
    if (left <= bound) return k;
  }
}

__device__ inline double binomial_of(DrawnWords& from,
                                     double trials,
                                     double p) {
  if (trials != trials || p != p) return math::kNan<double>;
  if (trials <= 0 || p <= 0) return 0;
  if (p >= 1) return trials;
  const double q = p > 0.5 ? 1 - p : p;
  const double drawn = trials * q >= 10 ? binomial_large(from, trials, q)
                                        : binomial_small(from, trials, q);
  return p > 0.5 ? trials - drawn : drawn;
}

// G. Marsaglia and W. Tsang, "A simple method for generating gamma variables",
// ACM TOMS 26(3), 2000; shapes below 1 through shape + 1.
__device__ inline double gamma_of(DrawnWords& from, double shape) {
  if (!(shape >= 0)) return math::kNan<double>;
  if (shape == 0) return 0;
  double scale = 1;
  if (shape < 1) {
    scale = math::exp(math::log(from.uniform()) / shape);
    shape += 1;
  }
  const double d = shape - 1.0 / 3.0, c = 1 / math::sqrt(9 * d);
  for (;;) {
    const double x = from.normal(), y = 1 + c * x;
    if (y <= 0) continue;
    const double v = y * y * y, u = from.uniform();
    if (math::log(u) < 0.5 * x * x + d * (1 - v + math::log(v))) {
      return scale * d * v;
    }
  }
}

// The least normal number of a type; Half has fewer exponents.
template <class S>
__device__ inline double least_of() {
  if constexpr (math::kIsSame<S, Half>) return 0x1p-14;
  return math::kIsSame<S, double> ? 0x1p-1022 : 0x1p-126;
}
// The largest number below 1.
template <class S>
__device__ inline double most_of() {
  if constexpr (math::kIsSame<S, Half>) return 1 - 0x1p-11;
  if constexpr (math::kIsSame<S, BFloat16>) return 1 - 0x1p-8;
  return math::kIsSame<S, double> ? 1 - 0x1p-53 : 1 - 0x1p-24;
}

template <class G>
__device__ inline void poisson_at(const G& g, Long i) {
  DrawnWords from(g, i);
  g.result.write(i, poisson_of(from, static_cast<double>(g.self.flat(i))));
}

template <class G>
__device__ inline void binomial_at(const G& g, Long i) {
  DrawnWords from(g, i);
  g.result.write(i,
                 binomial_of(from,
                             chance_of(g.count, g.result, i),
                             chance_of(g.prob, g.result, i)));
}

template <class G>
__device__ inline void gamma_at(const G& g, Long i) {
  using S = typename decltype(g.result)::Stored;
  DrawnWords from(g, i);
  const double drawn = gamma_of(from, static_cast<double>(g.self.flat(i)));
  g.result.write(i, drawn < least_of<S>() ? least_of<S>() : drawn);
}

// Row `row` of gamma numbers, made to sum to 1 and to stay inside (0, 1), so
// that logarithms of a sample and of its complement are finite.
template <class G>
__device__ inline void dirichlet_row(const G& g, Long row) {
  using S = typename decltype(g.result)::Stored;
  const Long width = g.result.size(-1);
  double sum = 0;
  for (Long k = 0; k < width; ++k) sum += g.drawn.flat(row * width + k);
  for (Long k = 0; k < width; ++k) {
    const double share = g.drawn.flat(row * width + k) / sum;
    const double least = least_of<S>(), most = most_of<S>();
    g.result.write(row * width + k,
                   share < least ? least : (share > most ? most : share));
  }
}

}  // namespace taeda
