// Norms of the tensors of a list, and the check and unscaling of gradients:
// each reads all of them in one launch for a table.
#pragma once

#include <taeda/aten/native/cuda/tables.cuh>

namespace taeda {

// Which norm: sums of squares, of magnitudes, of powers, the largest magnitude,
// or how many are not 0.
enum NormKind {
  kSquares = 0,
  kMagnitudes = 1,
  kPowers = 2,
  kLargest = 3,
  kNonzero = 4
};

template <class T, int kKind>
struct NormFold {
  static __device__ inline T one(T v, T order) {
    const T size = v < T(0) ? -v : v;
    if constexpr (kKind == kSquares) return v * v;
    if constexpr (kKind == kPowers) return math::pow(size, order);
    if constexpr (kKind == kNonzero) return v != T(0) ? T(1) : T(0);
    return size;
  }
  static __device__ inline T both(T a, T b) {
    if constexpr (kKind != kLargest) return a + b;
    return a != a || a > b ? a : b;
  }
  static __device__ inline T finish(T v, T order) {
    if constexpr (kKind == kSquares) return math::sqrt(v);
    if constexpr (kKind == kPowers) return math::pow(v, T(1) / order);
    return v;
  }
};

// A number for each chunk; T is what is computed in.
template <class S, class T, int kKind>
__device__ inline void norm_parts(const ListCall& call) {
  using Fold = NormFold<T, kKind>;
  using Folded = State<T, 1>;
  __shared__ Folded memory[32];
  const TableChunk chunk(call.table);
  S* lists[1] = {chunk.memory<S>(call.table, 0)};
  const T order = static_cast<T>(call.order);
  Folded mine{{T(0)}};
  sweep<1, S>(lists,
              chunk.count,
              call.table.aligned != 0,
              1,
              0,
              [&](auto& packs, int k) {
                const T v = converted<T>(packs[0].at[k]);
                mine.at[0] = Fold::both(mine.at[0], Fold::one(v, order));
              });
  mine = meet_states<256>(
      mine,
      [](Folded a, Folded b) { return Folded{{Fold::both(a.at[0], b.at[0])}}; },
      memory);
  if (threadIdx.x == 0) {
    static_cast<T*>(call.parts)[blockIdx.x] = mine.at[0];
  }
}

// A block for each tensor adds the numbers of its chunks.
template <class O, class T, int kKind>
__device__ inline void norm_totals(const ListCall& call) {
  using Fold = NormFold<T, kKind>;
  using Folded = State<T, 1>;
  __shared__ Folded memory[32];
  const int tensor = static_cast<int>(blockIdx.x);
  const T* parts = static_cast<const T*>(call.parts);
  Folded mine{{T(0)}};
  const int end = call.table.first[tensor + 1];
  for (int i = call.table.first[tensor] + static_cast<int>(threadIdx.x);
       i < end;
       i += 256) {
    mine.at[0] = Fold::both(mine.at[0], parts[i]);
  }
  mine = meet_states<256>(
      mine,
      [](Folded a, Folded b) { return Folded{{Fold::both(a.at[0], b.at[0])}}; },
      memory);
  if (threadIdx.x != 0) return;
  *static_cast<O*>(call.out[tensor]) =
      converted<O>(Fold::finish(mine.at[0], static_cast<T>(call.order)));
}

// Multiplies by *factor, and notes in *found_inf what is not finite.
template <class S>
__device__ inline void unscale_list(const ListCall& call) {
  using T = Accumulated<S>;
  const TableChunk chunk(call.table);
  S* lists[1] = {chunk.memory<S>(call.table, 0)};
  const T factor = static_cast<T>(*call.factor);
  bool found = false;
  sweep<1, S>(lists,
              chunk.count,
              call.table.aligned != 0,
              1,
              1,
              [&](auto& packs, int k) {
                const T v = converted<T>(packs[0].at[k]);
                found = found || !(v - v == T(0));
                packs[0].at[k] = converted<S>(v * factor);
              });
  // All who write write the same.
  if (found) *call.found_inf = 1.0f;
}

// The factor of the loss for the next step; it does not grow to infinity.
template <int>
__device__ inline void update_scale(const ScaleCall& call) {
  if (threadIdx.x != 0) return;
  const double scale = *call.scale;
  int steps = *call.tracker + 1;
  if (*call.found_inf != 0.0f) {
    *call.scale = static_cast<float>(scale * call.backoff);
    steps = 0;
  } else if (steps == call.interval) {
    const float grown = static_cast<float>(scale * call.growth);
    if (grown - grown == 0.0f) *call.scale = grown;
    steps = 0;
  }
  *call.tracker = steps;
}

}  // namespace taeda
