// Copies without conversion, whatever the elements are: words of 1 to 16 bytes.
#pragma once

#include <taeda/aten/native/cuda/moves_calls.cuh>
#include <taeda/aten/native/cuda/storage.cuh>

namespace taeda {

using Words16 = Pack<unsigned, 4>;

// Both sides have words beside each other in dim 0, which are accessed as they
// are: as large as sizes, strides and addresses allow.
template <class Word, class Index>
__device__ inline void move_words(const MoveCall& call) {
  const Word* in = static_cast<const Word*>(call.in);
  Word* out = static_cast<Word*>(call.out);
  const Long step = static_cast<Long>(gridDim.x) * blockDim.x;
  Long i = static_cast<Long>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i < call.count; i += step) {
    Index left = static_cast<Index>(i);
    Long from = 0, to = 0;
    for (int d = 0; d < call.dims; ++d) {
      const Index next = left / call.sizes[d];
      const Long own = static_cast<Long>(left - next * call.sizes[d]);
      from += own * call.from[d];
      to += own * call.to[d];
      left = next;
    }
    out[to] = in[from];
  }
}

// The source has words beside each other in dim 1, the target in dim 0. A block
// reads a tile as the source lies, turns it in shared memory, and writes it as
// the target lies. Rows of the tile are a word longer, so that neither way all
// threads of a warp want the same bank. kIn and kOut words make an access.
template <class Word, int kIn, int kOut>
__device__ inline void turn_words(const MoveCall& call) {
  constexpr int kTile = move_tile(sizeof(Word));
  __shared__ Word tile[kTile][kTile + 1];
  const unsigned across = (call.sizes[0] + kTile - 1) / kTile;
  const unsigned along = (call.sizes[1] + kTile - 1) / kTile;
  unsigned block = blockIdx.x;
  const int begin1 = static_cast<int>(block % along) * kTile;
  block /= along;
  const int begin0 = static_cast<int>(block % across) * kTile;
  block /= across;
  Long from = begin0 * call.from[0] + begin1;
  Long to = begin1 * call.to[1] + begin0;
  for (int d = 2; d < call.dims; ++d) {
    const unsigned next = block / call.sizes[d];
    const Long own = block - next * call.sizes[d];
    from += own * call.from[d];
    to += own * call.to[d];
    block = next;
  }
  const Word* in = static_cast<const Word*>(call.in) + from;
  Word* out = static_cast<Word*>(call.out) + to;
  const int size0 = static_cast<int>(call.sizes[0]) - begin0;
  const int size1 = static_cast<int>(call.sizes[1]) - begin1;
  const int id = static_cast<int>(threadIdx.x);

  TAEDA_MATH_UNROLL
  for (int i = id; i < kTile * kTile / kIn; i += kMoveThreads) {
    const int row = i / (kTile / kIn), column = i % (kTile / kIn) * kIn;
    if (row >= size0 || column >= size1) continue;
    Pack<Word, kIn> pack;
    read_pack(pack, in + row * call.from[0] + column);
    TAEDA_MATH_UNROLL
    for (int k = 0; k < kIn; ++k) tile[column + k][row] = pack.at[k];
  }
  __syncthreads();
  TAEDA_MATH_UNROLL
  for (int i = id; i < kTile * kTile / kOut; i += kMoveThreads) {
    const int row = i / (kTile / kOut), column = i % (kTile / kOut) * kOut;
    if (row >= size1 || column >= size0) continue;
    Pack<Word, kOut> pack;
    TAEDA_MATH_UNROLL
    for (int k = 0; k < kOut; ++k) pack.at[k] = tile[row][column + k];
    write_pack(pack, out + row * call.to[1] + column);
  }
}

}  // namespace taeda
