// Parameters of the kernels of radix.cuh, for the host too.
#pragma once

namespace taeda {

inline constexpr int kSortThreads = 256;
inline constexpr int kSortHeld = 8;
inline constexpr int kSortTile = kSortThreads * kSortHeld;
inline constexpr int kSortDigits = 256;

// Rows of `count` elements, each in `tiles` tiles. Keys and places go from one
// pair of arrays to the other; counts are [rows, tiles, digits].
struct SortCall {
  long long count;
  int tiles;
  int shift;  // of the digit
  int descending;
  int last;
  const void* in;
  void* values;
  long long* indices;
  const void* keys;
  const unsigned* places;
  void* next_keys;
  unsigned* next_places;
  unsigned* counts;
};

}  // namespace taeda
