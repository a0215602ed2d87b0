// Every function of two arguments against glibc's long double functions.
// Usage: accuracy_binary [samples]; exit status 1 when a bound is exceeded.
#include <algorithm>
#include <cstdlib>

#include <taeda/aten/math/math.h>
#include "harness.h"

namespace taeda::math_test {

#define CASE(NAME, REFERENCE, ULP, LOW, HIGH, LOW2, HIGH2)                \
  Case<T, 2> {                                                            \
    #NAME,                                                                \
        [](const T* __restrict a,                                         \
           const T* __restrict b,                                         \
           T* __restrict out,                                             \
           long n) {                                                      \
          for (long i = 0; i < n; ++i) out[i] = math::NAME(a[i], b[i]);   \
        },                                                                \
        [](Wide x, Wide y) -> Wide { return REFERENCE; }, ULP, LOW, HIGH, \
        LOW2, HIGH2, HUGE_VAL                                             \
  }

Wide python_remainder(Wide x, Wide y) {
  const Wide rest = std::fmod(x, y);
  return rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

template <typename T>
bool check_all(int count) {
  const Case<T, 2> cases[] = {
      CASE(pow, std::pow(x, y), 1.0, 0, 5, -20, 20),
      CASE(atan2, std::atan2(x, y), 2.0, -3, 3, -3, 3),
      CASE(hypot, std::hypot(x, y), 1.0, -3, 3, -3, 3),
      CASE(fmod, std::fmod(x, y), 0, -99, 99, -3, 3),
      CASE(remainder, python_remainder(x, y), 0.5, -99, 99, -3, 3),
      CASE(copysign, std::copysign(x, y), 0, -3, 3, -3, 3),
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
