// Every function of one argument against glibc's long double functions.
// Usage: accuracy_unary [samples]; exit status 1 when a bound is exceeded.
#include <algorithm>
#include <cstdlib>

#include <taeda/aten/math/math.h>
#include "harness.h"

namespace taeda::math_test {

#define CASE(NAME, REFERENCE, ULP, LOW, HIGH, LIMIT)                          \
  Case<T, 1> {                                                                \
    #NAME,                                                                    \
        [](const T* __restrict a, const T*, T* __restrict out, long n) {      \
          for (long i = 0; i < n; ++i) out[i] = math::NAME(a[i]);             \
        },                                                                    \
        [](Wide x, Wide) -> Wide { return REFERENCE; }, ULP, LOW, HIGH, 0, 1, \
        LIMIT                                                                 \
  }

constexpr double kAll = HUGE_VAL;

// Newton's method on whichever of erf and erfc keeps the digits.
Wide erfinv_reference(Wide x) {
  const Wide a = std::fabs(x);
  if (!(a < 1)) return a == 1 ? x * HUGE_VALL : NAN;
  if (a < 1e-12L) return x * 0.886226925452758013649083741670572591398L;
  Wide y = a < 0.9L ? a : std::sqrt(-std::log((1 - a) * (1 + a)));
  for (int i = 0; i < 60; ++i) {
    const Wide error = a < 0.5L ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const Wide slope = 1.128379167095512573896158903121545171688L;
    const Wide step = error / (slope * std::exp(-y * y));
    y -= step / (1 + y * step);
    if (std::fabs(step) < y * 1e-19L) break;
  }
  return std::copysign(y, x);
}

// Reflection, recurrence and the asymptotic series of Abramowitz & Stegun
// 6.3.7, 6.3.5, 6.3.18.
Wide digamma_reference(Wide x) {
  if (x == 0) return std::copysign(HUGE_VALL, -x);
  if (x < 0 && x == std::trunc(x)) return NAN;
  const Wide pi = 3.141592653589793238462643383279502884L;
  Wide sum = 0;
  if (x < 0.5L) {
    sum = -pi / std::tan(pi * (x - std::nearbyint(x)));
    x = 1 - x;
  }
  for (; x < 30; x += 1) sum -= 1 / x;
  const Wide y = 1 / (x * x);
  const Wide series =
      y * (1 / 12.0L -
           y * (1 / 120.0L - y * (1 / 252.0L - y * (1 / 240.0L - y / 132.0L))));
  return sum + (std::log(x) - 0.5L / x - series);
}

// The power series of Abramowitz & Stegun 9.6.12; all its terms are positive.
Wide i0_reference(Wide x) {
  if (!(std::fabs(x) <= 600)) return x * x;
  Wide term = 1, sum = 1;
  for (int k = 1; term > sum * 1e-21L; ++k) {
    term *= (x / 2) * (x / 2) / (Wide(k) * k);
    sum += term;
  }
  return sum;
}

template <typename T>
Case<T, 1> with_floor(Case<T, 1> test, double floor) {
  test.floor = floor;
  return test;
}

template <typename T>
bool check_all(int count) {
  constexpr bool is_float = sizeof(T) == 4;
  constexpr double trig = math::kTrigLimit<T>;
  const Case<T, 1> cases[] = {
      CASE(exp, std::exp(x), is_float ? 1.25 : 0.75, -20, 20, kAll),
      CASE(exp2, std::exp2(x), 1.5, -20, 20, kAll),
      CASE(expm1, std::expm1(x), 1.5, -3, 3, kAll),
      CASE(log, std::log(x), 1.0, 0, 3, kAll),
      CASE(log2, std::log2(x), 1.0, 0, 3, kAll),
      CASE(log10, std::log10(x), 1.0, 0, 3, kAll),
      CASE(log1p, std::log1p(x), 1.5, -1, 3, kAll),
      CASE(sin, std::sin(x), 1.0, -100, 100, trig),
      CASE(cos, std::cos(x), 1.0, -100, 100, trig),
      CASE(tan, std::tan(x), 1.5, -100, 100, trig),
      CASE(sin_any, std::sin(x), 1.0, -9, 9, kAll),
      CASE(cos_any, std::cos(x), 1.0, -9, 9, kAll),
      CASE(tan_any, std::tan(x), 1.5, -9, 9, kAll),
      CASE(sinh, std::sinh(x), 1.5, -3, 3, kAll),
      CASE(cosh, std::cosh(x), 1.5, -3, 3, kAll),
      CASE(tanh, std::tanh(x), 1.5, -3, 3, kAll),
      CASE(erf, std::erf(x), 1.5, -3, 3, kAll),
      CASE(erfc, std::erfc(x), 1.5, -5, is_float ? 11 : 28, kAll),
      CASE(asin, std::asin(x), 1.5, -1, 1, kAll),
      CASE(acos, std::acos(x), 1.5, -1, 1, kAll),
      CASE(atan, std::atan(x), 1.5, -5, 5, kAll),
      CASE(asinh, std::asinh(x), 1.75, -5, 5, kAll),
      CASE(acosh, std::acosh(x), 1.5, 1, 5, kAll),
      CASE(atanh, std::atanh(x), 1.5, -1, 1, kAll),
      CASE(erfinv, erfinv_reference(x), 2.5, -1, 1, kAll),
      CASE(i0, i0_reference(x), 5.0, -20, 20, 500),
      // Relative to one at least: these have zeros between the integers.
      with_floor(CASE(lgamma, std::lgamma(x), 8.0, -5, 20, 1e6), 1),
      with_floor(CASE(digamma, digamma_reference(x), 16.0, -5, 20, 1e3), 1),
      CASE(sqrt, std::sqrt(x), 0.5, 0, 5, kAll),
      CASE(rsqrt, 1 / std::sqrt(x), 1.5, 0, 5, kAll),
      CASE(frac, x - std::trunc(x), 0, -9, 9, kAll),
      CASE(floor, std::floor(x), 0, -9, 9, kAll),
      CASE(ceil, std::ceil(x), 0, -9, 9, kAll),
      CASE(trunc, std::trunc(x), 0, -9, 9, kAll),
      CASE(round, std::nearbyint(x), 0, -9, 9, kAll),
  };
  bool ok = true;
  for (const auto& test : cases) ok = check(test, count) && ok;
  return ok;
}

}  // namespace taeda::math_test

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 100000;
  const bool floats = taeda::math_test::check_all<float>(count);
  const bool doubles = taeda::math_test::check_all<double>(count);
  return floats && doubles ? 0 : 1;
}
