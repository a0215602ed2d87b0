// Kernels of rows: one reads a row once into registers, folds it, and writes
// what it made of it. So memory is passed over once, whatever the operator
// needs to know about a row before it can write its first element.
#pragma once

#include <taeda/aten/native/cuda/loops.cuh>
#include <taeda/aten/native/cuda/row_calls.cuh>

namespace taeda {

// What elements are added up in.
template <class S>
struct AccumulatedAs {
  using type = float;
};
template <>
struct AccumulatedAs<double> {
  using type = double;
};
template <class S>
using Accumulated = typename AccumulatedAs<S>::type;

// What a thread has of a row: kHeld packs of 16 bytes, those of kLanes threads
// beside each other. Packs begin where memory is a multiple of their size, so
// that the first and the last of a row may be parts.
template <int kLanes, int kHeld, int kPack>
struct RowShape {
  int count, shift, lane;
  bool whole;  // no pack is a part

  template <class S>
  __device__ inline RowShape(const S* row, Long elements, int own)
      : count(static_cast<int>(elements)), lane(own) {
    const auto at = reinterpret_cast<unsigned long long>(row);
    shift = static_cast<int>(at / sizeof(S) % kPack);
    whole = shift == 0 && count % kPack == 0;
  }
  __device__ inline int first_of(int held) const {
    return (held * kLanes + lane) * kPack - shift;
  }
  __device__ inline bool has(int column) const {
    return static_cast<unsigned>(column) < static_cast<unsigned>(count);
  }
  // f(held, k, column) for each element of this thread.
  template <class F>
  __device__ inline void each(F f) const {
    TAEDA_MATH_UNROLL
    for (int h = 0; h < kHeld; ++h) {
      const int first = first_of(h);
      TAEDA_MATH_UNROLL
      for (int k = 0; k < kPack; ++k) {
        if (has(first + k)) f(h, k, first + k);
      }
    }
  }
  // All accesses come before the first use of what they read.
  template <class S>
  __device__ inline void load(Pack<S, kPack>* packs, const S* row) const {
    if (whole) {
      TAEDA_MATH_UNROLL
      for (int h = 0; h < kHeld; ++h) {
        if (has(first_of(h))) read_pack(packs[h], row + first_of(h));
      }
      return;
    }
    TAEDA_MATH_UNROLL
    for (int h = 0; h < kHeld; ++h) {
      const int first = first_of(h);
      if (first >= 0 && first + kPack <= count) {
        read_pack(packs[h], row + first);
      } else {
        TAEDA_MATH_UNROLL
        for (int k = 0; k < kPack; ++k) {
          if (has(first + k)) packs[h].at[k] = row[first + k];
        }
      }
    }
  }
  template <class S>
  __device__ inline void store(const Pack<S, kPack>* packs, S* row) const {
    TAEDA_MATH_UNROLL
    for (int h = 0; h < kHeld; ++h) {
      const int first = first_of(h);
      if (first >= 0 && first + kPack <= count) {
        write_pack(packs[h], row + first);
      } else {
        TAEDA_MATH_UNROLL
        for (int k = 0; k < kPack; ++k) {
          if (has(first + k)) row[first + k] = packs[h].at[k];
        }
      }
    }
  }
};

// A few numbers that are folded together.
template <class T, int kNumbers>
struct State {
  using Number = T;
  static constexpr int kSize = kNumbers;
  T at[kNumbers];
};

// All lanes of a row get the fold of their states, in the same order each time.
template <int kLanes, class S, class F>
__device__ inline S meet_states(S state, F both, S* memory) {
  constexpr int kInWarp = kLanes < 32 ? kLanes : 32;
  for (int step = kInWarp / 2; step > 0; step /= 2) {
    S other;
    for (int i = 0; i < S::kSize; ++i) {
      other.at[i] = exchange(state.at[i], step);
    }
    // The lower lane's stands first on both sides.
    const bool upper = (static_cast<int>(threadIdx.x) & step) != 0;
    state = upper ? both(other, state) : both(state, other);
  }
  if constexpr (kLanes > 32) {
    __syncthreads();  // what the last call left may still be read
    const int id = static_cast<int>(threadIdx.x);
    if (id % 32 == 0) memory[id / 32] = state;
    __syncthreads();
    memory += id / kLanes * (kLanes / 32);
    state = memory[0];
    for (int w = 1; w < kLanes / 32; ++w) state = both(state, memory[w]);
  }
  return state;
}

// kWhole: a row is one share. Else kParts leaves the state of each share, and
// kApply, which comes after it, writes what follows from all of them.
enum RowStep { kWhole = 0, kParts = 1, kApply = 2 };

template <class T>
__device__ inline const T* row_at(const void* memory, Long place) {
  return static_cast<const T*>(memory) + place;
}

// P says what a row is folded to and what is written:
//   P<S, W>(call, row, begin)   W is the type of factors
//   State, none(), both(a, b)
//   fold(shape, packs, meet)    the state of the share
//   ready(state)                before the first result()
//   result(a, b, column)        a, b: elements of the inputs
//   speak()                     the row's own numbers, by one thread
template <template <class, class> class P,
          class S,
          class W,
          int kLanes,
          int kPoints,
          int kHeld,
          int kPack,
          int kStep>
__device__ inline void rows_kernel(const RowCall& call) {
  using Policy = P<S, W>;
  using Folded = typename Policy::Folded;
  using T = typename Folded::Number;
  alignas(16) __shared__ Folded memory[32];
  const int id = static_cast<int>(threadIdx.x);
  const int lane = id % kLanes;
  const Long row = static_cast<Long>(blockIdx.x) * kPoints + id / kLanes;
  const Long begin = kStep == kWhole ? 0 : call.share * blockIdx.y;
  Long count = kStep == kWhole ? call.count : call.share;
  if (begin + count > call.count) count = call.count - begin;
  if (row >= call.rows) count = 0;
  const bool speaks = lane == 0 && row < call.rows;
  const Long place = row < call.rows ? row * call.count + begin : 0;

  const RowShape<kLanes, kHeld, kPack> shape(
      row_at<S>(call.in[0], place), count, lane);
  Pack<S, kPack> packs[Policy::kInputs][kHeld];
  if constexpr (kStep != kApply || Policy::kWrites) {
    TAEDA_MATH_UNROLL
    for (int i = 0; i < Policy::kInputs; ++i) {
      shape.load(packs[i], row_at<S>(call.in[i], place));
    }
  }
  Policy p(call, row < call.rows ? row : 0, begin);
  auto meet = [&](Folded mine) {
    return meet_states<kLanes>(
        mine, [](Folded a, Folded b) { return Policy::both(a, b); }, memory);
  };
  Folded state = Policy::none();
  if constexpr (kStep != kApply) {
    state = p.fold(shape, packs, meet);
  } else if constexpr (Policy::kFolds) {
    const Folded* parts = row_at<Folded>(call.parts, row * call.splits);
    for (int s = lane; s < call.splits; s += kLanes) {
      state = Policy::both(state, parts[s]);
    }
    state = meet(state);
  }
  if constexpr (kStep == kParts) {
    if (speaks) {
      static_cast<Folded*>(call.parts)[row * call.splits + blockIdx.y] = state;
    }
    return;
  } else {
    p.ready(state);
    if constexpr (Policy::kWrites) {
      shape.each([&](int h, int k, int column) {
        const T a = converted<T>(packs[0][h].at[k]);
        T b = T(0);
        if constexpr (Policy::kInputs > 1) b = converted<T>(packs[1][h].at[k]);
        packs[0][h].at[k] = converted<S>(p.result(a, b, column));
      });
      shape.store(packs[0], static_cast<S*>(call.out) + place);
    }
    if (speaks && begin == 0) p.speak();
  }
}

}  // namespace taeda
