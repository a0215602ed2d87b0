// Integer overloads: divisions, pow, gcd, lcm, shifts, with PyTorch's rules.
// Nothing here traps: who divides must have refused zero divisors before (the
// result here is 0), and the smallest number divided by -1 wraps to itself.
#pragma once

#include <taeda/aten/math/compare.h>
#include <taeda/aten/math/integer_types.h>
#include <taeda/aten/math/rounding.h>

namespace taeda::math {

// A divisor that cannot trap, and whether the quotient is a negation.
template <Integer T>
TAEDA_FN T safe_divisor(T b) {
  return b == T(0) || (SignedInteger<T> && b == T(-1)) ? T(1) : b;
}

template <Integer T>
TAEDA_FN T div_trunc(T a, T b) {
  const T quotient = static_cast<T>(a / safe_divisor(b));
  const T zero_safe = b == T(0) ? T(0) : quotient;
  return SignedInteger<T> && b == T(-1) ? wrapping_negate(a) : zero_safe;
}

// a - div_trunc(a, b) b, with the sign of a.
template <Integer T>
TAEDA_FN T fmod(T a, T b) {
  return static_cast<T>(a % safe_divisor(b));
}

// With the sign of b.
template <Integer T>
TAEDA_FN T remainder(T a, T b) {
  const T rest = fmod(a, b);
  const bool adjust = rest != T(0) && ((rest < T(0)) != (b < T(0)));
  return static_cast<T>(adjust ? rest + b : rest);
}

template <Integer T>
TAEDA_FN T floor_divide(T a, T b) {
  const T quotient = div_trunc(a, b);
  const bool adjust = fmod(a, b) != T(0) && ((a < T(0)) != (b < T(0)));
  return static_cast<T>(adjust ? quotient - T(1) : quotient);
}

// Note [Quotients of near integers]
// Processors have no vector division of 64-bit integers. Quotients of numbers
// below 2^51 are those of their doubles: a quotient that is no integer differs
// from the next one by more than its rounding, and q b is a double. Generated
// loops ask is_far() of a block first and run the _near forms where nothing
// in it is; they convert through the mantissa, as only AVX-512 has
// instructions.
constexpr long long kNearBound = 1ll << 51;
constexpr double kIntegerMagic = 0x1.8p52;  // its last bit is worth 1

// Not 0 where the operands of a division must take the long way.
template <Integer T>
TAEDA_FN BitsOf<double> is_far(T a, T b) {
  using Bits = BitsOf<double>;
  constexpr auto bound = static_cast<Bits>(kNearBound);
  const Bits far =
      (static_cast<Bits>(a) + bound) | (static_cast<Bits>(b) + bound);
  return (far >> 52) | (b == T(0) ? Bits(1) : Bits(0));
}

TAEDA_FN double near_to_double(long long a) {
  const auto bits = static_cast<BitsOf<double>>(a);
  return from_bits(bits + to_bits(kIntegerMagic)) - kIntegerMagic;
}
TAEDA_FN long long double_to_near(double a) {
  return static_cast<long long>(to_bits(a + kIntegerMagic) -
                                to_bits(kIntegerMagic));
}

template <Integer T>
TAEDA_FN T div_trunc_near(T a, T b) {
  return static_cast<T>(
      double_to_near(trunc(near_to_double(a) / near_to_double(b))));
}
template <Integer T>
TAEDA_FN T floor_divide_near(T a, T b) {
  return static_cast<T>(
      double_to_near(floor(near_to_double(a) / near_to_double(b))));
}
template <Integer T>
TAEDA_FN T fmod_near(T a, T b) {
  const double x = near_to_double(a), y = near_to_double(b);
  return static_cast<T>(double_to_near(x - trunc(x / y) * y));
}
template <Integer T>
TAEDA_FN T remainder_near(T a, T b) {
  const double x = near_to_double(a), y = near_to_double(b);
  return static_cast<T>(double_to_near(x - floor(x / y) * y));
}

// By squaring, wrapping. Negative exponents give 0 but for bases 1 and -1.
template <Integer T>
TAEDA_FN T pow(T base, T exponent) {
  UnsignedOf<T> left = static_cast<UnsignedOf<T>>(exponent);
  T result = 1;
  T square = base;
  const bool negative = exponent < T(0);
  const bool odd = (left & 1) != 0;
  while (left != 0 && !negative) {
    result = (left & 1) != 0 ? wrapping_multiply(result, square) : result;
    square = wrapping_multiply(square, square);
    left = static_cast<UnsignedOf<T>>(left >> 1);
  }
  const T minus = SignedInteger<T> && base == T(-1) ? T(odd ? -1 : 1) : T(0);
  return negative ? (base == T(1) ? T(1) : minus) : result;
}

template <Integer T>
TAEDA_FN T gcd(T a, T b) {
  UnsignedOf<T> x = static_cast<UnsignedOf<T>>(abs(a));
  UnsignedOf<T> y = static_cast<UnsignedOf<T>>(abs(b));
  while (y != 0) {
    const UnsignedOf<T> rest = static_cast<UnsignedOf<T>>(x % y);
    x = y;
    y = rest;
  }
  return static_cast<T>(x);
}

template <Integer T>
TAEDA_FN T lcm(T a, T b) {
  const T divisor = gcd(a, b);
  return abs(wrapping_multiply(div_trunc(a, divisor), b));
}

// Negative shifts and those of the whole width leave nothing ...
template <Integer T>
TAEDA_FN T shift_left(T a, T b) {
  constexpr int width = sizeof(T) * 8;
  const bool outside = b < T(0) || static_cast<UnsignedOf<T>>(b) >= width;
  const int count = outside ? 0 : static_cast<int>(b);
  const T shifted = static_cast<T>(static_cast<UnsignedOf<T>>(a) << count);
  return outside ? T(0) : shifted;
}
// ... but the sign.
template <Integer T>
TAEDA_FN T shift_right(T a, T b) {
  constexpr int width = sizeof(T) * 8;
  const bool outside = b < T(0) || static_cast<UnsignedOf<T>>(b) >= width;
  const int count = outside ? 0 : static_cast<int>(b);
  const T sign = a < T(0) ? T(-1) : T(0);
  return outside ? sign : static_cast<T>(a >> count);
}

}  // namespace taeda::math
