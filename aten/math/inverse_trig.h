// sqrt, rsqrt, hypot, asin, acos, atan, atan2.
// Method: asin through the half-angle square root beyond 1/2 (Cody & Waite,
// chapter 10), with the root's rounding error; atan by one polynomial on
// [0, 1] and atan x = pi/2 - atan(1/x).
#pragma once

#include <taeda/aten/math/polynomials.h>
#include <taeda/aten/math/prim.h>

namespace taeda::math {

TAEDA_FN float sqrt(float x) {
#ifdef __CUDA_ARCH__
  return ::sqrtf(x);
#else
  return __builtin_sqrtf(x);
#endif
}
TAEDA_FN double sqrt(double x) {
#ifdef __CUDA_ARCH__
  return ::sqrt(x);
#else
  return __builtin_sqrt(x);
#endif
}
TAEDA_FN float rsqrt(float x) { return 1.0f / sqrt(x); }
TAEDA_FN double rsqrt(double x) { return 1.0 / sqrt(x); }

template <typename T>
struct PiTraits;

template <>
struct PiTraits<float> {
  static constexpr float kHalfHigh = 0x1.921fb6p0f;
  static constexpr float kHalfLow = -0x1.777a5cp-25f;
};

template <>
struct PiTraits<double> {
  static constexpr double kHalfHigh = 0x1.921fb54442d18p0;
  static constexpr double kHalfLow = 0x1.1a62633145c07p-54;
};

// What a root of high + low lacks: sqrt(high + low) - root, for root =
// sqrt(high).
template <typename T>
TAEDA_FN T sqrt_tail(T root, T high, T low) {
  const Pair<T> square = two_product(root, root);
  const T residue = ((high - square.high) - square.low) + low;
  return root == T(0) ? T(0) : residue * (T(0.5) / root);
}

// num / den with one division; the parts may overlap by a bit.
template <typename T>
TAEDA_FN Pair<T> divide_pairs(Pair<T> num, Pair<T> den) {
  const T inverse = T(1) / den.high;
  const T quotient = num.high * inverse;
  const Pair<T> product = two_product(quotient, den.high);
  const T residue = ((num.high - product.high) - product.low) +
                    (num.low - quotient * den.low);
  return {quotient, residue * inverse};
}

// asin |x| up to 1/2, 2 asin sqrt((1 - |x|) / 2) beyond; NaN beyond one. (A
// bool in a struct would keep g++ from vectorising: callers compare again.)
template <typename T>
TAEDA_FN Pair<T> asin_parts(T x) {
  const T a = fabs_of(x);
  const bool large = a > T(0.5);
  // No root or quotient in the arm of a select: g++ would make it a branch.
  const T half = (T(1) - a) * T(0.5);
  const T root = sqrt(half);
  const T s = a < root ? a : root;
  const T z = large ? half : a * a;
  const T missing = sqrt_tail(root, half, T(0)) * (large ? T(1) : T(0));
  const T low = s * z * asin_poly(z) + missing;
  const T factor = large ? T(2) : T(1);
  return {s * factor, low * factor};
}

template <typename T>
TAEDA_FN T asin_impl(T x) {
  using Pi = PiTraits<T>;
  const Pair<T> parts = asin_parts(x);
  const bool large = fabs_of(x) > T(0.5);
  const Pair<T> rest = fast_two_sum(Pi::kHalfHigh, -parts.high);
  const T beyond = rest.high + (rest.low + (Pi::kHalfLow - parts.low));
  const T result = large ? beyond : parts.high + parts.low;
  return with_sign(result, x);
}

template <typename T>
TAEDA_FN T acos_impl(T x) {
  using Pi = PiTraits<T>;
  const Pair<T> parts = asin_parts(x);
  const bool large = fabs_of(x) > T(0.5);
  const bool negative = x < T(0);
  // pi/2 - x, or 2 asin(root), or pi - 2 asin(root)
  const T quadrants = large ? (negative ? T(2) : T(0)) : T(1);
  const bool add = large ? !negative : negative;
  const T high = add ? parts.high : -parts.high;
  const T low = add ? parts.low : -parts.low;
  const Pair<T> sum = two_sum(quadrants * Pi::kHalfHigh, high);
  return sum.high + (sum.low + (quadrants * Pi::kHalfLow + low));
}

template <typename T>
TAEDA_FN T atan_impl(T x) {
  using Pi = PiTraits<T>;
  const T a = fabs_of(x);
  const bool large = a > T(1);
  const T t = large ? T(1) / a : a;
  const T z = t * t;
  const T rest = t * z * atan_poly(z);
  const T beyond = (Pi::kHalfHigh - t) - (rest - Pi::kHalfLow);
  return with_sign(large ? beyond : t + rest, x);
}

template <typename T>
TAEDA_FN T atan2_impl(T y, T x) {
  using Pi = PiTraits<T>;
  const T ax = fabs_of(x);
  const T ay = fabs_of(y);
  const bool steep = ay > ax;
  const T small = steep ? ax : ay;
  const T large = steep ? ay : ax;
  const T quotient = small / large;
  // 0/0 is 0 and inf/inf is 1; NaN stays.
  const T equal = large == T(0) ? T(0) : (small == large ? T(1) : quotient);
  const T t = x != x || y != y ? x + y : equal;
  const T z = t * t;
  // At 45 degrees the polynomial, an ulp off, is replaced by pi/4 itself.
  const T eighth = (T(0.5) * Pi::kHalfHigh - T(1)) + T(0.5) * Pi::kHalfLow;
  const T rest = t == T(1) ? eighth : t * z * atan_poly(z);
  const bool left = to_bits(x) >= FloatTraits<T>::kSignMask;
  const T quadrants = steep ? T(1) : (left ? T(2) : T(0));
  const bool minus = steep != left;
  const T signed_t = minus ? -t : t;
  const T signed_rest = minus ? -rest : rest;
  const T result = (quadrants * Pi::kHalfHigh + signed_t) +
                   (quadrants * Pi::kHalfLow + signed_rest);
  return with_sign(result, y);
}

// |(x, y)| without overflow; infinite where either is.
template <typename T>
TAEDA_FN T hypot_impl(T x, T y) {
  const T ax = fabs_of(x);
  const T ay = fabs_of(y);
  const T large = ax > ay ? ax : ay;
  const T small = ax > ay ? ay : ax;
  // Powers of two, so that nothing is rounded.
  constexpr T up = sizeof(T) == 4 ? T(0x1p60f) : T(0x1p500);
  constexpr T down = T(1) / up;
  const bool huge = large > up;
  const bool tiny = large < down;
  const T scale = huge ? down * down : (tiny ? up * up : T(1));
  const T back = huge ? up * up : (tiny ? down * down : T(1));
  const T a = large * scale;
  const T b = small * scale;
  const Pair<T> a2 = two_product(a, a);
  const Pair<T> sum = fast_two_sum(a2.high, b * b);
  const T root = sqrt(sum.high);
  const T exact = root + sqrt_tail(root, sum.high, sum.low + a2.low);
  const T finite = (sum.high < kInfinity<T> ? exact : sum.high) * back;
  const bool infinite = ax == kInfinity<T> || ay == kInfinity<T>;
  return infinite ? kInfinity<T> : (x != x || y != y ? x + y : finite);
}

TAEDA_FN float asin(float x) { return asin_impl(x); }
TAEDA_FN double asin(double x) { return asin_impl(x); }
TAEDA_FN float acos(float x) { return acos_impl(x); }
TAEDA_FN double acos(double x) { return acos_impl(x); }
TAEDA_FN float atan(float x) { return atan_impl(x); }
TAEDA_FN double atan(double x) { return atan_impl(x); }
TAEDA_FN float atan2(float y, float x) { return atan2_impl(y, x); }
TAEDA_FN double atan2(double y, double x) { return atan2_impl(y, x); }
TAEDA_FN float hypot(float x, float y) { return hypot_impl(x, y); }
TAEDA_FN double hypot(double x, double y) { return hypot_impl(x, y); }

}  // namespace taeda::math
