#include <taeda/c10/util/crc32.h>

#include <gtest/gtest.h>

#include <numeric>
#include <string_view>
#include <vector>

namespace taeda {
namespace {

// The definition, bit by bit.
uint32_t by_bits(const std::vector<unsigned char>& data) {
  uint32_t r = ~0u;
  for (unsigned char byte : data) {
    r ^= byte;
    for (int bit = 0; bit < 8; ++bit) r = r >> 1 ^ (r & 1 ? 0xEDB88320 : 0);
  }
  return ~r;
}

TEST(Crc32, HasTheCheckValueOfItsCatalogueEntry) {
  std::string_view digits = "123456789";
  EXPECT_EQ(crc32(0, digits.data(), digits.size()), 0xCBF43926u);
  EXPECT_EQ(crc32(0, nullptr, 0), 0u);
}

TEST(Crc32, IsTheDefinitionAtEveryLengthAndGoesOnFromAnyPoint) {
  std::vector<unsigned char> data;
  uint32_t state = 1;
  for (int n = 0; n < 400; ++n) {
    uint32_t whole = by_bits(data);
    EXPECT_EQ(crc32(0, data.data(), data.size()), whole) << n;
    size_t cut = data.size() * 2 / 3;
    uint32_t first = crc32(0, data.data(), cut);
    EXPECT_EQ(crc32(first, data.data() + cut, data.size() - cut), whole) << n;
    state = state * 1664525 + 1013904223;
    data.push_back(static_cast<unsigned char>(state >> 24));
  }
}

}  // namespace
}  // namespace taeda
