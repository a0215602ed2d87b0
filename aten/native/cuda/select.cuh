// The first elements of a row in order, without sorting it: digits of eight
// bits, greatest first, tell the key of the last of them, and one more pass
// writes what stands before it, and of those that equal it as many as are left,
// the first of them first.
#pragma once

#include <taeda/aten/native/cuda/radix.cuh>
#include <taeda/aten/native/cuda/select_calls.cuh>

namespace taeda {

struct SelectShared {
  unsigned counts[kSortDigits];
  unsigned digit, before;
  unsigned smaller[kSelectThreads / 32], equal[kSelectThreads / 32];
};

// How many items of lower warps are among a flag's, and how many there are.
struct Counted {
  unsigned before, all;
};
__device__ inline Counted counted(unsigned* of_warps, bool flag) {
  const int id = static_cast<int>(threadIdx.x), warp = id / 32;
  const unsigned lanes = vote(flag);
  if (id % 32 == 0) of_warps[warp] = static_cast<unsigned>(ones(lanes));
  __syncthreads();
  Counted found{static_cast<unsigned>(ones(lanes & ((1u << (id % 32)) - 1))),
                0};
  for (int w = 0; w < kSelectThreads / 32; ++w) {
    if (w < warp) found.before += of_warps[w];
    found.all += of_warps[w];
  }
  return found;
}

// The digit of the item that `wanted` stand up to, and how many stand before
// its like: a warp has eight digits for each lane.
__device__ inline void find_digit(SelectShared& shared, unsigned wanted) {
  const int lane = static_cast<int>(threadIdx.x);
  if (lane >= 32) return;
  unsigned own = 0;
  for (int i = 0; i < 8; ++i) own += shared.counts[lane * 8 + i];
  unsigned upto = own;
  for (int step = 1; step < 32; step *= 2) {
    const int from = lane >= step ? lane - step : lane;
    const unsigned other = __shfl_sync(0xffffffffu, upto, from);
    if (lane >= step) upto += other;
  }
  unsigned before = upto - own;
  if (before >= wanted || upto < wanted) return;  // another lane's
  int i = 0;
  for (; before + shared.counts[lane * 8 + i] < wanted; ++i) {
    before += shared.counts[lane * 8 + i];
  }
  shared.digit = static_cast<unsigned>(lane * 8 + i);
  shared.before = before;
}

// A block for each row.
template <class S>
__device__ inline void select_row(const SelectCall& call) {
  using K = SortKey<S>;
  __shared__ SelectShared shared;
  const int id = static_cast<int>(threadIdx.x);
  const Long row = static_cast<Long>(blockIdx.x);
  const S* in = static_cast<const S*>(call.in) + row * call.count;
  const bool descending = call.descending != 0;
  auto key_at = [&](Long i) { return sort_key(element(in, i), descending); };
  unsigned left = static_cast<unsigned>(call.wanted);
  K last = 0;  // the digits of the last one so far
  constexpr int kBits = static_cast<int>(sizeof(S)) * 8;
  for (int shift = kBits - 8; shift >= 0; shift -= 8) {
    for (int d = id; d < kSortDigits; d += kSelectThreads) shared.counts[d] = 0;
    __syncthreads();
    for (Long begin = 0; begin < call.count; begin += kSelectThreads) {
      const Long i = begin + id;
      const K key = i < call.count ? key_at(i) : 0;
      const bool there =
          i < call.count &&
          (shift + 8 == kBits || key >> (shift + 8) == last >> (shift + 8));
      const unsigned digit = static_cast<unsigned>(key >> shift) & 0xffu;
      const unsigned same = equal_lanes(digit, there);
      if (there && (same & ((1u << (id % 32)) - 1)) == 0) {
        atomicAdd(&shared.counts[digit], static_cast<unsigned>(ones(same)));
      }
    }
    __syncthreads();
    find_digit(shared, left);
    __syncthreads();
    last |= static_cast<K>(shared.digit) << shift;
    left -= shared.before;
  }
  // `left` of those that equal the last one.
  const unsigned smaller = static_cast<unsigned>(call.wanted) - left;
  S* values = static_cast<S*>(call.values) + row * call.wanted;
  long long* indices = call.indices + row * call.wanted;
  unsigned of_smaller = 0, of_equal = 0;
  for (Long begin = 0; begin < call.count; begin += kSelectThreads) {
    const Long i = begin + id;
    const K key = i < call.count ? key_at(i) : 0;
    const bool less = i < call.count && key < last;
    const bool like = i < call.count && key == last;
    const Counted first = counted(shared.smaller, less);
    const Counted second = counted(shared.equal, like);
    unsigned to = of_smaller + first.before;
    if (like) to = smaller + of_equal + second.before;
    if (less || (like && of_equal + second.before < left)) {
      values[to] = in[i];
      indices[to] = i;
    }
    of_smaller += first.all;
    of_equal += second.all;
    __syncthreads();
  }
}

}  // namespace taeda
