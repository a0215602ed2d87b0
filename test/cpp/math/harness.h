// Compares loops over aten/math with long double references, in ulp.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

namespace taeda::math_test {

using Wide = long double;

// The distance of the neighbours of a T that holds `wide`.
template <typename T>
Wide ulp_of(Wide wide) {
  int exponent = 0;
  std::frexp(wide, &exponent);
  const int digits = std::numeric_limits<T>::digits;
  const int lowest = std::numeric_limits<T>::min_exponent;
  return std::ldexp(1.0L, std::max(exponent, lowest) - digits);
}

// Zero where both are NaN, or both the same infinity or signed zero; huge
// where one alone is special.
template <typename T>
double ulp_error(T got, Wide want, Wide floor) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(want) || std::isnan(got)) {
    return std::isnan(want) == std::isnan(got) ? 0 : 1e30;
  }
  if (std::isinf(rounded) || std::isinf(got)) {
    // One ulp below overflow may go either way.
    const Wide largest = std::numeric_limits<T>::max();
    const bool edge = std::isinf(got) != std::isinf(rounded) &&
                      std::fabs(want) > largest * (1 - 2.0L * ulp_of<T>(1)) &&
                      std::fabs(want) < largest * (1 + 4.0L * ulp_of<T>(1));
    return got == rounded || edge ? 0 : 1e30;
  }
  if (want == 0 && floor == 0) {
    const bool same = got == 0 && std::signbit(got) == std::signbit(want);
    return same ? 0 : 1e30;
  }
  return static_cast<double>(std::fabs(got - want) /
                             ulp_of<T>(std::max(std::fabs(want), floor)));
}

// Special values, uniform in [low, high], and every exponent.
template <typename T>
std::vector<T> samples(double low, double high, int count, unsigned seed) {
  using Limits = std::numeric_limits<T>;
  std::vector<T> result;
  const T specials[] = {0,
                        1,
                        2,
                        3,
                        T(0.5),
                        T(1.5),
                        T(2.5),
                        10,
                        100,
                        T(1e5),
                        Limits::infinity(),
                        Limits::quiet_NaN(),
                        Limits::max(),
                        Limits::min(),
                        Limits::denorm_min(),
                        Limits::min() / 4,
                        Limits::epsilon(),
                        std::nextafter(T(1), T(0)),
                        std::nextafter(T(1), T(2)),
                        std::ldexp(T(1), Limits::digits - 1),
                        std::ldexp(T(1), Limits::digits),
                        std::ldexp(T(1), Limits::digits) - 1,
                        T(3.14159265358979323846L)};
  for (T value : specials) {
    result.push_back(value);
    result.push_back(-value);
  }
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> uniform(low, high);
  for (int i = 0; i < count; ++i) result.push_back(T(uniform(generator)));
  for (int i = 0; i < count; ++i) {
    std::uint64_t bits = generator();
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    result.push_back(value);
  }
  return result;
}

template <typename T, int kArity>
struct Case {
  using Reference = Wide (*)(Wide, Wide);
  using Loop = void (*)(const T*, const T*, T*, long);
  const char* name;
  Loop loop;
  Reference reference;
  double max_ulp;
  double low, high;    // range of the dense samples
  double low2, high2;  // and of the second argument
  double limit;        // |argument| up to which the claim holds
  double floor = 0;    // smaller results are measured in ulp of this
};

struct Worst {
  double ulp = 0;
  Wide a = 0, b = 0, got = 0, want = 0;
};

template <typename T, int kArity>
Worst worst_of(const Case<T, kArity>& test, int count) {
  std::vector<T> a = samples<T>(test.low, test.high, count, 1);
  std::vector<T> b = samples<T>(test.low2, test.high2, count, 2);
  if (kArity == 2) {
    // All pairs of special values too.
    const std::size_t specials = 46;
    for (std::size_t i = 0; i < specials; ++i) {
      for (std::size_t j = 0; j < specials; ++j) {
        a.push_back(a[i]);
        b.push_back(b[j]);
      }
    }
  }
  std::vector<T> out(a.size());
  test.loop(a.data(), b.data(), out.data(), static_cast<long>(a.size()));
  Worst worst;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i]) && std::fabs(a[i]) > test.limit) continue;
    const Wide want = test.reference(a[i], b[i]);
    const double error = ulp_error<T>(out[i], want, test.floor);
    if (!(error <= worst.ulp)) worst = {error, a[i], b[i], out[i], want};
  }
  return worst;
}

// Prints one line; false where the error is above the stated bound.
template <typename T, int kArity>
bool check(const Case<T, kArity>& test, int count) {
  const Worst worst = worst_of(test, count);
  const bool ok = worst.ulp <= test.max_ulp;
  const char* type = sizeof(T) == 4 ? "float" : "double";
  std::printf(
      "%s %-14s %-6s %.2f of %.2f ulp at (%.9Lg, %.9Lg): %.20Lg for %.20Lg\n",
      ok ? "ok  " : "FAIL",
      test.name,
      type,
      worst.ulp,
      test.max_ulp,
      worst.a,
      worst.b,
      worst.got,
      worst.want);
  return ok;
}

}  // namespace taeda::math_test
