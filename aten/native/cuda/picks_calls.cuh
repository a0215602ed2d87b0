// Parameters of the kernels of picks.cuh, for the host too.
#pragma once

namespace taeda {

inline constexpr int kPickThreads = 256;
inline constexpr int kPickHeld = 4;  // words of a thread

// out[outer, k, inner] = in[outer, index[k], inner], in words; in gather there
// is an index for each word.
struct PickCall {
  void* fault;  // as Caller of formula.cuh
  const char* op;
  const void* in;
  void* out;
  const void* index;
  long long count;              // words that are written
  long long inner, rows, size;  // of the result; `size` rows to choose among
  long long outer_step, row_step;
};

}  // namespace taeda
