#include <taeda/aten/native/cpu/radix_sort.h>

#include <array>
#include <cstddef>

namespace taeda::native {

namespace {

constexpr int kDigitBits = 11;
constexpr std::size_t kDigits = std::size_t{1} << kDigitBits;

template <class Key>
constexpr int kPasses = (sizeof(Key) * 8 + kDigitBits - 1) / kDigitBits;

template <class Key>
std::size_t digit_of(Key key, int pass) {
  return static_cast<std::size_t>(key >> (pass * kDigitBits)) & (kDigits - 1);
}

}  // namespace

template <class Key>
void radix_sort(std::vector<Keyed<Key>>& items,
                std::vector<Keyed<Key>>& spare) {
  Key differs = 0;
  for (const Keyed<Key>& item : items) differs |= item.key ^ items[0].key;
  std::array<uint32_t, kDigits> next;
  spare.resize(items.size());
  for (int pass = 0; pass < kPasses<Key>; ++pass) {
    if (digit_of(differs, pass) == 0) continue;
    next.fill(0);
    for (const Keyed<Key>& item : items) ++next[digit_of(item.key, pass)];
    uint32_t start = 0;
    for (uint32_t& count : next) {
      uint32_t first = start;
      start += count;
      count = first;
    }
    for (const Keyed<Key>& item : items) {
      spare[next[digit_of(item.key, pass)]++] = item;
    }
    items.swap(spare);
  }
}

template void radix_sort(std::vector<Keyed<uint32_t>>&,
                         std::vector<Keyed<uint32_t>>&);
template void radix_sort(std::vector<Keyed<uint64_t>>&,
                         std::vector<Keyed<uint64_t>>&);

}  // namespace taeda::native
