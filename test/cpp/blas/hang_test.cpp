// What would otherwise hang for ever: each case runs in a child process with a
// deadline.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/blas/lapack.h>
#include <taeda/aten/parallel/parallel.h>

#include "../in_child.h"

namespace taeda::blas {
namespace {

template <typename T>
bool square_product_is_right() {
  constexpr int64_t kN = 300;
  const std::vector<T> a(kN * kN, T(2));
  std::vector<T> c(kN * kN);
  gemm<T>(Op::kNone,
          Op::kNone,
          kN,
          kN,
          kN,
          1,
          a.data(),
          kN,
          a.data(),
          kN,
          0,
          c.data(),
          kN);
  for (const auto& x : c) {
    if (!(x == T(4 * kN))) {
      return false;
    }
  }
  return true;
}

template <typename T>
bool right_in_every_part(int threads) {
  set_num_threads(threads);
  std::atomic<int> right{0};
  parallel_for(0, threads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      right += square_product_is_right<T>();
    }
  });
  return right == threads;
}

bool lu_is_done() {
  constexpr int kN = 400;
  std::vector<double> a(kN * kN, 1.0);
  for (int i = 0; i < kN; ++i) {
    a[static_cast<size_t>(i * kN + i)] = kN;
  }
  int info = -1;
  const int n = kN;
  std::vector<int> pivots(kN);
  lapack<double>().getrf(&n, &n, a.data(), &n, pivots.data(), &info);
  return info == 0;
}

TEST(Hang, ProductInsideAParallelRegion) {
  EXPECT_TRUE(in_child([] { return right_in_every_part<double>(3); }));
  EXPECT_TRUE(in_child([] { return right_in_every_part<float>(3); }));
  EXPECT_TRUE(in_child([] { return right_in_every_part<complex<double>>(3); }));
}

TEST(Hang, DecompositionInsideAParallelRegion) {
  EXPECT_TRUE(in_child([] {
    set_num_threads(3);
    std::atomic<int> done{0};
    parallel_for(0, 3, 1, [&](int64_t, int64_t) { done += lu_is_done(); });
    return done == 3;
  }));
}

TEST(Hang, ForkAfterProducts) {
  const int before = get_num_threads();
  set_num_threads(3);
  for (int round = 0; round < 3; ++round) {
    ASSERT_TRUE(square_product_is_right<double>());
    ASSERT_TRUE(square_product_is_right<float>());
    EXPECT_TRUE(in_child([] {
      return square_product_is_right<double>() &&
             square_product_is_right<float>();
    }));
  }
  set_num_threads(before);
}

TEST(Hang, DecompositionsOnSeveralUserThreads) {
  EXPECT_TRUE(in_child([] {
    set_num_threads(2);
    std::atomic<int> done{0};
    std::vector<std::thread> users;
    for (int i = 0; i < 3; ++i) {
      users.emplace_back([&] { done += lu_is_done(); });
    }
    for (auto& user : users) {
      user.join();
    }
    return done == 3;
  }));
}

TEST(Hang, ProductsOnSeveralUserThreads) {
  EXPECT_TRUE(in_child([] {
    set_num_threads(2);
    std::atomic<int> right{0};
    std::vector<std::thread> users;
    for (int i = 0; i < 4; ++i) {
      users.emplace_back([&] {
        for (int round = 0; round < 5; ++round) {
          right += square_product_is_right<double>();
          right += square_product_is_right<float>();
        }
      });
    }
    for (auto& user : users) {
      user.join();
    }
    return right == 40;
  }));
}

TEST(Hang, BatchesOfDoublesOnThreads) {
  EXPECT_TRUE(in_child([] {
    set_num_threads(3);
    constexpr int64_t kN = 100;
    constexpr int64_t kBatch = 12;
    const std::vector<double> a(kBatch * kN * kN, 1.0);
    std::vector<double> c(a.size());
    const int64_t step = kN * kN;
    gemm_batched<double>(Op::kNone,
                         Op::kNone,
                         kBatch,
                         kN,
                         kN,
                         kN,
                         1,
                         a.data(),
                         kN,
                         a.data(),
                         kN,
                         0,
                         c.data(),
                         kN,
                         {step, step, step});
    for (const double x : c) {
      if (x != kN) {
        return false;
      }
    }
    return true;
  }));
}

}  // namespace
}  // namespace taeda::blas
