// Stable sorting of long rows by the bits of their keys.
#pragma once

#include <cstdint>
#include <vector>

namespace taeda::native {

// Rows from this length on sort quicker by their bits than by comparisons.
inline constexpr int64_t kRadixLength = 1024;

// A row's elements as keys that order as unsigned integers, with their places.
template <class Key>
struct Keyed {
  Key key;
  uint32_t place;
};

// Sorts `items` by key, equal keys in their order. Knuth, The Art of Computer
// Programming 3, 5.2.5: one pass per 11 bits from the least significant on; a
// digit that all keys share costs no pass. `spare` has room for as many items.
template <class Key>
void radix_sort(std::vector<Keyed<Key>>& items, std::vector<Keyed<Key>>& spare);

// Numbers to keys. NaN, of whatever bits, follows everything; -0 equals 0.
// Signs are no branches: those of random numbers would be mispredicted.
inline uint32_t order_key(float v) {
  auto bits = __builtin_bit_cast(int32_t, v + 0.0f);
  auto turned = static_cast<uint32_t>(bits >> 31) | uint32_t{1} << 31;
  return v != v ? ~uint32_t{0} : static_cast<uint32_t>(bits) ^ turned;
}
inline uint64_t order_key(double v) {
  auto bits = __builtin_bit_cast(int64_t, v + 0.0);
  auto turned = static_cast<uint64_t>(bits >> 63) | uint64_t{1} << 63;
  return v != v ? ~uint64_t{0} : static_cast<uint64_t>(bits) ^ turned;
}
inline uint64_t order_key(int64_t v) {
  return static_cast<uint64_t>(v) ^ uint64_t { 1 } << 63;
}

}  // namespace taeda::native
