#pragma once

// The 8-bit floats of the OCP "OFP8" and "MX" specifications and their "fnuz"
// variants (Noune et al. 2022): storage and conversion only. Overflow follows
// PyTorch 2.13: e4m3fn clamps to 448, e5m2 goes to infinity, fnuz to NaN.

#include <taeda/c10/util/small_float.h>

namespace taeda {

/// One 8-bit format; the four named formats below derive from it.
template <int kMantissa, int kBias, OverflowRule kRule>
struct Float8Base {
  uint8_t bits;

  Float8Base() = default;
  TAEDA_ALWAYS_INLINE Float8Base(
      float value)  // NOLINT: implicit, as every dtype converts
      : bits(static_cast<uint8_t>(
            detail::encode_small_float<8, kMantissa, kBias, kRule>(value))) {}

  TAEDA_ALWAYS_INLINE operator float() const {  // NOLINT
    return detail::decode_small_float<8, kMantissa, kBias, kRule>(bits);
  }
};

/// 4 exponent bits, 3 mantissa bits, no infinity; largest value 448.
struct Float8_e4m3fn : Float8Base<3, 7, OverflowRule::kSaturate> {
  using Float8Base::Float8Base;
};

/// 5 exponent bits, 2 mantissa bits, IEEE infinity and NaN.
struct Float8_e5m2 : Float8Base<2, 15, OverflowRule::kInfinity> {
  using Float8Base::Float8Base;
};

/// 4 exponent bits, 3 mantissa bits, bias 8, one NaN, no minus zero.
struct Float8_e4m3fnuz : Float8Base<3, 8, OverflowRule::kNanUnsignedZero> {
  using Float8Base::Float8Base;
};

/// 5 exponent bits, 2 mantissa bits, bias 16, one NaN, no minus zero.
struct Float8_e5m2fnuz : Float8Base<2, 16, OverflowRule::kNanUnsignedZero> {
  using Float8Base::Float8Base;
};

/// Eight exponent bits alone: the powers of two from 2^-127 to 2^127, and NaN.
struct Float8_e8m0fnu {
  uint8_t bits;

  Float8_e8m0fnu() = default;
  TAEDA_ALWAYS_INLINE Float8_e8m0fnu(float value)
      : bits(round_bits(value)) {}  // NOLINT

  TAEDA_ALWAYS_INLINE operator float() const {  // NOLINT
    const uint32_t code = bits;
    const uint32_t normal = code << 23;
    const uint32_t low = code == 0 ? 0x00400000u : normal;  // 2^-127
    return detail::float_of(code == 0xffu ? 0x7fc00000u : low);
  }

 private:
  // The sign is dropped. A value half way between two powers goes up, except
  // below 2^-127, where zero is the even neighbour (its code means 2^-127).
  TAEDA_ALWAYS_INLINE static uint8_t round_bits(float value) {
    const uint32_t magnitude = detail::bits_of(value) & 0x7fffffffu;
    const uint32_t exponent = magnitude >> 23;
    const uint32_t mantissa = magnitude & 0x7fffffu;
    const uint32_t threshold = exponent == 0 ? 0x400001u : 0x400000u;
    const uint32_t up = mantissa >= threshold ? 1u : 0u;
    return static_cast<uint8_t>(exponent == 0xffu ? 0xffu : exponent + up);
  }
};

static_assert(sizeof(Float8_e4m3fn) == 1 && sizeof(Float8_e8m0fnu) == 1);

}  // namespace taeda
