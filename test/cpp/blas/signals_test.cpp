// Signal handlers that run while a library computes find the heap as it was.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <chrono>
#include <vector>

#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/dnn/dnn.h>
#include <taeda/aten/parallel/parallel.h>

#include "../in_child.h"

namespace taeda::blas {
namespace {

constexpr int kMicrosecondsBetweenSignals = 200;
constexpr std::chrono::milliseconds kDuration{300};
constexpr int kFewestSignals = 10;

// Any thread may get the signal.
std::atomic<int> signals_{0};
static_assert(std::atomic<int>::is_always_lock_free);

void count_signal(int) { signals_.fetch_add(1); }

// True where body() was true throughout. Signals that wait together count as
// one, so on a busy machine it takes longer until enough came.
template <typename Body>
bool holds_under_signals(int threads, const Body& body) {
  set_num_threads(threads);
  struct sigaction action {};
  action.sa_handler = count_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGALRM, &action, nullptr);
  const timeval interval{0, kMicrosecondsBetweenSignals};
  const itimerval timer{interval, interval};
  setitimer(ITIMER_REAL, &timer, nullptr);
  const auto end = std::chrono::steady_clock::now() + kDuration;
  bool right = true;
  while (right && (std::chrono::steady_clock::now() < end ||
                   signals_ < kFewestSignals)) {
    right = body();
  }
  return right;
}

bool product_is_right(int64_t m, int64_t n, int64_t k) {
  const std::vector<float> a(static_cast<size_t>(m * k), 2);
  const std::vector<float> b(static_cast<size_t>(k * n), 3);
  std::vector<float> c(static_cast<size_t>(m * n));
  gemm<float>(Op::kNone,
              Op::kNone,
              m,
              n,
              k,
              1,
              a.data(),
              k,
              b.data(),
              n,
              0,
              c.data(),
              n);
  return c == std::vector<float>(c.size(), 6 * static_cast<float>(k));
}

// Three groups of two channels: computed by way of a matrix product.
bool grouped_convolution_is_right() {
  dnn::Conv conv{};
  conv.dtype = dnn::DataType::kF32;
  conv.spatial = 1;
  conv.batch = 2;
  conv.in_channels = conv.out_channels = 6;
  conv.groups = 3;
  conv.in = {4096, 1, 1};
  conv.kernel = conv.stride = conv.dilation = {1, 1, 1};
  const size_t count = 2 * 6 * 4096;
  const std::vector<float> src(count, 2), weight(12, 3);
  std::vector<float> dst(count);
  return dnn::conv_forward(
             conv, src.data(), weight.data(), {}, nullptr, dst.data()) &&
         dst == std::vector<float>(count, 12);
}

class Signals : public ::testing::TestWithParam<int> {};

TEST_P(Signals, Products) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{128, 128, 128},
                                {512, 512, 512},
                                {64, 256, 4096}}) {
    EXPECT_TRUE(in_child([&] {
      return holds_under_signals(GetParam(),
                                 [&] { return product_is_right(m, n, k); });
    })) << m
        << " x " << k << " by " << k << " x " << n;
  }
}

TEST_P(Signals, GroupedConvolution) {
  EXPECT_TRUE(in_child([] {
    return holds_under_signals(GetParam(), grouped_convolution_is_right);
  }));
}

INSTANTIATE_TEST_SUITE_P(Threads, Signals, ::testing::Values(1, 2));

}  // namespace
}  // namespace taeda::blas
