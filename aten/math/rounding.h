// floor ceil trunc round frac, division with rounding, remainders.
#pragma once

#include <taeda/aten/math/prim.h>

namespace taeda::math {

// Half to even; keeps -0, infinities and NaN.
template <typename T>
TAEDA_FN T round_impl(T x) {
  const T magnitude = fabs_of(x);
  const T magic = FloatTraits<T>::kIntegerFrom;
  const T rounded = with_sign((magnitude + magic) - magic, x);
  return magnitude < magic ? rounded : x;
}

template <typename T>
TAEDA_FN T floor_impl(T x) {
  const T rounded = round_impl(x);
  return with_sign(rounded > x ? rounded - T(1) : rounded, x);
}

template <typename T>
TAEDA_FN T ceil_impl(T x) {
  const T rounded = round_impl(x);
  return with_sign(rounded < x ? rounded + T(1) : rounded, x);
}

template <typename T>
TAEDA_FN T trunc_impl(T x) {
  return with_sign(floor_impl(fabs_of(x)), x);
}

// SSE4.1, AVX and the GPU have instructions for these; SSE2 has none.
#if defined(__CUDA_ARCH__)
TAEDA_FN float round(float x) { return ::rintf(x); }
TAEDA_FN double round(double x) { return ::rint(x); }
TAEDA_FN float floor(float x) { return ::floorf(x); }
TAEDA_FN double floor(double x) { return ::floor(x); }
TAEDA_FN float ceil(float x) { return ::ceilf(x); }
TAEDA_FN double ceil(double x) { return ::ceil(x); }
TAEDA_FN float trunc(float x) { return ::truncf(x); }
TAEDA_FN double trunc(double x) { return ::trunc(x); }
#elif defined(__SSE4_1__) || defined(__aarch64__)
// nearbyint is rint without the inexact flag; rint needs -fno-trapping-math.
TAEDA_FN float round(float x) { return __builtin_nearbyintf(x); }
TAEDA_FN double round(double x) { return __builtin_nearbyint(x); }
TAEDA_FN float floor(float x) { return __builtin_floorf(x); }
TAEDA_FN double floor(double x) { return __builtin_floor(x); }
TAEDA_FN float ceil(float x) { return __builtin_ceilf(x); }
TAEDA_FN double ceil(double x) { return __builtin_ceil(x); }
TAEDA_FN float trunc(float x) { return __builtin_truncf(x); }
TAEDA_FN double trunc(double x) { return __builtin_trunc(x); }
#else
TAEDA_FN float round(float x) { return round_impl(x); }
TAEDA_FN double round(double x) { return round_impl(x); }
TAEDA_FN float floor(float x) { return floor_impl(x); }
TAEDA_FN double floor(double x) { return floor_impl(x); }
TAEDA_FN float ceil(float x) { return ceil_impl(x); }
TAEDA_FN double ceil(double x) { return ceil_impl(x); }
TAEDA_FN float trunc(float x) { return trunc_impl(x); }
TAEDA_FN double trunc(double x) { return trunc_impl(x); }
#endif

// x - trunc(x); NaN for infinities.
TAEDA_FN float frac(float x) { return x - trunc(x); }
TAEDA_FN double frac(double x) { return x - trunc(x); }

}  // namespace taeda::math
