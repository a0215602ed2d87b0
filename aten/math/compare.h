// Signs, classification, minima and maxima, select, clamp, nextafter.
// For NaN the conventions are PyTorch's: sign is 0, maximum and minimum give
// NaN, fmax and fmin give the other argument.
#pragma once

#include <taeda/aten/math/integer_types.h>
#include <taeda/aten/math/prim.h>

namespace taeda::math {

template <typename T>
TAEDA_FN T select(bool condition, T a, T b) {
  return condition ? a : b;
}

// The limits of a type; infinity apart.
template <typename T>
constexpr T kHighest = integer_highest<T>();
template <>
constexpr float kHighest<float> = FloatTraits<float>::kLargest;
template <>
constexpr double kHighest<double> = FloatTraits<double>::kLargest;
template <typename T>
constexpr T kLowest = static_cast<T>(-kHighest<T> - T(1));
template <UnsignedInteger T>
constexpr T kLowest<T> = T(0);
template <Floating T>
constexpr T kLowest<T> = -kHighest<T>;
template <Floating T>
constexpr T kEpsilon = sizeof(T) == 4 ? T(0x1p-23f) : T(0x1p-52);

template <Floating T>
TAEDA_FN bool is_nan(T x) {
  return x != x;
}
template <Floating T>
TAEDA_FN bool is_inf(T x) {
  return fabs_of(x) == kInfinity<T>;
}
template <Floating T>
TAEDA_FN bool is_finite(T x) {
  return fabs_of(x) < kInfinity<T>;
}
template <Floating T>
TAEDA_FN bool signbit(T x) {
  return to_bits(x) >= FloatTraits<T>::kSignMask;
}
template <Integer T>
TAEDA_FN bool is_nan(T) {
  return false;
}
template <Integer T>
TAEDA_FN bool is_inf(T) {
  return false;
}
template <Integer T>
TAEDA_FN bool is_finite(T) {
  return true;
}
template <Integer T>
TAEDA_FN bool signbit(T x) {
  return x < T(0);
}

template <Floating T>
TAEDA_FN T abs(T x) {
  return fabs_of(x);
}
// The smallest number has no opposite: it stays, as the bits wrap.
template <Integer T>
TAEDA_FN T abs(T x) {
  return x < T(0) ? wrapping_negate(x) : x;
}

template <typename T>
TAEDA_FN T sign(T x) {
  const T positive = x > T(0) ? T(1) : T(0);
  return x < T(0) ? T(-1) : positive;
}
template <typename T>
  requires Floating<T> || Integer<T>
TAEDA_FN T sgn(T x) {
  return sign(x);
}

template <Floating T>
TAEDA_FN T copysign(T magnitude, T sign) {
  return with_sign(magnitude, sign);
}

// What may be a number is tested last: its test then leaves the loop.
template <typename T>
TAEDA_FN T maximum(T a, T b) {
  const T larger = a < b ? b : a;  // a where either is NaN
  return b != b ? b : larger;
}
template <typename T>
TAEDA_FN T minimum(T a, T b) {
  const T smaller = a > b ? b : a;
  return b != b ? b : smaller;
}
template <typename T>
TAEDA_FN T fmax(T a, T b) {
  const T larger = a > b ? a : b;
  return b != b ? a : larger;
}
template <typename T>
TAEDA_FN T fmin(T a, T b) {
  const T smaller = a < b ? a : b;
  return b != b ? a : smaller;
}

// high where low > high; NaN where any argument is. Both bounds are compared
// with x itself: g++ splits a chain of choices into paths, which costs masks.
template <typename T>
TAEDA_FN T clamp(T x, T low, T high) {
  const T bottom = low > high ? high : low;
  const T capped = x > high ? high : x;
  const T inside = x < bottom ? bottom : capped;
  const bool ordered = low == low && high == high;
  return ordered ? inside : low + high;
}

// The neighbour of a towards b.
template <Floating T>
TAEDA_FN T nextafter(T a, T b) {
  const BitsOf<T> bits = to_bits(a);
  const bool away = (b > a) == (a > T(0));
  const T moved = from_bits(away ? bits + 1 : bits - 1);
  const T from_zero = with_sign(from_bits(BitsOf<T>(1)), b);
  const T next = a == T(0) ? from_zero : moved;
  const T unequal = a == b ? b : next;
  return a != a || b != b ? kNan<T> : unequal;
}

}  // namespace taeda::math
