// Products of sparse matrices in rows (CSR) with dense ones: the entries of a
// row are added up in their order, so that the same bits come out each time.
#pragma once

#include <taeda/aten/native/cuda/loops.cuh>
#include <taeda/aten/native/cuda/sparse_calls.cuh>

namespace taeda {

// What elements are added up in, and how one is read.
template <class S>
struct AddedAs {
  using type = S;
};
template <>
struct AddedAs<Half> {
  using type = float;
};
template <>
struct AddedAs<BFloat16> {
  using type = float;
};

template <class T>
__device__ inline T from_lane(T value, int lane) {
  if constexpr (kIsComplex<T>) {
    return T(from_lane(value.real(), lane), from_lane(value.imag(), lane));
  } else {
    return __shfl_sync(0xffffffffu, value, lane);
  }
}

// A warp has a row of the result and 32 of its columns: its threads read the
// places and values of 32 entries at once, and hand them to each other; rows of
// the dense matrix are read by threads beside each other.
template <class S, class I>
__device__ inline void sparse_rows_kernel(const SparseCall& call) {
  using V = typename AddedAs<S>::type;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Long row = static_cast<Long>(blockIdx.x) * (blockDim.x / 32) +
                   static_cast<Long>(threadIdx.x) / 32;
  if (row >= call.rows) return;
  const Long column = static_cast<Long>(blockIdx.y) * 32 + lane;
  const bool there = column < call.columns;
  const I* offsets = static_cast<const I*>(call.offsets);
  const I* places = static_cast<const I*>(call.places);
  const S* values = static_cast<const S*>(call.values);
  const S* dense = static_cast<const S*>(call.dense);
  const Long begin = offsets[row], end = offsets[row + 1];
  V sum = V(0);
  for (Long first = begin; first < end; first += 32) {
    const Long own = first + lane;
    const Long place = own < end ? static_cast<Long>(places[own]) : 0;
    const V value = own < end ? static_cast<V>(values[own]) : V(0);
    const int count = static_cast<int>(end - first < 32 ? end - first : 32);
    for (int k = 0; k < count; ++k) {
      const Long at = from_lane(place, k);
      const V by = from_lane(value, k);
      if (there) {
        sum = sum + by * static_cast<V>(dense[at * call.columns + column]);
      }
    }
  }
  if (there) {
    static_cast<S*>(call.out)[row * call.columns + column] =
        static_cast<S>(sum);
  }
}

// A vector: a warp has a row, each of its threads every 32nd entry.
template <class S, class I>
__device__ inline void sparse_vector_kernel(const SparseCall& call) {
  using V = typename AddedAs<S>::type;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Long row = static_cast<Long>(blockIdx.x) * (blockDim.x / 32) +
                   static_cast<Long>(threadIdx.x) / 32;
  if (row >= call.rows) return;
  const I* offsets = static_cast<const I*>(call.offsets);
  const I* places = static_cast<const I*>(call.places);
  const S* values = static_cast<const S*>(call.values);
  const S* dense = static_cast<const S*>(call.dense);
  V sum = V(0);
  for (Long i = offsets[row] + lane; i < offsets[row + 1]; i += 32) {
    sum = sum + static_cast<V>(values[i]) * static_cast<V>(dense[places[i]]);
  }
  sum = meet_in_warp<32>(sum, [](V a, V b) { return a + b; });
  if (lane == 0) static_cast<S*>(call.out)[row] = static_cast<S>(sum);
}

// Entries alone of a product of dense matrices, the first by rows and the
// second by columns: a warp for each row, whose entries come one by one.
template <class S, class I>
__device__ inline void sampled_kernel(const SparseCall& call) {
  using V = typename AddedAs<S>::type;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const Long row = static_cast<Long>(blockIdx.x) * (blockDim.x / 32) +
                   static_cast<Long>(threadIdx.x) / 32;
  if (row >= call.rows) return;
  const I* offsets = static_cast<const I*>(call.offsets);
  const I* places = static_cast<const I*>(call.places);
  const S* left = static_cast<const S*>(call.values) + row * call.columns;
  const S* right = static_cast<const S*>(call.dense);
  for (Long i = offsets[row]; i < offsets[row + 1]; ++i) {
    const S* column = right + static_cast<Long>(places[i]) * call.columns;
    V sum = V(0);
    for (Long k = lane; k < call.columns; k += 32) {
      sum = sum + static_cast<V>(left[k]) * static_cast<V>(column[k]);
    }
    sum = meet_in_warp<32>(sum, [](V a, V b) { return a + b; });
    if (lane == 0) static_cast<S*>(call.out)[i] = static_cast<S>(sum);
  }
}

}  // namespace taeda
