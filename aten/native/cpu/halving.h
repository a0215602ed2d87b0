// Places in sorted rows: searchsorted, bucketize, draws from cumulative
// weights.
#pragma once

#include <cstdint>

namespace taeda::native {

// How many of n places come before: `before` is true up to some place. Halves
// are chosen without branches, which no processor could predict.
template <class Before>
int64_t count_before(int64_t n, Before&& before) {
  int64_t low = 0;
  while (n > 0) {
    int64_t half = n - n / 2;
    low += before(low + half - 1) ? half : 0;
    n -= half;
  }
  return low;
}

}  // namespace taeda::native
