#pragma once

#include <taeda/c10/util/small_float.h>

namespace taeda {

/// The upper half of a float as storage: arithmetic happens in float.
struct BFloat16 {
  uint16_t bits;

  BFloat16() = default;
  TAEDA_ALWAYS_INLINE BFloat16(float value)
      : bits(round_bits(value)) {}  // NOLINT: implicit

  TAEDA_ALWAYS_INLINE static BFloat16 from_bits(uint16_t bits) {
    BFloat16 result;
    result.bits = bits;
    return result;
  }

  TAEDA_ALWAYS_INLINE operator float() const {  // NOLINT
    return detail::float_of(static_cast<uint32_t>(bits) << 16);
  }

 private:
  // Nearest, ties to even; every NaN becomes the positive quiet one.
  TAEDA_ALWAYS_INLINE static uint16_t round_bits(float value) {
    const uint32_t all = detail::bits_of(value);
    const uint32_t rounded = (all + 0x7fffu + ((all >> 16) & 1u)) >> 16;
    const bool is_nan = (all & 0x7fffffffu) > 0x7f800000u;
    return static_cast<uint16_t>(is_nan ? 0x7fc0u : rounded);
  }
};

static_assert(sizeof(BFloat16) == 2);

}  // namespace taeda
