// What kernels of the compiler's loop programs stand on, beside the prelude.
#pragma once

#include <taeda/aten/native/cuda/storage.cuh>

namespace taeda {

using math::convert;

// Loads with bounds: whether a dim has an index, the nearest one that it has,
// and the value that is chosen.
__device__ inline bool within(int64_t index, int64_t size) {
  return index >= 0 && index < size;
}
__device__ inline int64_t nearest(int64_t index, int64_t size) {
  return index < 0 ? 0 : index < size ? index : size - 1;
}
template <class T>
__device__ inline T chosen(bool is_chosen, T value, T other) {
  return is_chosen ? value : other;
}

// The value that the thread has whose number differs in the bits of `step`.
template <class T>
__device__ inline T exchange(T value, int step) {
  if constexpr (kIsComplex<T>) {
    return T(exchange(value.real(), step), exchange(value.imag(), step));
  } else if constexpr (sizeof(T) < 4) {
    int small = static_cast<int>(value);
    return static_cast<T>(__shfl_xor_sync(0xffffffffu, small, step));
  } else {
    return __shfl_xor_sync(0xffffffffu, value, step);
  }
}

// Each of `kLanes` neighbouring threads gets the fold of all their values.
template <int kLanes, class T, class F>
__device__ inline T meet_in_warp(T value, F combine) {
  for (int step = kLanes / 2; step > 0; step /= 2) {
    value = static_cast<T>(combine(value, exchange(value, step)));
  }
  return value;
}

// All lanes of a point get the fold of their values; all threads of the block
// call it, with the same memory of an element for each. In rows the lanes of a
// point are neighbours, in columns neighbours are of different points.
template <int kLanes, int kPoints, bool kColumns, class T, class F>
__device__ inline T meet(
    T value, int lane, int point, unsigned char* memory, F combine) {
  if constexpr (kLanes == 1) {
    return value;
  } else if constexpr (!kColumns && kLanes <= 32) {
    return meet_in_warp<kLanes>(value, combine);
  } else if constexpr (!kColumns) {
    constexpr int kWarps = kLanes / 32;
    T* parts = reinterpret_cast<T*>(memory) + point * kWarps;
    value = meet_in_warp<32>(value, combine);
    __syncthreads();  // what the last call left may still be read
    if (lane % 32 == 0) parts[lane / 32] = value;
    __syncthreads();
    return meet_in_warp<kWarps>(parts[lane % kWarps], combine);
  } else {
    T* parts = reinterpret_cast<T*>(memory) + point;
    __syncthreads();
    parts[lane * kPoints] = value;
    __syncthreads();
    for (int half = kLanes / 2; half > 0; half /= 2) {
      if (lane < half) {
        T& mine = parts[lane * kPoints];
        mine = static_cast<T>(combine(mine, parts[(lane + half) * kPoints]));
      }
      __syncthreads();
    }
    return parts[0];
  }
}

}  // namespace taeda
