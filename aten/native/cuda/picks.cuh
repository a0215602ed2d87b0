// Elements and rows that an index chooses, as words of 1 to 16 bytes.
#pragma once

#include <taeda/aten/native/cuda/formula.cuh>
#include <taeda/aten/native/cuda/moves.cuh>
#include <taeda/aten/native/cuda/picks_calls.cuh>

namespace taeda {

template <class Named>
__device__ inline Long picked_row(const PickCall& call, Long place) {
  const Long row =
      static_cast<Long>(static_cast<const Named*>(call.index)[place]);
  if (row < 0 || row >= call.size) {
    report_fault({static_cast<Fault*>(call.fault), call.op}, row, call.size);
    end_thread();
  }
  return row;
}

// A thread reads what chooses its words, then the words, then writes them, so
// that several reads are on their way at once. kWide: there are more than 32
// bits count. kEach: there is an index for each word.
template <class Word, class Named, int kWide, int kEach>
__device__ inline void pick_words(const PickCall& call) {
  using Index = Conditional<kWide != 0, Long, unsigned>;
  const Word* in = static_cast<const Word*>(call.in);
  Word* out = static_cast<Word*>(call.out);
  const Index inner = static_cast<Index>(call.inner);
  const Index rows = static_cast<Index>(call.rows);
  const Long first =
      static_cast<Long>(blockIdx.x) * (kPickThreads * kPickHeld) + threadIdx.x;
  Long from[kPickHeld];
  TAEDA_MATH_UNROLL
  for (int h = 0; h < kPickHeld; ++h) {
    const Long i = first + h * kPickThreads;
    if (i >= call.count) continue;
    const Index row = static_cast<Index>(i) / inner, outer = row / rows;
    const Long chosen = picked_row<Named>(
        call, kEach != 0 ? i : static_cast<Long>(row - outer * rows));
    from[h] = static_cast<Long>(outer) * call.outer_step +
              chosen * call.row_step + (i - static_cast<Long>(row * inner));
  }
  Word words[kPickHeld];
  TAEDA_MATH_UNROLL
  for (int h = 0; h < kPickHeld; ++h) {
    if (first + h * kPickThreads < call.count) words[h] = in[from[h]];
  }
  TAEDA_MATH_UNROLL
  for (int h = 0; h < kPickHeld; ++h) {
    const Long i = first + h * kPickThreads;
    if (i < call.count) out[i] = words[h];
  }
}

}  // namespace taeda
