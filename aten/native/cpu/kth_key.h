// Selection among keys that are all different.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <utility>

namespace taeda::native {

template <class Key>
Key middle(Key a, Key b, Key c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

// The k-th smallest of n keys, whose order is lost. `spare` has room for n.
// Hoare's selection, parted without a branch for each key: of random numbers
// every other one would be mispredicted. Where the pivots are bad, the
// standard library's selection ends in linear time.
template <class Key>
Key kth_key(Key* keys, Key* spare, size_t n, size_t k) {
  constexpr size_t kFew = 32, kMany = 128;
  int rounds = 4 * std::bit_width(n);
  while (n > kFew && rounds-- > 0) {
    Key pivot = middle(keys[0], keys[n / 2], keys[n - 1]);
    if (n > kMany) {
      size_t e = n / 8;
      pivot = middle(middle(keys[e], keys[2 * e], keys[3 * e]),
                     pivot,
                     middle(keys[5 * e], keys[6 * e], keys[7 * e]));
    }
    size_t low = 0, high = n;
    for (size_t i = 0; i < n; ++i) {
      Key key = keys[i];
      spare[low] = spare[high - 1] = key;
      bool below = key < pivot;
      low += below;
      high -= !below;
    }
    if (k < low) {
      n = low;
      std::swap(keys, spare);
    } else {
      k -= low;
      n -= low;
      keys = std::exchange(spare, keys) + low;
    }
  }
  std::nth_element(keys, keys + k, keys + n);
  return keys[k];
}

}  // namespace taeda::native
