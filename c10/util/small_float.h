#pragma once

// Shared arithmetic of the storage-only float formats (half, bfloat16, float8):
// one template on (mantissa bits, exponent bias, NaN/inf rule). Everything is
// written as selects over integers, so that loops over it vectorise, and no
// step depends on subnormal floats being honoured (flush-to-zero is safe).
// No standard header is used under NVRTC: its prelude defines the integers.

#ifndef __CUDACC_RTC__
#include <cstdint>
#endif

// Files of different ISA levels include this: an out-of-line copy that the
// linker picked from the AVX-512 one would crash elsewhere, so all of it is
// inlined.
#if defined(__CUDACC__)  // NVRTC defines it too
#define TAEDA_ALWAYS_INLINE __host__ __device__ __forceinline__
#else
#define TAEDA_ALWAYS_INLINE inline __attribute__((always_inline))
#endif

namespace taeda {

/// What a small float does with values beyond its largest finite one.
enum class OverflowRule {
  kInfinity,        ///< IEEE: exponent all ones is infinity or NaN.
  kSaturate,        ///< "fn": clamps, infinity too; only all ones is NaN.
  kNanUnsignedZero  ///< "fnuz": NaN is the code of minus zero.
};

namespace detail {

TAEDA_ALWAYS_INLINE uint32_t bits_of(float value) {
  return __builtin_bit_cast(uint32_t, value);
}

TAEDA_ALWAYS_INLINE float float_of(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}

/// 2^exponent for a normal float.
TAEDA_ALWAYS_INLINE constexpr float power_of_two(int exponent) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(exponent + 127) << 23);
}

/// A float rounded to the nearest code, ties to even; the sign is at bit
/// `kWidth - 1` of the result.
template <int kWidth, int kMantissa, int kBias, OverflowRule kRule>
TAEDA_ALWAYS_INLINE uint32_t encode_small_float(float value) {
  constexpr int kDrop = 23 - kMantissa;
  constexpr uint32_t kSignBit = 1u << (kWidth - 1);
  constexpr uint32_t kAllOnes = kSignBit - 1;
  constexpr uint32_t kInfCode = kRule == OverflowRule::kInfinity
                                    ? (kAllOnes >> kMantissa) << kMantissa
                                    : kAllOnes;
  constexpr uint32_t kSmallestNormal = static_cast<uint32_t>(128 - kBias) << 23;
  // Adding this float leaves the subnormal code, already rounded by the
  // addition, in the low mantissa bits: its ulp is the code's smallest step.
  constexpr float kMagic = power_of_two(24 - kBias - kMantissa);
  const uint32_t all = bits_of(value);
  const uint32_t magnitude = all & 0x7fffffffu;
  const uint32_t rounded =
      magnitude + ((1u << (kDrop - 1)) - 1) + ((magnitude >> kDrop) & 1u);
  const uint32_t normal =
      (rounded >> kDrop) - (static_cast<uint32_t>(127 - kBias) << kMantissa);
  const uint32_t subnormal =
      bits_of(float_of(magnitude) + kMagic) - bits_of(kMagic);
  uint32_t code = magnitude < kSmallestNormal ? subnormal : normal;
  const bool is_nan = magnitude > 0x7f800000u;
  const uint32_t sign = (all >> (32 - kWidth)) & kSignBit;
  if constexpr (kRule == OverflowRule::kInfinity) {
    // The float with the code's infinity as its (rebiased) exponent.
    constexpr uint32_t kLimit =
        (kInfCode + (static_cast<uint32_t>(127 - kBias) << kMantissa)) << kDrop;
    code = rounded >= kLimit ? kInfCode : code;
    // Half keeps the payload's upper bits, as F16C does; float8 has one NaN.
    const uint32_t nan_code =
        kWidth == 16 ? kInfCode | (1u << (kMantissa - 1)) |
                           ((magnitude >> kDrop) & ((1u << kMantissa) - 1))
                     : kAllOnes;
    return sign | (is_nan ? nan_code : code);
  } else if constexpr (kRule == OverflowRule::kSaturate) {
    code = magnitude >= kSmallestNormal && code > kAllOnes - 1 ? kAllOnes - 1
                                                               : code;
    return sign | (is_nan ? kAllOnes : code);
  } else {
    constexpr uint32_t kLimit =
        (kAllOnes + 1 + (static_cast<uint32_t>(127 - kBias) << kMantissa))
        << kDrop;
    const uint32_t with_sign = code == 0 ? 0u : sign | code;
    return rounded >= kLimit ? kSignBit : with_sign;
  }
}

/// The exact float of a code.
template <int kWidth, int kMantissa, int kBias, OverflowRule kRule>
TAEDA_ALWAYS_INLINE float decode_small_float(uint32_t code) {
  constexpr int kDrop = 23 - kMantissa;
  constexpr uint32_t kSignBit = 1u << (kWidth - 1);
  constexpr uint32_t kAllOnes = kSignBit - 1;
  constexpr float kStep = power_of_two(1 - kBias - kMantissa);
  const uint32_t magnitude = code & kAllOnes;
  const uint32_t sign = (code & kSignBit) << (32 - kWidth);
  const uint32_t normal =
      (magnitude << kDrop) + (static_cast<uint32_t>(127 - kBias) << 23);
  const uint32_t subnormal =
      bits_of(static_cast<float>(static_cast<int32_t>(magnitude)) * kStep);
  uint32_t bits = magnitude < (1u << kMantissa) ? subnormal : normal;
  if constexpr (kRule == OverflowRule::kInfinity) {
    constexpr uint32_t kInfCode = (kAllOnes >> kMantissa) << kMantissa;
    const bool is_nan = magnitude > kInfCode;
    const uint32_t quiet = is_nan ? 0x7fc00000u : 0x7f800000u;
    const uint32_t special = quiet | (magnitude << kDrop);
    bits = magnitude >= kInfCode ? special : bits;
    return float_of(sign | bits);
  } else if constexpr (kRule == OverflowRule::kSaturate) {
    bits = magnitude == kAllOnes ? 0x7fc00000u : bits;
    return float_of(sign | bits);
  } else {
    return float_of(code == kSignBit ? 0x7fc00000u : sign | bits);
  }
}

}  // namespace detail
}  // namespace taeda
