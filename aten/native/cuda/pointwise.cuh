// The loops of pointwise programs, whose text pointwise.cpp prints.
#pragma once

#include <taeda/aten/native/cuda/storage.cuh>

namespace taeda {

// Of a call with `kOperands` operands; 0 is what is written. Strides are in
// elements, innermost dim first. Numbers take 16 bytes each.
template <int kOperands, int kNumbers>
struct PointwiseCall {
  Long count;
  void* memory[kOperands];
  int dims;
  int sizes[kMaxDims];
  Long strides[kOperands][kMaxDims];
  alignas(16) unsigned char numbers[kNumbers > 0 ? kNumbers : 1][16];
};

template <class T, class C>
__device__ inline T number_of(const C& call, int i) {
  return *reinterpret_cast<const T*>(call.numbers[i]);
}

// Where each operand's element stands, in elements.
template <class Index, int kOperands, int kNumbers>
struct Places {
  Index at[kOperands];

  __device__ inline Places(const PointwiseCall<kOperands, kNumbers>& call,
                           Index position) {
    TAEDA_MATH_UNROLL
    for (int k = 0; k < kOperands; ++k) at[k] = 0;
    for (int d = 0; d < call.dims; ++d) {
      Index size = static_cast<Index>(call.sizes[d]);
      Index next = d + 1 < call.dims ? position / size : 0;
      Index here = position - next * size;
      TAEDA_MATH_UNROLL
      for (int k = 0; k < kOperands; ++k) {
        at[k] += here * static_cast<Index>(call.strides[k][d]);
      }
      position = next;
    }
  }
};

}  // namespace taeda
