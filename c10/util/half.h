#pragma once

#include <taeda/c10/util/small_float.h>

namespace taeda {

/// IEEE binary16 as storage: arithmetic happens in float.
struct Half {
  uint16_t bits;

  Half() = default;
  TAEDA_ALWAYS_INLINE Half(
      float value)  // NOLINT: implicit, as every dtype converts
      : bits(static_cast<uint16_t>(
            detail::encode_small_float<16, 10, 15, OverflowRule::kInfinity>(
                value))) {}

  TAEDA_ALWAYS_INLINE static Half from_bits(uint16_t bits) {
    Half result;
    result.bits = bits;
    return result;
  }

  TAEDA_ALWAYS_INLINE operator float() const {  // NOLINT
    return detail::decode_small_float<16, 10, 15, OverflowRule::kInfinity>(
        bits);
  }
};

static_assert(sizeof(Half) == 2);

}  // namespace taeda
