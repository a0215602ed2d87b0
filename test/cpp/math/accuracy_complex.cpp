// Complex functions against std::complex<long double>; the error is
// |got - want| / |want| in units of the type's epsilon / 2.
// Usage: accuracy_complex [samples]; exit status 1 when a bound is exceeded.
#include <taeda/aten/math/math.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>

namespace taeda::math_test {

using Wide = std::complex<long double>;

template <typename T>
struct Case {
  const char* name;
  complex<T> (*function)(complex<T>);
  Wide (*reference)(Wide);
};

// Both parts of all magnitudes near one, and often a signed zero.
template <typename T>
complex<T> sample(std::mt19937_64& generator, int i) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  const double far = std::exp2(static_cast<int>(generator() % 60) - 30);
  const double scale = i % 3 == 0 ? 1 : (i % 3 == 1 ? 4 : far);
  const T x = T(scale * uniform(generator));
  const T y = T(scale * uniform(generator));
  return {i % 19 == 0 ? std::copysign(T(0), x) : x,
          i % 17 == 0 ? std::copysign(T(0), y) : y};
}

template <typename T>
bool check(const Case<T>& test, int count, double bound) {
  std::mt19937_64 generator(1);
  double worst = 0;
  complex<T> where;
  for (int i = 0; i < count; ++i) {
    const complex<T> z = sample<T>(generator, i);
    const Wide want = test.reference(Wide(z.real(), z.imag()));
    const bool normal = std::abs(want) < std::numeric_limits<T>::max() &&
                        std::abs(want) > std::numeric_limits<T>::min() * 1e3L;
    if (!normal) continue;
    const complex<T> got = test.function(z);
    const long double distance =
        std::abs(Wide(got.real(), got.imag()) - want) / std::abs(want);
    const double error =
        double(distance / std::numeric_limits<T>::epsilon() * 2);
    if (!(error <= worst)) {
      worst = error;
      where = z;
    }
  }
  const bool ok = worst <= bound;
  std::printf("%s %-6s %-7s %.2f of %.2f at (%.9g, %.9g)\n",
              ok ? "ok  " : "FAIL",
              test.name,
              sizeof(T) == 4 ? "complex64" : "complex128",
              worst,
              bound,
              double(where.real()),
              double(where.imag()));
  return ok;
}

#define CASE(NAME, REFERENCE)                          \
  Case<T> {                                            \
    #NAME, [](complex<T> z) { return math::NAME(z); }, \
        [](Wide z) -> Wide { return REFERENCE; }       \
  }

template <typename T>
bool check_all(int count) {
  const Case<T> cases[] = {
      CASE(exp, std::exp(z)),
      CASE(log, std::log(z)),
      CASE(log10, std::log10(z)),
      CASE(sqrt, std::sqrt(z)),
      CASE(sinh, std::sinh(z)),
      CASE(cosh, std::cosh(z)),
      CASE(tanh, std::tanh(z)),
      CASE(sin, std::sin(z)),
      CASE(cos, std::cos(z)),
      CASE(tan, std::tan(z)),
      CASE(asin, std::asin(z)),
      CASE(acos, std::acos(z)),
      CASE(atan, std::atan(z)),
      CASE(asinh, std::asinh(z)),
      CASE(acosh, std::acosh(z)),
      CASE(atanh, std::atanh(z)),
      CASE(rsqrt, Wide(1) / std::sqrt(z)),
      CASE(sgn, z / std::abs(z)),
      CASE(log2, std::log(z) / std::log(2.0L)),
  };
  bool ok = true;
  for (const auto& test : cases) ok = check(test, count, 6.0) && ok;
  return ok;
}

}  // namespace taeda::math_test

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 100000;
  const bool floats = taeda::math_test::check_all<float>(count);
  const bool doubles = taeda::math_test::check_all<double>(count);
  return floats && doubles ? 0 : 1;
}
