// Integer overloads: divisions, pow, gcd, lcm, shifts, with PyTorch's rules.
// Nothing here traps: who divides must have refused zero divisors before (the
// result here is 0), and the smallest number divided by -1 wraps to itself.
#pragma once

#include <taeda/aten/math/compare.h>
#include <taeda/aten/math/integer_types.h>

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
