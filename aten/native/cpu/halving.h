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

// The same where nobody knows that the row is sorted: it looks at the places
// that PyTorch looks at, on which the result then depends.
template <int kLanes, class Before>
void count_before_by_middles(int64_t n,
                             int64_t (&low)[kLanes],
                             Before&& before) {
  int64_t high[kLanes];
  for (int l = 0; l < kLanes; ++l) low[l] = 0, high[l] = n;
  for (int64_t most = n; most > 0; most /= 2) {
    for (int l = 0; l < kLanes; ++l) {
      // Masks of all bits, as g++ makes branches of choices.
      const int64_t size = high[l] - low[l];
      const int64_t open = -static_cast<int64_t>(size > 0);
      const int64_t middle = (low[l] + size / 2) & open;
      const int64_t first = -static_cast<int64_t>(before(l, middle)) & open;
      low[l] += first & (middle + 1 - low[l]);
      high[l] += open & ~first & (middle - high[l]);
    }
  }
}

template <class Before>
int64_t count_before(int64_t n, Before&& before) {
  int64_t low[1];
  count_before(n, low, [&](int, int64_t at) { return before(at); });
  return low[0];
}

}  // namespace taeda::native
