// Places in sorted rows: searchsorted, bucketize, draws from cumulative
// weights.
#pragma once

#include <cstdint>

namespace taeda::native {

// For each lane l, how many of n places come before: before(l, place) is true
// up to some place. Halves are chosen without branches, which no processor
// could predict; searches that go on side by side do not wait for each other's
// loads.
template <int kLanes, class Before>
void count_before(int64_t n, int64_t (&low)[kLanes], Before&& before) {
  for (int64_t& at : low) at = 0;
  while (n > 0) {
    int64_t half = n - n / 2;
    for (int l = 0; l < kLanes; ++l) {
      low[l] += half & -static_cast<int64_t>(before(l, low[l] + half - 1));
    }
    n -= half;
  }
}

template <class Before>
int64_t count_before(int64_t n, Before&& before) {
  int64_t low[1];
  count_before(n, low, [&](int, int64_t at) { return before(at); });
  return low[0];
}

}  // namespace taeda::native
