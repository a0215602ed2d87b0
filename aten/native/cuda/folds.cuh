// Folds and scans of rows by a warp or a block each, in the order of the
// elements: the formula may tell apart which of two equal ones comes first.
#pragma once

#include <taeda/aten/native/cuda/folds_calls.cuh>
#include <taeda/aten/native/cuda/formula.cuh>

namespace taeda {

// The state that another lane of the warp has.
template <class S>
__device__ inline S state_of(const S& own, int lane) {
  constexpr int kWords = sizeof(S) / 4;
  static_assert(sizeof(S) % 4 == 0 && sizeof(S) <= kFoldState);
  unsigned words[kWords];
  memcpy(words, &own, sizeof(S));
  TAEDA_MATH_UNROLL
  for (int i = 0; i < kWords; ++i) {
    words[i] = __shfl_sync(0xffffffffu, words[i], lane);
  }
  S other = own;
  memcpy(&other, words, sizeof(S));
  return other;
}

// one(i) for each i of [begin, end), folded by a warp, of which all lanes get
// the state. F::none() where there is none.
template <class F, class One>
__device__ inline typename F::State fold_by_warp(Long begin,
                                                 Long end,
                                                 One one) {
  using State = typename F::State;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int first = lane * kFoldHeld;
  State all = F::none();
  for (Long tile = begin; tile < end; tile += 32 * kFoldHeld) {
    const Long left = end - tile;
    State own = F::none();
    if (first < left) own = one(tile + first);
    TAEDA_MATH_UNROLL
    for (int k = 1; k < kFoldHeld; ++k) {
      if (first + k < left) own = F::both(own, one(tile + first + k));
    }
    // Right in lanes that are multiples of what was joined, which lane 0 is.
    for (int step = 1; step < 32; step *= 2) {
      const State next = state_of(own, lane ^ step);
      const bool joins = (lane & step) == 0 && first + step * kFoldHeld < left;
      if (joins) own = F::both(own, next);
    }
    all = tile == begin ? own : F::both(all, own);
  }
  return state_of(all, 0);
}

// The same by a block, whose warps have a part each, one behind the other; only
// the first thread gets the state. `memory` is of a state for each warp.
template <class F, class One>
__device__ inline typename F::State fold_by_block(Long begin,
                                                  Long end,
                                                  unsigned char* memory,
                                                  One one) {
  using State = typename F::State;
  constexpr int kWarps = kFoldThreads / 32, kTile = 32 * kFoldHeld;
  const int id = static_cast<int>(threadIdx.x);
  State* parts = reinterpret_cast<State*>(memory);
  const Long part =
      ((end - begin + kWarps - 1) / kWarps + kTile - 1) / kTile * kTile;
  const Long from = begin + part * (id / 32);
  const Long to = from + part < end ? from + part : end;
  const State own = fold_by_warp<F>(from, to, one);
  if (id % 32 == 0) parts[id / 32] = own;
  __syncthreads();
  State all = own;
  for (int w = 1; id == 0 && w < kWarps && begin + part * w < end; ++w) {
    all = F::both(all, parts[w]);
  }
  return all;
}

template <class F, int kLanes, class G>
__device__ inline void fold_rows(const G& g, Long rows, Long count) {
  using State = typename F::State;
  constexpr int kRows = kFoldThreads / kLanes;
  alignas(16)
      __shared__ unsigned char memory[kFoldThreads / 32 * sizeof(State)];
  const int id = static_cast<int>(threadIdx.x);
  const Long row = static_cast<Long>(blockIdx.x) * kRows + id / kLanes;
  if (row >= rows) return;  // whole warps
  auto one = [&](Long i) { return F::one(g, row * count + i, i); };
  State all;
  if constexpr (kLanes == 32) {
    all = fold_by_warp<F>(0, count, one);
  } else {
    all = fold_by_block<F>(0, count, memory, one);
  }
  if (id % kLanes == 0) F::finish(g, all, row, count);
}

// The element that comes i-th, as scans with kStep go.
template <int kStep>
__device__ inline Long scanned(Long i, Long count) {
  return kStep >= 0 ? i : count - 1 - i;
}

// Rows of which a block has one of `g.splits` shares: what each folds to.
template <class F, int kStep, class G>
__device__ inline void fold_shares(const G& g, Long count) {
  using State = typename F::State;
  alignas(16)
      __shared__ unsigned char memory[kFoldThreads / 32 * sizeof(State)];
  const Long row = blockIdx.x, share = g.share.integer();
  const Long begin = share * blockIdx.y;
  const Long end = begin + share < count ? begin + share : count;
  const State all = fold_by_block<F>(begin, end, memory, [&](Long place) {
    const Long i = scanned<kStep>(place, count);
    return F::one(g, row * count + i, i);
  });
  if (threadIdx.x == 0) {
    void* parts = g.parts.data();
    static_cast<State*>(parts)[row * g.splits.integer() + blockIdx.y] = all;
  }
}

// What the first `shares` of a row fold to, in all threads.
template <class F, class G>
__device__ inline typename F::State fold_parts(const G& g,
                                               Long row,
                                               Long shares) {
  using State = typename F::State;
  const void* memory = g.parts.data();
  const State* parts =
      static_cast<const State*>(memory) + row * g.splits.integer();
  return fold_by_warp<F>(0, shares, [&](Long i) { return parts[i]; });
}

template <class F, class G>
__device__ inline void join_shares(const G& g, Long rows, Long count) {
  const int id = static_cast<int>(threadIdx.x);
  const Long row =
      static_cast<Long>(blockIdx.x) * (kFoldThreads / 32) + id / 32;
  if (row >= rows) return;  // whole warps
  const auto all = fold_parts<F>(g, row, g.splits.integer());
  if (id % 32 == 0) F::finish(g, all, row, count);
}

// What came before the elements that are looked at, if anything did.
template <class State>
struct Carry {
  State state;
  bool there;
};
template <class F, class State>
__device__ inline Carry<State> carried(const Carry<State>& carry,
                                       const State& next) {
  return {carry.there ? F::both(carry.state, next) : next, true};
}

// done(i, state of all up to i) for each i of [begin, end). A lane has a few
// elements beside each other; those that have none come last, so that what they
// hold is joined to nobody's.
template <class F, int kLanes, class One, class Done>
__device__ inline void scan_by(Long begin,
                               Long end,
                               Carry<typename F::State> carry,
                               unsigned char* memory,
                               One one,
                               Done done) {
  using State = typename F::State;
  constexpr int kWarps = kLanes / 32;
  const int lane = static_cast<int>(threadIdx.x) % kLanes;
  const int in_warp = lane % 32, first = lane * kFoldHeld;
  State* totals = reinterpret_cast<State*>(memory);
  for (Long tile = begin; tile < end; tile += kLanes * kFoldHeld) {
    const Long left = end - tile;
    State own[kFoldHeld];
    own[0] = first < left ? one(tile + first) : F::none();
    TAEDA_MATH_UNROLL
    for (int k = 1; k < kFoldHeld; ++k) {
      own[k] = first + k < left ? F::both(own[k - 1], one(tile + first + k))
                                : own[k - 1];
    }
    State sum = own[kFoldHeld - 1];
    for (int step = 1; step < 32; step *= 2) {
      const State before = state_of(sum, in_warp >= step ? in_warp - step : 0);
      if (in_warp >= step) sum = F::both(before, sum);
    }
    const State before = state_of(sum, in_warp > 0 ? in_warp - 1 : 0);
    Carry<State> all = carry;
    if constexpr (kWarps == 1) {
      carry = carried<F>(carry, state_of(sum, 31));
    } else {
      if (in_warp == 31) totals[lane / 32] = sum;
      __syncthreads();
      TAEDA_MATH_UNROLL
      for (int w = 0; w < kWarps; ++w) {
        if (w == lane / 32) all = carry;
        carry = carried<F>(carry, totals[w]);
      }
      // The next totals go where nobody reads these.
      totals = reinterpret_cast<State*>(
          memory + (totals == reinterpret_cast<State*>(memory)
                        ? kWarps * sizeof(State)
                        : 0));
    }
    if (in_warp > 0) all = carried<F>(all, before);
    TAEDA_MATH_UNROLL
    for (int k = 0; k < kFoldHeld; ++k) {
      if (first + k >= left) break;
      done(tile + first + k, carried<F>(all, own[k]).state);
    }
  }
}

template <class F, int kStep, int kLanes, class G>
__device__ inline void scan_rows(const G& g, Long rows, Long count) {
  using State = typename F::State;
  constexpr int kRows = kFoldThreads / kLanes;
  alignas(16)
      __shared__ unsigned char memory[kFoldThreads / 16 * sizeof(State)];
  const int id = static_cast<int>(threadIdx.x);
  const Long row = static_cast<Long>(blockIdx.x) * kRows + id / kLanes;
  if (row >= rows) return;  // whole warps
  scan_by<F, kLanes>(
      0,
      count,
      Carry<State>{F::none(), false},
      memory,
      [&](Long place) {
        const Long i = scanned<kStep>(place, count);
        return F::one(g, row * count + i, i);
      },
      [&](Long place, const State& all) {
        F::finish(g, all, row * count + scanned<kStep>(place, count), count);
      });
}

// Given what each share folds to.
template <class F, int kStep, class G>
__device__ inline void scan_shares(const G& g, Long count) {
  using State = typename F::State;
  alignas(16)
      __shared__ unsigned char memory[kFoldThreads / 16 * sizeof(State)];
  const Long row = blockIdx.x, share = g.share.integer();
  const Long begin = share * blockIdx.y;
  const Long end = begin + share < count ? begin + share : count;
  scan_by<F, kFoldThreads>(
      begin,
      end,
      Carry<State>{fold_parts<F>(g, row, blockIdx.y), blockIdx.y > 0},
      memory,
      [&](Long place) {
        const Long i = scanned<kStep>(place, count);
        return F::one(g, row * count + i, i);
      },
      [&](Long place, const State& all) {
        F::finish(g, all, row * count + scanned<kStep>(place, count), count);
      });
}

}  // namespace taeda
