// Parameters of the kernels of moves.cuh, for the host too.
#pragma once

namespace taeda {

inline constexpr int kMoveThreads = 256;
inline constexpr int kMoveDims = 8;

// Elements of one size, as words. Sizes and strides of words, innermost dim
// first; of a transposition dim 0 is the target's, dim 1 the source's.
struct MoveCall {
  const void* in;
  void* out;
  long long count;
  int dims;
  unsigned sizes[kMoveDims];
  long long from[kMoveDims], to[kMoveDims];
};

// A side of the tile that a block turns, in words of so many bytes.
constexpr int move_tile(int bytes) { return bytes <= 4 ? 64 : 32; }

}  // namespace taeda
