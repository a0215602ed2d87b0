#include <taeda/aten/native/blas/gemm.h>

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include <taeda/aten/native/blas/gemm_choice.h>
#include <taeda/aten/parallel/parallel.h>

#include "reference.h"

namespace taeda::blas {
namespace {

using namespace testing;  // NOLINT: the reference helpers

struct Case {
  Op trans_a;
  Op trans_b;
  int64_t m;
  int64_t n;
  int64_t k;
  int pad;  // added to every leading dimension
  int alpha;
  int beta;
};

template <typename T>
Wide<T> op_at(
    const std::vector<T>& x, int64_t ld, Op op, int64_t row, int64_t col) {
  const int64_t at = op == Op::kNone ? row * ld + col : col * ld + row;
  const auto wide = widen<T>(x[static_cast<size_t>(at)]);
  return conjugated<T>(wide, op == Op::kConjTrans);
}

std::string describe(const Case& c) {
  return "op " + std::to_string(static_cast<int>(c.trans_a)) + " " +
         std::to_string(static_cast<int>(c.trans_b)) + " m " +
         std::to_string(c.m) + " n " + std::to_string(c.n) + " k " +
         std::to_string(c.k) + " pad " + std::to_string(c.pad) + " alpha " +
         std::to_string(c.alpha) + " beta " + std::to_string(c.beta);
}

template <typename T>
void check_case(const Case& c) {
  SCOPED_TRACE(describe(c));
  std::mt19937 rng(7);
  const int64_t lda = (c.trans_a == Op::kNone ? c.k : c.m) + c.pad;
  const int64_t ldb = (c.trans_b == Op::kNone ? c.n : c.k) + c.pad;
  const int64_t ldc = c.n + c.pad;
  const auto a =
      random_vector<T>(lda * (c.trans_a == Op::kNone ? c.m : c.k), rng);
  const auto b =
      random_vector<T>(ldb * (c.trans_b == Op::kNone ? c.k : c.n), rng);
  auto result = random_vector<T>(ldc * c.m, rng);
  const auto before = result;
  using S = scale_t<T>;
  const S alpha = static_cast<S>(c.alpha);
  const S beta = static_cast<S>(c.beta);
  gemm<T>(c.trans_a,
          c.trans_b,
          c.m,
          c.n,
          c.k,
          alpha,
          a.data(),
          lda,
          b.data(),
          ldb,
          beta,
          result.data(),
          ldc);
  const double bound = epsilon<T>() * 4 + 2e-7 * static_cast<double>(c.k + 2) *
                                              (epsilon<T>() < 1e-10 ? 1e-8 : 1);
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < ldc; ++j) {
      const auto at = static_cast<size_t>(i * ldc + j);
      if (j >= c.n) {
        ASSERT_EQ(distance<T>(result[at], widen<T>(before[at])), 0)
            << "the gap after row " << i << " was written";
        continue;
      }
      Wide<T> sum{};
      double size = 1;
      for (int64_t p = 0; p < c.k; ++p) {
        const auto term =
            op_at(a, lda, c.trans_a, i, p) * op_at(b, ldb, c.trans_b, p, j);
        sum = sum + term;
      }
      Wide<T> expected = widen<T>(T(c.alpha)) * sum;
      if (c.beta != 0) {
        expected = expected + widen<T>(T(c.beta)) * widen<T>(before[at]);
      }
      if constexpr (!std::is_integral_v<T>) {
        size += std::sqrt(static_cast<double>(c.k));
      }
      ASSERT_LE(distance<T>(result[at], expected), bound * size * 2)
          << "at " << i << ", " << j;
    }
  }
}

template <typename T>
class Gemm : public ::testing::Test {};
using Types = ::testing::Types<float,
                               double,
                               complex<float>,
                               complex<double>,
                               BFloat16,
                               Half,
                               uint8_t,
                               int8_t,
                               int16_t,
                               int32_t,
                               int64_t>;
TYPED_TEST_SUITE(Gemm, Types);

TYPED_TEST(Gemm, EveryTranspositionAndSmallShape) {
  const int64_t sizes[] = {1, 2, 5, 8, 17, 33};
  for (const Op ta : {Op::kNone, Op::kTrans, Op::kConjTrans}) {
    for (const Op tb : {Op::kNone, Op::kTrans, Op::kConjTrans}) {
      for (const int64_t m : sizes) {
        for (const int64_t n : sizes) {
          for (const int64_t k : {1, 4, 19}) {
            check_case<TypeParam>({ta, tb, m, n, k, 0, 1, 0});
          }
        }
      }
      check_case<TypeParam>({ta, tb, 9, 35, 6, 3, 2, 3});
      check_case<TypeParam>({ta, tb, 1, 35, 6, 3, 2, 3});
      check_case<TypeParam>({ta, tb, 35, 1, 6, 3, 2, 3});
    }
  }
}

TYPED_TEST(Gemm, LargerShapes) {
  for (const Op ta : {Op::kNone, Op::kTrans}) {
    for (const Op tb : {Op::kNone, Op::kTrans}) {
      check_case<TypeParam>({ta, tb, 70, 130, 90, 0, 1, 0});
      check_case<TypeParam>({ta, tb, 70, 130, 90, 0, 1, 1});
      check_case<TypeParam>({ta, tb, 130, 530, 40, 5, 2, 1});
      check_case<TypeParam>({ta, tb, 1, 300, 500, 0, 1, 0});
      check_case<TypeParam>({ta, tb, 300, 1, 500, 1, 1, 1});
    }
  }
}

TYPED_TEST(Gemm, EmptySizes) {
  std::vector<TypeParam> c(4, TypeParam(3));
  gemm<TypeParam>(
      Op::kNone, Op::kNone, 0, 2, 2, 1, nullptr, 2, nullptr, 2, 0, c.data(), 2);
  EXPECT_EQ(distance<TypeParam>(c[0], widen<TypeParam>(TypeParam(3))), 0);
  gemm<TypeParam>(
      Op::kNone, Op::kNone, 2, 2, 0, 1, nullptr, 1, nullptr, 2, 2, c.data(), 2);
  EXPECT_EQ(distance<TypeParam>(c[3], widen<TypeParam>(TypeParam(6))), 0);
  gemm<TypeParam>(
      Op::kNone, Op::kNone, 2, 2, 0, 1, nullptr, 1, nullptr, 2, 0, c.data(), 2);
  EXPECT_EQ(distance<TypeParam>(c[3], widen<TypeParam>(TypeParam(0))), 0);
}

TYPED_TEST(Gemm, BatchMatchesItsMembers) {
  std::mt19937 rng(3);
  for (const int64_t batch : {1, 3, 40}) {
    for (const int64_t n : {3, 40}) {
      const auto a = random_vector<TypeParam>(batch * n * n, rng);
      const auto b = random_vector<TypeParam>(n * n, rng);
      std::vector<TypeParam> together(a.size());
      std::vector<TypeParam> single(a.size());
      gemm_batched<TypeParam>(Op::kNone,
                              Op::kTrans,
                              batch,
                              n,
                              n,
                              n,
                              1,
                              a.data(),
                              n,
                              b.data(),
                              n,
                              0,
                              together.data(),
                              n,
                              {n * n, 0, n * n});
      for (int64_t i = 0; i < batch; ++i) {
        gemm<TypeParam>(Op::kNone,
                        Op::kTrans,
                        n,
                        n,
                        n,
                        1,
                        a.data() + i * n * n,
                        n,
                        b.data(),
                        n,
                        0,
                        single.data() + i * n * n,
                        n);
      }
      for (size_t i = 0; i < single.size(); ++i) {
        ASSERT_LE(distance<TypeParam>(together[i], widen<TypeParam>(single[i])),
                  epsilon<TypeParam>() * 16);
      }
    }
  }
}

TYPED_TEST(Gemm, VectorsWithIncrements) {
  std::mt19937 rng(5);
  const int64_t m = 37;
  const int64_t n = 300;
  const auto a = random_vector<TypeParam>(m * n, rng);
  for (const Op op : {Op::kNone, Op::kTrans, Op::kConjTrans}) {
    const int64_t in = op == Op::kNone ? n : m;
    const int64_t out = op == Op::kNone ? m : n;
    const auto x = random_vector<TypeParam>(in * 2, rng);
    auto y = random_vector<TypeParam>(out * 3, rng);
    const auto before = y;
    gemv<TypeParam>(op, m, n, 2, a.data(), n, x.data(), 2, 3, y.data(), 3);
    for (int64_t i = 0; i < out; ++i) {
      Wide<TypeParam> sum{};
      for (int64_t j = 0; j < in; ++j) {
        sum = sum + op_at(a, n, op, i, j) *
                        widen<TypeParam>(x[static_cast<size_t>(2 * j)]);
      }
      const auto at = static_cast<size_t>(3 * i);
      const auto expected =
          widen<TypeParam>(TypeParam(2)) * sum +
          widen<TypeParam>(TypeParam(3)) * widen<TypeParam>(before[at]);
      ASSERT_LE(distance<TypeParam>(y[at], expected),
                epsilon<TypeParam>() * 200);
      ASSERT_EQ(
          distance<TypeParam>(y[at + 1], widen<TypeParam>(before[at + 1])), 0);
    }
  }
}

TYPED_TEST(Gemm, DotAndAxpy) {
  std::mt19937 rng(9);
  for (const int64_t n : {0, 1, 7, 100, 1000}) {
    for (const int64_t inc : {1, 3}) {
      const auto x = random_vector<TypeParam>(n * inc + 1, rng);
      auto y = random_vector<TypeParam>(n + 1, rng);
      Wide<TypeParam> plain{};
      Wide<TypeParam> conj{};
      for (int64_t i = 0; i < n; ++i) {
        const auto left = widen<TypeParam>(x[static_cast<size_t>(i * inc)]);
        const auto right = widen<TypeParam>(y[static_cast<size_t>(i)]);
        plain = plain + left * right;
        conj = conj + conjugated<TypeParam>(left, true) * right;
      }
      const double bound = epsilon<TypeParam>() * 100;
      EXPECT_LE(distance<TypeParam>(
                    dot<TypeParam>(n, x.data(), inc, y.data(), 1), plain),
                bound);
      EXPECT_LE(distance<TypeParam>(
                    vdot<TypeParam>(n, x.data(), inc, y.data(), 1), conj),
                bound);
      const auto before = y;
      axpy<TypeParam>(n, 3, x.data(), inc, y.data(), 1);
      for (int64_t i = 0; i <= n; ++i) {
        const auto at = static_cast<size_t>(i);
        auto expected = widen<TypeParam>(before[at]);
        if (i < n) {
          expected =
              expected + widen<TypeParam>(TypeParam(3)) *
                             widen<TypeParam>(x[static_cast<size_t>(i * inc)]);
        }
        ASSERT_LE(distance<TypeParam>(y[at], expected),
                  epsilon<TypeParam>() * 8);
      }
    }
  }
}

// With beta == 0 what C held before must not matter.
template <typename T>
void check_nan_is_overwritten(int64_t n) {
  std::mt19937 rng(1);
  const auto a = random_vector<T>(n * n, rng);
  std::vector<T> c(a.size(), T(std::numeric_limits<float>::quiet_NaN()));
  gemm<T>(Op::kNone,
          Op::kNone,
          n,
          n,
          n,
          1,
          a.data(),
          n,
          a.data(),
          n,
          0,
          c.data(),
          n);
  for (const auto& x : c) {
    ASSERT_FALSE(std::isnan(static_cast<double>(widen<T>(x))));
  }
}

class Routes : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { force_gemm_route(GetParam()); }
  void TearDown() override { force_gemm_route(""); }
};

TEST_P(Routes, Float) {
  for (const Op ta : {Op::kNone, Op::kTrans}) {
    for (const Op tb : {Op::kNone, Op::kTrans}) {
      check_case<float>({ta, tb, 37, 45, 50, 2, 2, 1});
      check_case<double>({ta, tb, 37, 45, 50, 2, 2, 1});
      check_case<float>({ta, tb, 64, 64, 64, 0, 1, 0});
    }
  }
}

TEST_P(Routes, NanIsOverwritten) {
  check_nan_is_overwritten<float>(40);
  check_nan_is_overwritten<double>(40);
  check_nan_is_overwritten<BFloat16>(40);
}

TEST_P(Routes, NanAndInfAreKept) {
  std::vector<float> a(40 * 40, 1.0f);
  std::vector<float> c(40 * 40);
  a[0] = std::numeric_limits<float>::quiet_NaN();
  a[40] = std::numeric_limits<float>::infinity();
  const std::vector<float> b(40 * 40, 1.0f);
  gemm<float>(Op::kNone,
              Op::kNone,
              40,
              40,
              40,
              1,
              a.data(),
              40,
              b.data(),
              40,
              0,
              c.data(),
              40);
  EXPECT_TRUE(std::isnan(c[5]));
  EXPECT_TRUE(std::isinf(c[45]));
  EXPECT_EQ(c[85], 40.0f);
}

INSTANTIATE_TEST_SUITE_P(All,
                         Routes,
                         ::testing::Values("small", "dnn", "openblas", ""));

TEST(GemmThreads, SeveralUserThreadsAtOnce) {
  std::vector<std::thread> users;
  for (int i = 0; i < 4; ++i) {
    users.emplace_back([] {
      check_case<float>({Op::kNone, Op::kNone, 150, 100, 60, 0, 1, 0});
      check_case<double>({Op::kNone, Op::kTrans, 100, 150, 60, 0, 1, 0});
      check_case<BFloat16>({Op::kNone, Op::kTrans, 100, 70, 60, 0, 1, 0});
    });
  }
  for (auto& user : users) {
    user.join();
  }
}

TEST(GemmThreads, SameResultOnOneThreadAndMany) {
  const int before = get_num_threads();
  for (const int threads : {1, 2, 5}) {
    set_num_threads(threads);
    check_case<float>({Op::kNone, Op::kNone, 150, 700, 60, 0, 1, 0});
    check_case<double>({Op::kNone, Op::kNone, 250, 300, 60, 0, 1, 0});
    check_case<complex<float>>({Op::kNone, Op::kNone, 100, 100, 60, 0, 1, 0});
  }
  set_num_threads(before);
}

}  // namespace
}  // namespace taeda::blas
