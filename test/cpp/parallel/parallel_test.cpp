#include <taeda/aten/parallel/parallel.h>

#include <gtest/gtest.h>
#include <xmmintrin.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <taeda/aten/parallel/thread_count.h>

#include "../in_child.h"

namespace taeda {
namespace {

// Restores the process-wide count.
class Threads {
 public:
  explicit Threads(int count) : before_(get_num_threads()) {
    set_num_threads(count);
  }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

int64_t parallel_sum(int64_t n) {
  std::vector<int64_t> values(static_cast<size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  std::atomic<int64_t> total{0};
  parallel_for(0, n, /*grain=*/1, [&](int64_t begin, int64_t end) {
    total += std::accumulate(values.begin() + begin, values.begin() + end, 0L);
  });
  return total;
}

TEST(ParallelFor, CoversEveryIndexOnce) {
  for (const int threads : {1, 2, 3, 8}) {
    const Threads scope(threads);
    for (const int64_t n : {0, 1, 2, 3, 7, 100, 1001}) {
      for (const int64_t grain : {0, 1, 2, 10, 5000}) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(n));
        parallel_for(0, n, grain, [&](int64_t begin, int64_t end) {
          ASSERT_LT(begin, end);
          for (int64_t i = begin; i < end; ++i) {
            ++seen[static_cast<size_t>(i)];
          }
        });
        for (const auto& count : seen) {
          ASSERT_EQ(count, 1);
        }
      }
    }
  }
}

TEST(ParallelFor, EmptyAndBackwardRangesCallNothing) {
  parallel_for(5, 5, 1, [](int64_t, int64_t) { FAIL(); });
  parallel_for(5, 2, 1, [](int64_t, int64_t) { FAIL(); });
}

TEST(ParallelFor, PartsAreAtLeastAGrain) {
  const Threads scope(8);
  parallel_for(0, 1000, 300, [](int64_t begin, int64_t end) {
    EXPECT_GE(end - begin, 300);
  });
}

TEST(ParallelFor, SmallRangesRunOnTheCallerOutsideARegion) {
  const Threads scope(4);
  const auto caller = std::this_thread::get_id();
  parallel_for(0, 10, 10, [&](int64_t, int64_t) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    EXPECT_FALSE(in_parallel_region());
  });
}

TEST(ParallelFor, NestedCallsRunInline) {
  const Threads scope(4);
  std::atomic<int> inner{0};
  parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    EXPECT_TRUE(in_parallel_region());
    const auto self = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](int64_t begin, int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      EXPECT_EQ(end - begin, 100);
      ++inner;
    });
  });
  EXPECT_EQ(inner, 4);
  EXPECT_FALSE(in_parallel_region());
}

TEST(ParallelFor, ThreadNumbersAreDistinctAndInRange) {
  const Threads scope(4);
  std::vector<std::atomic<int>> used(4);
  parallel_for(0, 4, 1, [&](int64_t, int64_t) {
    ASSERT_GE(get_thread_num(), 0);
    ASSERT_LT(get_thread_num(), 4);
    ++used[static_cast<size_t>(get_thread_num())];
  });
  for (const auto& count : used) {
    EXPECT_EQ(count, 1);
  }
  EXPECT_EQ(get_thread_num(), 0);
}

TEST(ParallelFor, RethrowsAndStaysUsable) {
  const Threads scope(4);
  for (const int64_t bad : {0, 3}) {
    try {
      parallel_for(0, 4, 1, [&](int64_t begin, int64_t) {
        if (begin == bad) {
          throw std::out_of_range("part " + std::to_string(begin));
        }
      });
      FAIL() << "no exception";
    } catch (const std::out_of_range& error) {
      EXPECT_EQ(error.what(), "part " + std::to_string(bad));
    }
    EXPECT_FALSE(in_parallel_region());
    EXPECT_EQ(parallel_sum(1000), 499500);
  }
}

TEST(ParallelFor, SeveralUserThreadsAtOnce) {
  const Threads scope(3);
  std::vector<std::thread> users;
  std::atomic<int> right{0};
  for (int i = 0; i < 4; ++i) {
    users.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        right += parallel_sum(1000) == 499500;
      }
    });
  }
  for (auto& user : users) {
    user.join();
  }
  EXPECT_EQ(right, 200);
}

TEST(NumThreads, RefusesNoneAndFewer) {
  EXPECT_THROW(set_num_threads(0), std::runtime_error);
  EXPECT_THROW(set_num_threads(-1), std::runtime_error);
  EXPECT_THROW(set_num_interop_threads(0), std::runtime_error);
}

TEST(NumThreads, InteropCountIsKept) {
  const int before = get_num_interop_threads();
  EXPECT_GE(before, 1);
  set_num_interop_threads(5);
  EXPECT_EQ(get_num_interop_threads(), 5);
  set_num_interop_threads(before);
}

TEST(NumThreads, EnvironmentValue) {
  using detail::threads_from_environment;
  EXPECT_EQ(threads_from_environment(nullptr), 0);
  EXPECT_EQ(threads_from_environment("3"), 3);
  EXPECT_EQ(threads_from_environment("4,2"), 4);
  EXPECT_EQ(threads_from_environment(""), 0);
  EXPECT_EQ(threads_from_environment("-2"), 0);
  EXPECT_EQ(threads_from_environment("many"), 0);
  EXPECT_EQ(threads_from_environment("2x"), 0);
}

class CgroupTest : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::temp_directory_path() /
            ("taeda_cgroup_" + std::to_string(getpid()));
    std::filesystem::remove_all(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const auto full = root_ / path;
    std::filesystem::create_directories(full.parent_path());
    std::ofstream(full) << text;
  }
  int limit() {
    return detail::cgroup_cpu_limit(root_ / "self", root_ / "mount");
  }

  std::filesystem::path root_;
};

TEST_F(CgroupTest, NoFileIsNoLimit) { EXPECT_EQ(limit(), 0); }

TEST_F(CgroupTest, Version2RoundsUp) {
  write("self", "0::/\n");
  write("mount/cpu.max", "150000 100000\n");
  EXPECT_EQ(limit(), 2);
  write("mount/cpu.max", "20000 100000\n");
  EXPECT_EQ(limit(), 1);
  write("mount/cpu.max", "max 100000\n");
  EXPECT_EQ(limit(), 0);
}

TEST_F(CgroupTest, Version2ParentLimitsItsChildren) {
  write("self", "0::/a/b\n");
  write("mount/a/cpu.max", "300000 100000\n");
  write("mount/a/b/cpu.max", "max 100000\n");
  EXPECT_EQ(limit(), 3);
}

TEST_F(CgroupTest, Version1) {
  write("self", "4:memory:/x\n3:cpu,cpuacct:/job\n");
  write("mount/cpu,cpuacct/job/cpu.cfs_quota_us", "400000\n");
  write("mount/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 4);
  write("mount/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(limit(), 0);
}

TEST_F(CgroupTest, Version1InsideAContainerReadsTheMount) {
  write("self", "3:cpu:/docker/0123\n");
  write("mount/cpu/cpu.cfs_quota_us", "250000\n");
  write("mount/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(limit(), 3);
}

// Rounding modes of the parts of a region; helpers are left in another.
std::vector<unsigned> modes_of_parts(unsigned left) {
  std::vector<unsigned> modes(3, ~0u);
  parallel_for(0, 3, 1, [&](int64_t begin, int64_t) {
    modes[static_cast<size_t>(begin)] = _MM_GET_ROUNDING_MODE();
    if (get_thread_num() != 0) {
      _MM_SET_ROUNDING_MODE(left);
    }
  });
  return modes;
}

TEST(FloatEnvironment, PartsRoundAsTheirCaller) {
  const Threads scope(3);
  modes_of_parts(_MM_ROUND_DOWN);
  EXPECT_EQ(modes_of_parts(_MM_ROUND_UP),
            std::vector<unsigned>(3, _MM_ROUND_NEAREST));
  _MM_SET_ROUNDING_MODE(_MM_ROUND_TOWARD_ZERO);
  const std::vector<unsigned> modes = modes_of_parts(_MM_ROUND_NEAREST);
  _MM_SET_ROUNDING_MODE(_MM_ROUND_NEAREST);
  EXPECT_EQ(modes, std::vector<unsigned>(3, _MM_ROUND_TOWARD_ZERO));
}

bool sums_are_right() {
  return parallel_sum(100000) == 4999950000 && parallel_sum(1000) == 499500;
}

TEST(Fork, ChildAndParentComputeInParallelAfterARegion) {
  const Threads scope(3);
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(parallel_sum(1000), 499500);
    ASSERT_TRUE(in_child(sums_are_right));
  }
  EXPECT_EQ(parallel_sum(1000), 499500);
}

TEST(Fork, WorksFromASecondThread) {
  const Threads scope(3);
  ASSERT_EQ(parallel_sum(1000), 499500);
  std::thread([&] {
    ASSERT_EQ(parallel_sum(1000), 499500);
    EXPECT_TRUE(in_child(sums_are_right));
  }).join();
}

}  // namespace
}  // namespace taeda
