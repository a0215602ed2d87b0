#pragma once

// Conversions of contiguous buffers between the storage floats and float. The
// plain loops vectorise at -O3; half uses the F16C instructions where the
// translation unit is compiled for them, because those are one instruction.
// Buffers must not overlap.

#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/float8.h>
#include <taeda/c10/util/half.h>

#include <cstdint>
#include <cstring>

namespace taeda {

// Internal linkage: every ISA level compiles these with its own flags, and the
// linker must not merge them into one.
namespace {

/// One of `From` and `To` is float, the other any storage float.
template <typename From, typename To>
inline void convert(const From* __restrict from,
                    To* __restrict to,
                    int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<To>(static_cast<float>(from[i]));
  }
}

#if defined(__F16C__) && defined(__GNUC__) && !defined(__clang__)
// The builtins behind _cvtph_ps: <immintrin.h> costs 0.25 s per file.
using HalfVector8 = short __attribute__((vector_size(16)));
using FloatVector8 = float __attribute__((vector_size(32)));

inline void convert(const Half* from, float* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    HalfVector8 halves;
    std::memcpy(&halves, from + i, sizeof(halves));
    const FloatVector8 floats = __builtin_ia32_vcvtph2ps256(halves);
    std::memcpy(to + i, &floats, sizeof(floats));
  }
  convert<>(from + i, to + i, count - i);
}

inline void convert(const float* from, Half* to, int64_t count) {
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    FloatVector8 floats;
    std::memcpy(&floats, from + i, sizeof(floats));
    const HalfVector8 halves =
        __builtin_ia32_vcvtps2ph256(floats, /*round to nearest even*/ 0);
    std::memcpy(to + i, &halves, sizeof(halves));
  }
  convert<>(from + i, to + i, count - i);
}
#endif

}  // namespace
}  // namespace taeda
