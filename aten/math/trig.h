// sin, cos, tan; the _any forms; is_far.
// Method: Cody & Waite reduction x = n pi/2 + r with pi/2 in parts, then the
// odd or even polynomial by quadrant.
//
// Note [Huge arguments of sin]
// On CPUs sin, cos and tan are right for |x| <= kTrigLimit and some number
// beyond: the table and the branch that more digits of pi need would undo the
// vectorisation of every call. Generated loops ask is_far() of a block of
// arguments first (0.1 ns an element) and, where one is, run sin_any in place
// of sin, which calls the C library out there. On GPUs sin is sin_any.
#pragma once

#include <taeda/aten/math/polynomials.h>
#include <taeda/aten/math/prim.h>

namespace taeda::math {

// x - n pi/2 as high + low, and the low bits of n.
template <typename T>
struct Reduced {
  T high;
  T low;
  BitsOf<T> quadrant;
};

constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;

template <typename T>
constexpr T kTrigLimit = T(0x1p40);
#if !TAEDA_MATH_HAS_FMA
template <>
constexpr float kTrigLimit<float> = 0x1p28f;
#endif

// 1 where |x| is above the limit, an integer of T's size; NaN and infinity are
// not, as every path gives NaN for them.
template <typename T>
TAEDA_FN BitsOf<T> is_far(T x) {
  const T a = fabs_of(x);
  return (a > kTrigLimit<T> && a < kInfinity<T>) ? BitsOf<T>(1) : BitsOf<T>(0);
}

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

// In double: as cheap as three parts of float, and far more digits.
TAEDA_FN Reduced<float> reduce_half_pi(float x) {
  const double wide = x;
  const double n = round_small(wide * kTwoOverPi);
#if TAEDA_MATH_HAS_FMA
  const double first = fma_of(n, -0x1.921fb54442d18p0, wide);
  const double r = fma_of(n, -0x1.1a62633145c07p-54, first);
#else
  // 25 bits each: exact products up to n = 2^28.
  const double first = (wide - n * 0x1.921fb5p0) - n * 0x1.110b46p-26;
  const double r = first - n * 0x1.1a62633145c07p-54;
#endif
  const float high = static_cast<float>(r);
  const float low = static_cast<float>(r - high);
  return {high, low, static_cast<unsigned int>(low_bits(n))};
}

// For |x| <= 2^40.
TAEDA_FN Reduced<double> reduce_half_pi(double x) {
  const double n = round_small(x * kTwoOverPi);
  return reduce_by_parts(x,
                         n,
                         0x1.921fb54442d18p0,
                         0x1.1a62633145c07p-54,
                         -0x1.f1976b7ed8fbcp-110);
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
  const T value = choose_by_bit(sine, cosine, quadrant);
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
  const T result = choose_by_bit(tangent.high, odd, reduced.quadrant);
  return fabs_of(x) < FloatTraits<T>::kTinyArgument ? x : result;
}

#if defined(__CUDA_ARCH__)
TAEDA_FN float libm_sin(float x) { return ::sinf(x); }
TAEDA_FN double libm_sin(double x) { return ::sin(x); }
TAEDA_FN float libm_cos(float x) { return ::cosf(x); }
TAEDA_FN double libm_cos(double x) { return ::cos(x); }
TAEDA_FN float libm_tan(float x) { return ::tanf(x); }
TAEDA_FN double libm_tan(double x) { return ::tan(x); }
#else
TAEDA_FN float libm_sin(float x) { return __builtin_sinf(x); }
TAEDA_FN double libm_sin(double x) { return __builtin_sin(x); }
TAEDA_FN float libm_cos(float x) { return __builtin_cosf(x); }
TAEDA_FN double libm_cos(double x) { return __builtin_cos(x); }
TAEDA_FN float libm_tan(float x) { return __builtin_tanf(x); }
TAEDA_FN double libm_tan(double x) { return __builtin_tan(x); }
#endif

template <Floating T>
TAEDA_FN T sin_any(T x) {
  return fabs_of(x) > kTrigLimit<T> ? libm_sin(x) : sin_impl(x);
}
template <Floating T>
TAEDA_FN T cos_any(T x) {
  return fabs_of(x) > kTrigLimit<T> ? libm_cos(x) : cos_impl(x);
}
template <Floating T>
TAEDA_FN T tan_any(T x) {
  return fabs_of(x) > kTrigLimit<T> ? libm_tan(x) : tan_impl(x);
}

#if defined(__CUDA_ARCH__)
TAEDA_FN float sin(float x) { return sin_any(x); }
TAEDA_FN double sin(double x) { return sin_any(x); }
TAEDA_FN float cos(float x) { return cos_any(x); }
TAEDA_FN double cos(double x) { return cos_any(x); }
TAEDA_FN float tan(float x) { return tan_any(x); }
TAEDA_FN double tan(double x) { return tan_any(x); }
#else
TAEDA_FN float sin(float x) { return sin_impl(x); }
TAEDA_FN double sin(double x) { return sin_impl(x); }
TAEDA_FN float cos(float x) { return cos_impl(x); }
TAEDA_FN double cos(double x) { return cos_impl(x); }
TAEDA_FN float tan(float x) { return tan_impl(x); }
TAEDA_FN double tan(double x) { return tan_impl(x); }
#endif

}  // namespace taeda::math
