// Loops over the tensors of a table. A block has a chunk of one tensor, which
// it finds by halving; small tensors cost a block each, large ones many.
#pragma once

#include <taeda/aten/native/cuda/rows.cuh>
#include <taeda/aten/native/cuda/table_calls.cuh>

namespace taeda {

struct TableChunk {
  int tensor;
  Long begin;
  int count;

  __device__ inline explicit TableChunk(const TensorTable& table) {
    const int chunk = static_cast<int>(blockIdx.x);
    int low = 0, high = table.tensors;
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      if (table.first[middle] <= chunk) {
        low = middle;
      } else {
        high = middle;
      }
    }
    tensor = low;
    begin = static_cast<Long>(chunk - table.first[low]) * kTableChunk;
    const Long left = table.numel[low] - begin;
    count = static_cast<int>(left < kTableChunk ? left : kTableChunk);
  }
  template <class S>
  __device__ inline S* memory(const TensorTable& table, int list) const {
    void* at = table.memory[list][tensor];
    return at == nullptr ? nullptr : static_cast<S*>(at) + begin;
  }
  // Of what has one element for all of the tensor.
  template <class S>
  __device__ inline S* start(const TensorTable& table, int list) const {
    return static_cast<S*>(table.memory[list][tensor]);
  }
};

// f(packs, place) over the elements of kLists arrays that lie alike, with packs
// of 16 bytes where they are aligned; `read` and `written` have a bit for each
// list that comes from memory and goes back. Absent lists have null.
template <int kLists, class S, int kPack, class F>
__device__ inline void sweep_packs(S* const* lists,
                                   int begin,
                                   int count,
                                   unsigned read,
                                   unsigned written,
                                   F f) {
  constexpr int kThreads = 256;
  int i = begin + static_cast<int>(threadIdx.x) * kPack;
  for (; i + kPack <= count; i += kThreads * kPack) {
    Pack<S, kPack> packs[kLists];
    TAEDA_MATH_UNROLL
    for (int l = 0; l < kLists; ++l) {
      if (lists[l] != nullptr && (read >> l & 1u) != 0) {
        read_pack(packs[l], lists[l] + i);
      }
    }
    TAEDA_MATH_UNROLL
    for (int k = 0; k < kPack; ++k) f(packs, k);
    TAEDA_MATH_UNROLL
    for (int l = 0; l < kLists; ++l) {
      if (lists[l] != nullptr && (written >> l & 1u) != 0) {
        write_pack(packs[l], lists[l] + i);
      }
    }
  }
}
template <int kLists, class S, class F>
__device__ inline void sweep(S* const* lists,
                             int count,
                             bool aligned,
                             unsigned read,
                             unsigned written,
                             F f) {
  constexpr int kPack = 16 / sizeof(S);
  int whole = 0;
  if (aligned) {
    whole = count / kPack * kPack;
    sweep_packs<kLists, S, kPack>(lists, 0, whole, read, written, f);
  }
  sweep_packs<kLists, S, 1>(lists, whole, count, read, written, f);
}

}  // namespace taeda
