#include <taeda/aten/cpu_capability.h>

#include <gtest/gtest.h>

namespace taeda {
namespace {

TEST(CpuCapability, AnOverrideOnlyLowers) {
  using detail::choose_capability;
  const auto none = CpuCapability::kDefault;
  const auto avx2 = CpuCapability::kAvx2;
  const auto avx512 = CpuCapability::kAvx512;
  EXPECT_EQ(choose_capability(avx512, nullptr), avx512);
  EXPECT_EQ(choose_capability(avx512, "avx2"), avx2);
  EXPECT_EQ(choose_capability(avx512, "default"), none);
  EXPECT_EQ(choose_capability(avx2, "avx512"), avx2);
  EXPECT_EQ(choose_capability(none, "avx2"), none);
  EXPECT_EQ(choose_capability(avx2, "pentium"), avx2);
}

TEST(CpuCapability, IsTheSameEveryTime) {
  EXPECT_EQ(cpu_capability(), cpu_capability());
  EXPECT_NE(cpu_capability_name(), nullptr);
}

}  // namespace
}  // namespace taeda
