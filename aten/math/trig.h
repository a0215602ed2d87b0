// sin, cos, tan, sincos helpers.
// Method: Cody & Waite reduction x = n pi/2 + r with pi/2 in three parts, then
// the odd or even polynomial by quadrant.
#pragma once

#include "polynomials.h"
#include "prim.h"

namespace taeda::math {

// x - n pi/2 as high + low, and the low bits of n.
template <typename T>
struct Reduced {
  T high;
  T low;
  BitsOf<T> quadrant;
};

constexpr float kTwoOverPiF = 0x1.45f306p-1f;
constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

// r = x - n pi/2 with pi/2 = first + second + third. The first difference is
// exact by cancellation; of the second both rounding errors are kept.
template <typename T>
TAEDA_FN Reduced<T> reduce_by_parts(T x, T n, T first, T second, T third) {
  const Pair<T> near = two_product(n, first);
  const T rest = (x - near.high) - near.low;
  const Pair<T> next = two_product(n, second);
  const Pair<T> r = two_sum(rest, -next.high);
  const T tail = (r.low - next.low) - n * third;
  const Pair<T> sum = fast_two_sum(r.high, tail);
  return {sum.high, sum.low, low_bits(n)};
}

// For |x| <= 1e5.
TAEDA_FN Reduced<float> reduce_half_pi(float x) {
#if TAEDA_MATH_HAS_FMA
  const float n = round_small(x * kTwoOverPiF);
  return reduce_by_parts(
      x, n, 0x1.921fb6p0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f
  );
#else
  // 33 bits of pi/2: exact products up to n = 2^20.
  const double wide = x;
  const double n = round_small(wide * kTwoOverPi);
  const double r = (wide - n * 0x1.921fb544p0) - n * 0x1.0b4611a626331p-34;
  const float high = static_cast<float>(r);
  const float low = static_cast<float>(r - high);
  return {high, low, low_bits(static_cast<float>(n))};
#endif
}

// For |x| <= 2^40.
TAEDA_FN Reduced<double> reduce_half_pi(double x) {
  const double n = round_small(x * kTwoOverPi);
  return reduce_by_parts(
      x, n, 0x1.921fb54442d18p0, 0x1.1a62633145c07p-54,
      -0x1.f1976b7ed8fbcp-110
  );
}

// sin(r + tail) and cos(r + tail) on [-pi/4, pi/4].
template <typename T>
TAEDA_FN T sin_kernel(T r, T tail) {
  const T z = r * r;
  return r + (r * z * sin_poly(z) + tail * (T(1) - T(0.5) * z));
}
template <typename T>
TAEDA_FN T cos_kernel(T r, T tail) {
  const T z = r * r;
  const T half = T(0.5) * z;
  const T head = T(1) - half;
  // What the subtraction lost, so that the error stays below an ulp.
  const T lost = (T(1) - head) - half;
  return head + (lost + (z * z * cos_poly(z) - r * tail));
}

// sin(x + quadrants pi/2)
template <typename T>
TAEDA_FN T sin_quadrant(T x, BitsOf<T> quadrants) {
  const Reduced<T> reduced = reduce_half_pi(x);
  const BitsOf<T> quadrant = reduced.quadrant + quadrants;
  const T sine = sin_kernel(reduced.high, reduced.low);
  const T cosine = cos_kernel(reduced.high, reduced.low);
  const T value = (quadrant & 1) != 0 ? cosine : sine;
  constexpr int sign_shift = sizeof(T) * 8 - 2;
  const BitsOf<T> sign = (quadrant & 2) << sign_shift;
  return from_bits(to_bits(value) ^ sign);
}

template <typename T>
TAEDA_FN T sin_impl(T x) {
  const T result = sin_quadrant(x, BitsOf<T>(0));
  return fabs_of(x) < FloatTraits<T>::kTinyArgument ? x : result;
}
template <typename T>
TAEDA_FN T cos_impl(T x) {
  return sin_quadrant(x, BitsOf<T>(1));
}

// tan(r + tail) by quadrant: tan or -1 / tan.
template <typename T>
TAEDA_FN T tan_impl(T x) {
  const Reduced<T> reduced = reduce_half_pi(x);
  const T r = reduced.high;
  const T z = r * r;
  const T rest = r * z * tan_poly(z) + reduced.low * (T(1) + z);
  const Pair<T> tangent = fast_two_sum(r, rest);
  // -1 / (high + low) with one Newton correction for the low part.
  const T q = T(-1) / tangent.high;
  const Pair<T> check = two_product(q, tangent.high);
  const T residue = (T(1) + check.high) + (check.low + q * tangent.low);
  const T inverse = q + q * residue;
  const T odd = tangent.high == T(0) ? q : inverse;
  const T result = (reduced.quadrant & 1) != 0 ? odd : tangent.high;
  return fabs_of(x) < FloatTraits<T>::kTinyArgument ? x : result;
}

TAEDA_FN float sin(float x) { return sin_impl(x); }
TAEDA_FN double sin(double x) { return sin_impl(x); }
TAEDA_FN float cos(float x) { return cos_impl(x); }
TAEDA_FN double cos(double x) { return cos_impl(x); }
TAEDA_FN float tan(float x) { return tan_impl(x); }
TAEDA_FN double tan(double x) { return tan_impl(x); }

}  // namespace taeda::math
