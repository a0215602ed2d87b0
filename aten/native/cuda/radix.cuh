// Stable sort by digits of eight bits, least first. A row that fits into a tile
// is sorted by one block within shared memory; longer ones take three passes
// over memory for a digit: count, sum the counts, move. Ranks come from votes
// of warps, so that equal digits keep their order without atomic operations.
#pragma once

#include <taeda/aten/native/cuda/loops.cuh>
#include <taeda/aten/native/cuda/radix_calls.cuh>

namespace taeda {

// The unsigned type of an element's bits.
template <int kBytes>
struct KeyOfSize {
  using type = unsigned;
};
template <>
struct KeyOfSize<8> {
  using type = unsigned long long;
};
template <class S>
using SortKey = typename KeyOfSize<sizeof(S)>::type;

template <class S>
struct SortedAs {
  using type = float;
};
template <>
struct SortedAs<double> {
  using type = double;
};

// Keys are ordered as elements are: -0 equals 0, and NaN is the largest.
template <class S>
__device__ inline SortKey<S> sort_key(S v, bool descending) {
  using K = SortKey<S>;
  constexpr int kBits = sizeof(S) * 8;
  constexpr K kSign = K(1) << (kBits - 1);
  constexpr K kAll = kSign | (kSign - 1);
  K key;
  if constexpr (kIsSmallFloat<S> || math::kIsSame<S, float> ||
                math::kIsSame<S, double>) {
    using F = typename SortedAs<S>::type;
    const F wide = converted<F>(v);
    K bits = 0;
    if constexpr (sizeof(S) == 2) {
      bits = *reinterpret_cast<const unsigned short*>(&v);
    } else if constexpr (sizeof(S) == 1) {
      bits = *reinterpret_cast<const unsigned char*>(&v);
    } else {
      bits = *reinterpret_cast<const K*>(&v);
    }
    if (wide == F(0)) bits = 0;
    key = (bits & kSign) != 0 ? ~bits & kAll : bits | kSign;
    if (wide != wide) key = kAll;
  } else if constexpr (math::kIsSame<S, bool>) {
    key = v ? 1 : 0;
  } else {
    key = static_cast<K>(v) & kAll;
    if constexpr (S(-1) < S(0)) key ^= kSign;
  }
  return descending ? ~key & kAll : key;
}

// Bit l: whether lane l of the warp says yes.
__device__ inline unsigned vote(bool yes) {
#ifdef __CUDA_ARCH__
  return __ballot_sync(0xffffffffu, yes);
#else
  unsigned mask = yes ? 1u << (threadIdx.x % 32) : 0u;
  for (int step = 16; step > 0; step /= 2) mask |= exchange(mask, step);
  return mask;
#endif
}
__device__ inline void wait_for_warp() {
#ifdef __CUDA_ARCH__
  __syncwarp();
#else
  exchange(0, 1);
#endif
}
__device__ inline int ones(unsigned mask) {
#ifdef __CUDA_ARCH__
  return __popc(mask);
#else
  return __builtin_popcount(mask);
#endif
}

// The lanes whose digit is this one's, among those that have one.
__device__ inline unsigned equal_lanes(unsigned digit, bool there) {
  unsigned mask = vote(there);
  for (int bit = 0; bit < 8; ++bit) {
    const bool set = (digit >> bit & 1u) != 0;
    const unsigned lanes = vote(set);
    mask &= set ? lanes : ~lanes;
  }
  return mask;
}

struct SortShared {
  unsigned counters[kSortThreads / 32][kSortDigits];
  unsigned sums[kSortDigits];
};

// Item h of a thread is number 32 h + lane of its warp's share of the tile.
__device__ inline int item_of(int held) {
  const int id = static_cast<int>(threadIdx.x);
  return id / 32 * (32 * kSortHeld) + held * 32 + id % 32;
}

// ranks: how many of its warp's items with the same digit stand before each;
// counters: how many a warp has of each digit.
template <class K>
__device__ inline void rank_items(
    SortShared& shared, const K* keys, int shift, int count, int* ranks) {
  const int id = static_cast<int>(threadIdx.x), warp = id / 32;
  unsigned* own = shared.counters[warp];
  for (int d = id % 32; d < kSortDigits; d += 32) own[d] = 0;
  wait_for_warp();
  for (int h = 0; h < kSortHeld; ++h) {
    const bool there = item_of(h) < count;
    const unsigned digit = static_cast<unsigned>(keys[h] >> shift) & 0xffu;
    const unsigned same = equal_lanes(digit, there);
    const unsigned before = same & ((1u << (id % 32)) - 1);
    const unsigned base = there ? own[digit] : 0;
    wait_for_warp();
    if (there && before == 0) {
      own[digit] = base + static_cast<unsigned>(ones(same));
    }
    wait_for_warp();
    ranks[h] = static_cast<int>(base) + ones(before);
  }
  __syncthreads();
}

// Exclusive sums of one number for each of 256 threads.
__device__ inline unsigned sums_before(unsigned* memory, unsigned own) {
  const int id = static_cast<int>(threadIdx.x);
  memory[id] = own;
  __syncthreads();
  for (int step = 1; step < kSortDigits; step *= 2) {
    const unsigned other = id >= step ? memory[id - step] : 0;
    __syncthreads();
    memory[id] += other;
    __syncthreads();
  }
  return memory[id] - own;
}

// Counters become where each warp's first item of a digit goes, given where the
// tile's first one goes; thread d has digit d.
__device__ inline void place_digits(SortShared& shared, unsigned start) {
  const int id = static_cast<int>(threadIdx.x);
  for (int w = 0; w < kSortThreads / 32; ++w) {
    const unsigned own = shared.counters[w][id];
    shared.counters[w][id] = start;
    start += own;
  }
  __syncthreads();
}
__device__ inline unsigned digit_total(const SortShared& shared) {
  unsigned total = 0;
  for (int w = 0; w < kSortThreads / 32; ++w) {
    total += shared.counters[w][threadIdx.x];
  }
  return total;
}

// A block for each row, which is one tile.
template <class S>
__device__ inline void sort_tile(const SortCall& call) {
  using K = SortKey<S>;
  __shared__ SortShared shared;
  __shared__ K sorted[kSortTile];
  __shared__ unsigned short from[kSortTile];
  const Long row = static_cast<Long>(blockIdx.x) * call.count;
  const S* in = static_cast<const S*>(call.in) + row;
  const int count = static_cast<int>(call.count);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  K keys[kSortHeld];
  unsigned short places[kSortHeld];
  int ranks[kSortHeld];
  for (int h = 0; h < kSortHeld; ++h) {
    const int i = item_of(h);
    places[h] = static_cast<unsigned short>(i);
    keys[h] = i < count ? sort_key(element(in, i), call.descending != 0) : 0;
  }
  for (int shift = 0; shift < static_cast<int>(sizeof(S)) * 8; shift += 8) {
    rank_items(shared, keys, shift, count, ranks);
    const unsigned total = digit_total(shared);
    place_digits(shared, sums_before(shared.sums, total));
    for (int h = 0; h < kSortHeld; ++h) {
      if (item_of(h) >= count) continue;
      const unsigned digit = static_cast<unsigned>(keys[h] >> shift) & 0xffu;
      const unsigned to =
          shared.counters[warp][digit] + static_cast<unsigned>(ranks[h]);
      sorted[to] = keys[h];
      from[to] = places[h];
    }
    __syncthreads();
    for (int h = 0; h < kSortHeld; ++h) {
      if (item_of(h) >= count) continue;
      keys[h] = sorted[item_of(h)];
      places[h] = from[item_of(h)];
    }
    __syncthreads();
  }
  for (int h = 0; h < kSortHeld; ++h) {
    const int i = item_of(h);
    if (i >= count) continue;
    static_cast<S*>(call.values)[row + i] = in[places[h]];
    call.indices[row + i] = places[h];
  }
}

// Items of a tile: from the input in the first pass, then from keys and places.
template <class S>
struct SortItems {
  using K = SortKey<S>;
  Long begin, row;
  int count;
  K keys[kSortHeld];

  __device__ inline explicit SortItems(const SortCall& call)
      : begin(static_cast<Long>(blockIdx.x) * kSortTile),
        row(static_cast<Long>(blockIdx.y) * call.count) {
    const Long left = call.count - begin;
    count = static_cast<int>(left < kSortTile ? left : kSortTile);
    for (int h = 0; h < kSortHeld; ++h) {
      const Long at = row + begin + item_of(h);
      keys[h] = 0;
      if (item_of(h) >= count) continue;
      keys[h] = call.keys == nullptr
                    ? sort_key(element(static_cast<const S*>(call.in), at),
                               call.descending != 0)
                    : static_cast<const K*>(call.keys)[at];
    }
  }
};

template <class S>
__device__ inline void sort_count(const SortCall& call) {
  __shared__ unsigned counts[kSortDigits];
  counts[threadIdx.x] = 0;
  __syncthreads();
  const SortItems<S> items(call);
  for (int h = 0; h < kSortHeld; ++h) {
    if (item_of(h) >= items.count) continue;
    atomicAdd(
        &counts[static_cast<unsigned>(items.keys[h] >> call.shift) & 0xffu],
        1u);
  }
  __syncthreads();
  const Long tile = static_cast<Long>(blockIdx.y) * call.tiles + blockIdx.x;
  call.counts[tile * kSortDigits + threadIdx.x] = counts[threadIdx.x];
}

// A block for each row: counts become where the first of each digit of each
// tile goes.
template <int>
__device__ inline void sort_sums(const SortCall& call) {
  __shared__ unsigned memory[kSortDigits];
  unsigned* counts = call.counts +
                     static_cast<Long>(blockIdx.x) * call.tiles * kSortDigits +
                     threadIdx.x;
  unsigned total = 0;
#pragma unroll 8
  for (int t = 0; t < call.tiles; ++t) total += counts[t * kSortDigits];
  unsigned start = sums_before(memory, total);
#pragma unroll 8
  for (int t = 0; t < call.tiles; ++t) {
    const unsigned own = counts[t * kSortDigits];
    counts[t * kSortDigits] = start;
    start += own;
  }
}

template <class S>
__device__ inline void sort_move(const SortCall& call) {
  using K = SortKey<S>;
  __shared__ SortShared shared;
  const SortItems<S> items(call);
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int ranks[kSortHeld];
  rank_items(shared, items.keys, call.shift, items.count, ranks);
  const Long tile = static_cast<Long>(blockIdx.y) * call.tiles + blockIdx.x;
  place_digits(shared, call.counts[tile * kSortDigits + threadIdx.x]);
  for (int h = 0; h < kSortHeld; ++h) {
    const int i = item_of(h);
    if (i >= items.count) continue;
    const unsigned digit =
        static_cast<unsigned>(items.keys[h] >> call.shift) & 0xffu;
    const Long to = items.row + shared.counters[warp][digit] +
                    static_cast<unsigned>(ranks[h]);
    const unsigned place = call.places == nullptr
                               ? static_cast<unsigned>(items.begin + i)
                               : call.places[items.row + items.begin + i];
    if (call.last) {
      static_cast<S*>(call.values)[to] =
          static_cast<const S*>(call.in)[items.row + place];
      call.indices[to] = place;
    } else {
      static_cast<K*>(call.next_keys)[to] = items.keys[h];
      call.next_places[to] = place;
    }
  }
}

}  // namespace taeda
