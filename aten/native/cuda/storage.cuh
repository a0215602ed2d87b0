// Elements as tensors store them: how they become what is computed in, and
// back. Programs for NVRTC and the compiler's kernels stand on it.
#pragma once

#include <taeda/aten/math/convert.h>
#include <taeda/aten/native/cuda/prelude.cuh>

#ifdef __CUDACC_RTC__
namespace taeda {
using int8_t = signed char;  // NVRTC has no <cstdint>
using uint8_t = unsigned char;
using int16_t = short;
using int32_t = int;
using uint16_t = unsigned short;
using uint32_t = unsigned;
using uint64_t = unsigned long long;
}  // namespace taeda
#endif

#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/float8.h>
#include <taeda/c10/util/half.h>

namespace taeda {

// Elements that one access reads or writes.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount) Pack {
  T at[kCount];
};

template <class T, int kCount>
__device__ inline void read_pack(Pack<T, kCount>& pack, const T* from) {
  pack = *reinterpret_cast<const Pack<T, kCount>*>(from);
}
template <class T, int kCount>
__device__ inline void write_pack(const Pack<T, kCount>& pack, T* to) {
  *reinterpret_cast<Pack<T, kCount>*>(to) = pack;
}

template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<complex<T>> = true;
// Storage formats, whose arithmetic is that of float.
template <class T>
inline constexpr bool kIsSmallFloat = false;
template <>
inline constexpr bool kIsSmallFloat<Half> = true;
template <>
inline constexpr bool kIsSmallFloat<BFloat16> = true;
template <>
inline constexpr bool kIsSmallFloat<Float8_e4m3fn> = true;
template <>
inline constexpr bool kIsSmallFloat<Float8_e5m2> = true;
template <>
inline constexpr bool kIsSmallFloat<Float8_e4m3fnuz> = true;
template <>
inline constexpr bool kIsSmallFloat<Float8_e5m2fnuz> = true;
template <>
inline constexpr bool kIsSmallFloat<Float8_e8m0fnu> = true;

// Small formats to float and back: by an instruction where the GPU has one, for
// c10/util's way takes more of them than a kernel has time for. Both round to
// even.
template <class From>
__device__ inline float widened(From v) {
#ifdef __CUDA_ARCH__
  if constexpr (math::kIsSame<From, Half>) {
    float wide;
    asm("cvt.f32.f16 %0, %1;" : "=f"(wide) : "h"(v.bits));
    return wide;
  }
#endif
  return static_cast<float>(v);
}
template <class To>
__device__ inline To narrowed(float v) {
#ifdef __CUDA_ARCH__
  if constexpr (math::kIsSame<To, Half>) {
    To small;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(small.bits) : "f"(v));
    return small;
  }
#if __CUDA_ARCH__ >= 800
  if constexpr (math::kIsSame<To, BFloat16>) {
    To small;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(small.bits) : "f"(v));
    return small;
  }
#endif
#endif
  return To(v);
}

// As tensors are cast: complex numbers lose their imaginary part.
template <class To, class From>
__device__ inline To converted(From v) {
  if constexpr (math::kIsSame<To, From>) {
    return v;
  } else if constexpr (kIsComplex<From> && kIsComplex<To>) {
    using R = RealOf<To>;
    return To(static_cast<R>(v.real()), static_cast<R>(v.imag()));
  } else if constexpr (kIsComplex<From> && math::kIsSame<To, bool>) {
    return v.real() != 0 || v.imag() != 0;
  } else if constexpr (kIsComplex<From>) {
    return converted<To>(v.real());
  } else if constexpr (kIsComplex<To>) {
    return To(converted<RealOf<To>>(v), RealOf<To>(0));
  } else if constexpr (kIsSmallFloat<From>) {
    return converted<To>(widened(v));
  } else if constexpr (kIsSmallFloat<To>) {
    return narrowed<To>(static_cast<float>(v));
  } else {
    return math::convert<To>(v);
  }
}

// Element i in memory, in the type that is computed in.
template <class To, class From>
__device__ inline To loaded(const From* in, Long i) {
  return converted<To>(element(in, i));
}

}  // namespace taeda
