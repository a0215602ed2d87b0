// Values that PyTorch's conventions or IEEE 754 fix exactly.
// Prints each failed expectation and the number that ran; status 1 on failure.
#include <taeda/aten/math/math.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>

namespace taeda::math_test {

int ran = 0;
int failed = 0;

// Bit for bit, but all NaN are equal.
template <typename T>
void expect(const char* what, T got, T want) {
  ++ran;
  const bool same =
      got == want && std::signbit(double(got)) == std::signbit(double(want));
  if (same || (got != got && want != want)) return;
  ++failed;
  std::printf("FAIL %s: %.17g for %.17g\n", what, double(got), double(want));
}

template <typename T>
void floats() {
  const T inf = std::numeric_limits<T>::infinity();
  const T nan = std::numeric_limits<T>::quiet_NaN();
  const T tiny = std::numeric_limits<T>::denorm_min();
  expect("sign(nan)", math::sign(nan), T(0));
  expect("sign(-3)", math::sign(T(-3)), T(-1));
  expect("maximum(nan, 1)", math::maximum(nan, T(1)), nan);
  expect("maximum(1, nan)", math::maximum(T(1), nan), nan);
  expect("minimum(1, nan)", math::minimum(T(1), nan), nan);
  expect("fmax(nan, 1)", math::fmax(nan, T(1)), T(1));
  expect("fmin(1, nan)", math::fmin(T(1), nan), T(1));
  expect("clamp(5, 3, 2)", math::clamp(T(5), T(3), T(2)), T(2));
  expect("clamp(nan)", math::clamp(nan, T(3), T(4)), nan);
  expect("nextafter(0, -1)", math::nextafter(T(0), T(-1)), -tiny);
  expect("nextafter(1, 2)",
         math::nextafter(T(1), T(2)),
         std::nextafter(T(1), T(2)));
  expect("nextafter(-1, 2)",
         math::nextafter(T(-1), T(2)),
         std::nextafter(T(-1), T(2)));
  expect("nextafter(max, inf)", math::nextafter(math::kHighest<T>, inf), inf);
  expect("remainder(-5, inf)", math::remainder(T(-5), inf), inf);
  expect("remainder(5, inf)", math::remainder(T(5), inf), T(5));
  expect("remainder(-7, 3)", math::remainder(T(-7), T(3)), T(2));
  expect("remainder(1, 0)", math::remainder(T(1), T(0)), nan);
  expect("floor_divide(-7, 2)", math::floor_divide(T(-7), T(2)), T(-4));
  expect("floor_divide(1, 0)", math::floor_divide(T(1), T(0)), inf);
  expect("floor_divide(-5, inf)", math::floor_divide(T(-5), inf), T(-1));
  expect("floor_divide(inf, 2)", math::floor_divide(inf, T(2)), nan);
  expect("div_trunc(-7, 2)", math::div_trunc(T(-7), T(2)), T(-3));
  expect("round(2.5)", math::round(T(2.5)), T(2));
  expect("round(-0.2)", math::round(T(-0.2)), T(-0.0));
  expect("frac(inf)", math::frac(inf), nan);
  expect("pow(nan, 0)", math::pow(nan, T(0)), T(1));
  expect("pow(1, nan)", math::pow(T(1), nan), T(1));
  expect("pow(-1, inf)", math::pow(T(-1), inf), T(1));
  expect("pow(-8, 1/3)", math::pow(T(-8), T(1) / 3), nan);
  expect("pow(-0, -3)", math::pow(T(-0.0), T(-3)), -inf);
  expect("xlogy(0, nan)", math::xlogy(T(0), nan), nan);
  expect("xlogy(0, -1)", math::xlogy(T(0), T(-1)), T(0));
  expect("logaddexp(inf, inf)", math::logaddexp(inf, inf), inf);
  expect("logaddexp(-inf, -inf)", math::logaddexp(-inf, -inf), -inf);
  expect("logaddexp(0, 0)", math::logaddexp(T(0), T(0)), std::log(T(2)));
  expect("sinc(0)", math::sinc(T(0)), T(1));
  expect("lgamma(-2)", math::lgamma(T(-2)), inf);
  expect("digamma(0)", math::digamma(T(0)), -inf);
  expect("digamma(-0)", math::digamma(T(-0.0)), inf);
  expect("digamma(-1)", math::digamma(T(-1)), nan);
  expect("angle(-2)", math::angle(T(-2)), T(3.14159265358979323846L));
  expect("select", math::select(true, T(1), T(2)), T(1));
}

template <typename T>
void signed_integers() {
  const T low = std::numeric_limits<T>::min();
  expect("abs(lowest)", math::abs(low), low);
  expect("kLowest", T(math::kLowest<T>), low);
  expect("kHighest", T(math::kHighest<T>), std::numeric_limits<T>::max());
  expect("div_trunc(lowest, -1)", math::div_trunc(low, T(-1)), low);
  expect("remainder(lowest, -1)", math::remainder(low, T(-1)), T(0));
  expect("floor_divide(-7, 2)", math::floor_divide(T(-7), T(2)), T(-4));
  expect("floor_divide(7, -2)", math::floor_divide(T(7), T(-2)), T(-4));
  expect("remainder(-7, 3)", math::remainder(T(-7), T(3)), T(2));
  expect("remainder(7, -3)", math::remainder(T(7), T(-3)), T(-2));
  expect("fmod(-7, 3)", math::fmod(T(-7), T(3)), T(-1));
  expect("fmod(7, 0)", math::fmod(T(7), T(0)), T(0));
  expect("pow(-3, 3)", math::pow(T(-3), T(3)), T(-27));
  expect("pow(2, -1)", math::pow(T(2), T(-1)), T(0));
  expect("pow(-1, -3)", math::pow(T(-1), T(-3)), T(-1));
  expect("pow(1, -3)", math::pow(T(1), T(-3)), T(1));
  expect("gcd(-12, 18)", math::gcd(T(-12), T(18)), T(6));
  expect("gcd(0, 0)", math::gcd(T(0), T(0)), T(0));
  expect("lcm(4, -6)", math::lcm(T(4), T(-6)), T(12));
  expect("lcm(0, 0)", math::lcm(T(0), T(0)), T(0));
  expect("shift_right(-8, 70)", math::shift_right(T(-8), T(70)), T(-1));
  expect("shift_right(8, -1)", math::shift_right(T(8), T(-1)), T(0));
  expect("shift_right(-8, 1)", math::shift_right(T(-8), T(1)), T(-4));
  expect("shift_left(1, 3)", math::shift_left(T(1), T(3)), T(8));
  expect("shift_left(1, 64)", math::shift_left(T(1), T(64)), T(0));
  expect("sign(-5)", math::sign(T(-5)), T(-1));
  expect("maximum", math::maximum(T(-5), T(3)), T(3));
}

template <typename T>
void unsigned_integers() {
  const T high = std::numeric_limits<T>::max();
  expect("floor_divide(max, 2)", math::floor_divide(high, T(2)), T(high / 2));
  expect("remainder(max, 10)", math::remainder(high, T(10)), T(high % 10));
  expect("pow(max, 2)", math::pow(high, T(2)), T(1));
  expect("pow(2, 3)", math::pow(T(2), T(3)), T(8));
  expect("kLowest", T(math::kLowest<T>), T(0));
  expect("abs", math::abs(high), high);
  expect("shift_right(max, 200)", math::shift_right(high, T(200)), T(0));
  expect("minimum", math::minimum(high, T(3)), T(3));
}

}  // namespace taeda::math_test

int main() {
  using namespace taeda::math_test;
  floats<float>();
  floats<double>();
  signed_integers<std::int8_t>();
  signed_integers<std::int16_t>();
  signed_integers<std::int32_t>();
  signed_integers<std::int64_t>();
  unsigned_integers<std::uint8_t>();
  unsigned_integers<std::uint16_t>();
  unsigned_integers<std::uint32_t>();
  unsigned_integers<std::uint64_t>();
  std::printf("ran %d, failed %d\n", ran, failed);
  return failed == 0 ? 0 : 1;
}
