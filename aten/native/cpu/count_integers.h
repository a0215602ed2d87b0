// Counting integers in a table: bincount, and unique of narrow ranges.
#pragma once

#include <stdint.h>

namespace taeda::native {

struct Extent {
  int64_t lowest, highest;
};

inline Extent extent_of(const int64_t* x, int64_t n) {
  Extent e{x[0], x[0]};
  for (int64_t i = 1; i < n; ++i) {
    e.lowest = x[i] < e.lowest ? x[i] : e.lowest;
    e.highest = x[i] > e.highest ? x[i] : e.highest;
  }
  return e;
}

inline void count_integers(const int64_t* x,
                           int64_t n,
                           int64_t lowest,
                           int64_t* counts) {
  for (int64_t i = 0; i < n; ++i) ++counts[x[i] - lowest];
}

}  // namespace taeda::native
