// What generated pointwise kernels stand on. Everything here must be inlined or
// of internal linkage: the file is compiled for several ISA levels.
#pragma once

#include <taeda/aten/math/math.h>
#include <taeda/aten/native/cpu/kernels/isa.h>
#include <taeda/c10/util/complex.h>

#include <stdint.h>

#include <type_traits>

namespace taeda {

using ChunkFn = void (*)(void* const* ptrs, const void* scalars, int64_t n);
struct ChunkTable {
  ChunkFn each[10];
  ChunkFn single[2][2];
};

// Operands may be the output itself, element for element (in-place forms),
// which carries nothing from one iteration to the next.
#define TAEDA_INDEPENDENT _Pragma("GCC ivdep")

template <class T>
struct RealOfType {
  using type = T;
};
template <class T>
struct RealOfType<complex<T>> {
  using type = T;
};
template <class T>
using RealOf = typename RealOfType<T>::type;

// Note [Bytes of bool tensors]
// A bool tensor may be a view of other bytes (uint8.view(bool)): any but 0 is
// true. The language knows 0 and 1 alone, so elements are read as bytes.
// Besides, g++ 12 vectorises a test of a byte, not the load of a bool.
template <class T>
[[gnu::always_inline]] inline T element(const T* in, int64_t i) {
  if constexpr (std::is_same_v<T, bool>) {
    return reinterpret_cast<const unsigned char*>(in)[i] != 0;
  } else {
    return in[i];
  }
}

template <class T>
[[gnu::always_inline]] inline T scalar(const void* slots, int index) {
  return *reinterpret_cast<const T*>(static_cast<const char*>(slots) +
                                     16 * index);
}

}  // namespace taeda
