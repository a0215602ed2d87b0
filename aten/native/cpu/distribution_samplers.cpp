#include <taeda/aten/native/cpu/distribution_samplers.h>
#include <taeda/aten/native/cpu/halving.h>
#include <taeda/aten/native/cpu/random_draw.h>
#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/check.h>
#include <taeda/c10/util/half.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace taeda::native {
namespace {

template <typename T>
using SampleType = std::conditional_t<std::is_same_v<T, double>, double, float>;

template <typename T>
T round_to(double value) {
  if constexpr (std::is_integral_v<T>) {
    // Beyond int64 the conversion would be undefined.
    const double bound = 9.2e18;
    return static_cast<T>(
        static_cast<int64_t>(std::clamp(value, -bound, bound)));
  } else {
    return static_cast<T>(value);
  }
}

// Transformed rejection (PTRS) of W. Hörmann, "The transformed rejection
// method for generating Poisson random variables", 1993; rate >= 10.
double draw_poisson_large(double rate, CpuGeneratorImpl& generator) {
  const double log_rate = std::log(rate);
  const double b = 0.931 + 2.53 * std::sqrt(rate);
  const double a = -0.059 + 0.02483 * b;
  const double inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
  const double v_r = 0.9277 - 3.6224 / (b - 2);
  while (true) {
    const double u = draw_uniform(generator) - 0.5;
    const double v = draw_uniform(generator);
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + rate + 0.43);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || (us < 0.013 && v > us)) continue;
    const double left =
        std::log(v) + std::log(inverse_alpha) - std::log(a / (us * us) + b);
    if (left <= -rate + k * log_rate - std::lgamma(k + 1)) return k;
  }
}

// Multiplication of uniform numbers (D. Knuth, TAOCP 2, 3.4.1) below rate 10.
double draw_poisson(double rate, CpuGeneratorImpl& generator) {
  TAEDA_CHECK(rate >= 0, "poisson: expected rates >= 0, got ", rate);
  if (rate >= 10) return draw_poisson_large(rate, generator);
  if (rate == 0) return 0;
  const double limit = std::exp(-rate);
  double count = 0;
  double product = draw_uniform(generator);
  while (product > limit) {
    count += 1;
    product *= draw_uniform(generator);
  }
  return count;
}

// Adds up geometric waiting times: quick when trials * p is small.
double draw_binomial_small(double trials,
                           double p,
                           CpuGeneratorImpl& generator) {
  const double log_failure = std::log1p(-p);
  double waited = 0;
  double successes = 0;
  while (true) {
    const double u = draw_uniform(generator);
    waited += std::ceil(std::log(u) / log_failure);
    if (waited > trials) return successes;
    successes += 1;
  }
}

// log(k!) - Stirling's approximation of it: the series' tail.
double stirling_tail(double k) {
  constexpr double kExact[] = {0.0810614667953272,
                               0.0413406959554092,
                               0.0276779256849983,
                               0.0207906721037650,
                               0.0166446911898211,
                               0.0138761288230707,
                               0.0118967099458917,
                               0.0104112652619720,
                               0.00925546218271273,
                               0.00833056343336287};
  if (k <= 9) return kExact[static_cast<int>(k)];
  const double square = (k + 1) * (k + 1);
  return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

// Transformed rejection (BTRS) of W. Hörmann, "The generation of binomial
// random variates", 1993; trials * p >= 10, p <= 1/2.
double draw_binomial_large(double trials,
                           double p,
                           CpuGeneratorImpl& generator) {
  const double deviation = std::sqrt(trials * p * (1 - p));
  const double b = 1.15 + 2.53 * deviation;
  const double a = -0.0873 + 0.0248 * b + 0.01 * p;
  const double c = trials * p + 0.5;
  const double v_r = 0.92 - 4.2 / b;
  const double odds = p / (1 - p);
  const double alpha = (2.83 + 5.1 / b) * deviation;
  const double mode = std::floor((trials + 1) * p);
  while (true) {
    const double u = draw_uniform(generator) - 0.5;
    double v = draw_uniform(generator);
    const double us = 0.5 - std::fabs(u);
    const double k = std::floor((2 * a / us + b) * u + c);
    if (us >= 0.07 && v <= v_r) return k;
    if (k < 0 || k > trials) continue;
    v = std::log(v * alpha / (a / (us * us) + b));
    const double bound =
        (mode + 0.5) * std::log((mode + 1) / (odds * (trials - mode + 1))) +
        (trials + 1) * std::log((trials - mode + 1) / (trials - k + 1)) +
        (k + 0.5) * std::log(odds * (trials - k + 1) / (k + 1)) +
        stirling_tail(mode) + stirling_tail(trials - mode) - stirling_tail(k) -
        stirling_tail(trials - k);
    if (v <= bound) return k;
  }
}

double draw_binomial(double trials, double p, CpuGeneratorImpl& generator) {
  if (trials <= 0 || p <= 0) return 0;
  if (p >= 1) return trials;
  const bool mirrored = p > 0.5;
  const double q = mirrored ? 1 - p : p;
  const double drawn =
      trials * q >= 10         ? draw_binomial_large(trials, q, generator)
      : std::isnan(trials * q) ? std::numeric_limits<double>::quiet_NaN()
                               : draw_binomial_small(trials, q, generator);
  return mirrored ? trials - drawn : drawn;
}

// G. Marsaglia and W. Tsang, "A simple method for generating gamma variables",
// ACM TOMS 26(3), 2000; shapes below 1 through shape + 1. The shape's steps are
// rounded to C and some constants to float: that decides which candidates are
// rejected, so it is part of PyTorch's stream.
template <typename C>
double draw_gamma(C alpha, CpuGeneratorImpl& generator) {
  if (alpha == 0) return 0;
  double scale = 1;
  if (alpha < 1) {
    const double u = 1 - draw_uniform(generator);
    const C power = 1 / alpha;
    scale = std::pow(u, static_cast<double>(power));
    alpha += 1;
  }
  const C rounded = alpha - 1.0f / 3.0f;
  const double d = rounded;
  const double c = 1 / std::sqrt(9 * d);
  while (true) {
    double x, y;
    do {
      x = draw_normal(generator);
      y = 1 + c * x;
    } while (y <= 0);
    const double v = y * y * y;
    const double u = 1 - draw_uniform(generator);
    const double square = x * x;
    if (u < 1 - 0.0331f * square * square) return scale * d * v;
    if (std::log(u) < 0.5 * square + d * (1 - v + std::log(v))) {
      return scale * d * v;
    }
  }
}

template <typename T>
constexpr double kSmallestNormal =
    std::is_same_v<T, double> ? std::numeric_limits<double>::min()
    : std::is_same_v<T, Half> ? 0x1p-14
                              : double{std::numeric_limits<float>::min()};

}  // namespace

template <typename T>
void fill_exponential(T* out,
                      int64_t count,
                      int64_t stride,
                      double lambda,
                      CpuGeneratorImpl& generator) {
  const double factor = -1.0 / lambda;
  for (int64_t i = 0; i < count; ++i) {
    const double u = draw_uniform(generator);
    out[i * stride] = round_to<T>(factor * std::log1p(-u));
  }
}

template <typename T>
void fill_geometric(T* out,
                    int64_t count,
                    int64_t stride,
                    double p,
                    CpuGeneratorImpl& generator) {
  const double log_failure = std::log1p(-p);
  for (int64_t i = 0; i < count; ++i) {
    const double u = draw_uniform(generator);
    out[i * stride] = round_to<T>(std::ceil(std::log(u) / log_failure));
  }
}

template <typename T>
void fill_cauchy(T* out,
                 int64_t count,
                 int64_t stride,
                 double median,
                 double sigma,
                 CpuGeneratorImpl& generator) {
  constexpr double kPi = 3.141592653589793;
  for (int64_t i = 0; i < count; ++i) {
    const double u = draw_uniform(generator);
    out[i * stride] =
        round_to<T>(std::fma(sigma, std::tan(kPi * (u - 0.5)), median));
  }
}

template <typename T>
void fill_log_normal(T* out,
                     int64_t count,
                     int64_t stride,
                     double mean,
                     double std,
                     CpuGeneratorImpl& generator) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = std::fma(draw_normal(generator), std, mean);
    out[i * stride] = round_to<T>(std::exp(value));
  }
}

template <typename T>
void fill_poisson(T* out,
                  int64_t stride,
                  const T* rate,
                  int64_t rate_stride,
                  int64_t count,
                  CpuGeneratorImpl& generator) {
  for (int64_t i = 0; i < count; ++i) {
    const double value = draw_poisson(rate[i * rate_stride], generator);
    out[i * stride] = round_to<T>(value);
  }
}

template <typename T>
void fill_binomial(T* out,
                   int64_t stride,
                   const T* trials,
                   int64_t trials_stride,
                   const T* p,
                   int64_t p_stride,
                   int64_t count,
                   CpuGeneratorImpl& generator) {
  for (int64_t i = 0; i < count; ++i) {
    const double value =
        draw_binomial(trials[i * trials_stride], p[i * p_stride], generator);
    out[i * stride] = round_to<T>(value);
  }
}

template <typename T>
void fill_standard_gamma(T* out,
                         int64_t stride,
                         const T* alpha,
                         int64_t alpha_stride,
                         int64_t count,
                         CpuGeneratorImpl& generator) {
  for (int64_t i = 0; i < count; ++i) {
    const SampleType<T> shape = alpha[i * alpha_stride];
    const double value = draw_gamma(shape, generator);
    out[i * stride] = round_to<T>(std::max(value, kSmallestNormal<T>));
  }
}

// Fills `cumulative` and gives the least weight if that is below zero. Apart
// from what calls functions, which would keep the sum in memory.
template <typename T, typename C>
[[gnu::noinline]] static C cumulate(const T* weights,
                                    int64_t stride,
                                    std::vector<C>& cumulative) {
  C sum = 0, least = 0;
  for (C& upto : cumulative) {
    const C weight = *weights;
    least = weight < least ? weight : least;
    upto = sum += weight;
    weights += stride;
  }
  return least;
}

template <typename T>
void fill_multinomial(int64_t* out,
                      int64_t samples,
                      const T* weights,
                      int64_t weight_stride,
                      int64_t categories,
                      CpuGeneratorImpl& generator) {
  using C = SampleType<T>;
  std::vector<C> cumulative(static_cast<size_t>(categories));
  const C least = cumulate(weights, weight_stride, cumulative);
  const C sum = cumulative.empty() ? C(0) : cumulative.back();
  // A weight that is no number makes the sum none.
  for (int64_t j = 0; !(least == 0 && sum < INFINITY) && j < categories; ++j) {
    const C weight = weights[j * weight_stride];
    TAEDA_CHECK(weight >= 0 && std::isfinite(weight),
                "multinomial: expected finite weights >= 0, got ",
                weight);
  }
  TAEDA_CHECK(sum > 0, "multinomial: the weights of a row sum to ", sum);
  for (int64_t i = 0; i < samples; ++i) {
    const double u = draw_uniform(generator);
    // The last covers all up to 1: rounding must leave no gap below. Found by
    // a product, and corrected by the quotient, which decides.
    const int64_t last = categories - 1;
    const double level = u * static_cast<double>(sum);
    const auto before = [&](int64_t j) { return cumulative[j] / sum < u; };
    int64_t found =
        count_before(last, [&](int64_t j) { return cumulative[j] < level; });
    while (found > 0 && !before(found - 1)) --found;
    while (found < last && before(found)) ++found;
    out[i] = found;
  }
}

#define INSTANTIATE_PLAIN(name, T) \
  template void name(T*, int64_t, int64_t, double, CpuGeneratorImpl&);
#define INSTANTIATE_PAIR(name, T) \
  template void name(T*, int64_t, int64_t, double, double, CpuGeneratorImpl&);
#define INSTANTIATE_EACH(name, T) \
  template void name(             \
      T*, int64_t, const T*, int64_t, int64_t, CpuGeneratorImpl&);
#define INSTANTIATE_FLOATING(T)                   \
  INSTANTIATE_PLAIN(fill_exponential, T)          \
  INSTANTIATE_PLAIN(fill_geometric, T)            \
  INSTANTIATE_PAIR(fill_cauchy, T)                \
  INSTANTIATE_PAIR(fill_log_normal, T)            \
  INSTANTIATE_EACH(fill_poisson, T)               \
  INSTANTIATE_EACH(fill_standard_gamma, T)        \
  template void fill_binomial(T*,                 \
                              int64_t,            \
                              const T*,           \
                              int64_t,            \
                              const T*,           \
                              int64_t,            \
                              int64_t,            \
                              CpuGeneratorImpl&); \
  template void fill_multinomial(                 \
      int64_t*, int64_t, const T*, int64_t, int64_t, CpuGeneratorImpl&);

INSTANTIATE_FLOATING(float)
INSTANTIATE_FLOATING(double)
INSTANTIATE_FLOATING(Half)
INSTANTIATE_FLOATING(BFloat16)
INSTANTIATE_PLAIN(fill_geometric, bool)
INSTANTIATE_PLAIN(fill_geometric, uint8_t)
INSTANTIATE_PLAIN(fill_geometric, int8_t)
INSTANTIATE_PLAIN(fill_geometric, int16_t)
INSTANTIATE_PLAIN(fill_geometric, int32_t)
INSTANTIATE_PLAIN(fill_geometric, int64_t)
#undef INSTANTIATE_PLAIN
#undef INSTANTIATE_PAIR
#undef INSTANTIATE_EACH
#undef INSTANTIATE_FLOATING

}  // namespace taeda::native
