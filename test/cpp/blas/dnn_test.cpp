#include <taeda/aten/native/dnn/dnn.h>

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/c10/core/storage.h>

#include "reference.h"

namespace taeda::dnn {
namespace {

using blas::testing::random_vector;

Conv make_conv(int spatial, int64_t size, int64_t kernel) {
  Conv conv{};
  conv.dtype = DataType::kF32;
  conv.spatial = spatial;
  conv.batch = 2;
  conv.in_channels = 4;
  conv.out_channels = 6;
  conv.groups = 1;
  conv.in = {1, 1, 1};
  conv.kernel = {1, 1, 1};
  conv.stride = {1, 1, 1};
  conv.dilation = {1, 1, 1};
  for (int d = 0; d < spatial; ++d) {
    // Unequal sizes, so that swapped dimensions show.
    conv.in[static_cast<size_t>(d)] = size + d;
    conv.kernel[static_cast<size_t>(d)] = kernel;
  }
  return conv;
}

// The entries of dimensions that are not there.
Conv trimmed(Conv conv) {
  for (auto d = static_cast<size_t>(conv.spatial); d < 3; ++d) {
    conv.stride[d] = conv.dilation[d] = 1;
    conv.pad_begin[d] = conv.pad_end[d] = 0;
  }
  return conv;
}

std::vector<Conv> cases() {
  std::vector<Conv> out;
  for (const int spatial : {1, 2, 3}) {
    for (const bool last : {false, true}) {
      Conv conv = make_conv(spatial, 7, 3);
      conv.channels_last = last;
      out.push_back(trimmed(conv));
      conv.weight_channels_last = true;
      conv.pad_begin = conv.pad_end = {1, 1, 1};
      out.push_back(trimmed(conv));
      conv.stride = {2, 1, 2};
      out.push_back(trimmed(conv));
      conv.dilation = {2, 2, 1};
      conv.pad_begin = {2, 2, 2};
      conv.pad_end = {1, 2, 3};
      out.push_back(trimmed(conv));
      conv.weight_channels_last = false;
      conv.groups = 2;
      out.push_back(trimmed(conv));
      conv.groups = conv.in_channels;
      conv.out_channels = 8;
      out.push_back(trimmed(conv));
      conv = make_conv(spatial, 5, 1);
      conv.channels_last = last;
      conv.in_channels = 33;
      conv.out_channels = 17;
      out.push_back(trimmed(conv));
      // Few channels, strided: where oneDNN's gathered pixels overran.
      conv = make_conv(spatial, 8, 1);
      conv.channels_last = last;
      conv.stride = {2, 2, 2};
      for (const int64_t channels : {3, 12}) {
        conv.in_channels = channels;
        out.push_back(trimmed(conv));
      }
    }
  }
  return out;
}

std::string describe(const Conv& c) {
  return "spatial " + std::to_string(c.spatial) + " last " +
         std::to_string(c.channels_last) + " groups " +
         std::to_string(c.groups) + " kernel " + std::to_string(c.kernel[0]) +
         " stride " + std::to_string(c.stride[0]) + " dilation " +
         std::to_string(c.dilation[0]);
}

struct Sizes {
  int64_t src;
  int64_t weight;
  int64_t dst;
};

int64_t product(const std::array<int64_t, 3>& values) {
  return values[0] * values[1] * values[2];
}

std::array<int64_t, 3> out_sizes(const Conv& c) {
  return {c.out(0), c.out(1), c.out(2)};
}

Sizes sizes_of(const Conv& c) {
  return {c.batch * c.in_channels * product(c.in),
          c.out_channels * c.in_channels / c.groups * product(c.kernel),
          c.batch * c.out_channels * product(out_sizes(c))};
}

// Where element (outer, channel, position) of a tensor stands.
int64_t offset(bool last,
               int64_t outer,
               int64_t channel,
               int64_t channels,
               int64_t position,
               int64_t positions) {
  return last ? (outer * positions + position) * channels + channel
              : (outer * channels + channel) * positions + position;
}

// Calls visit(src, weight, dst) with the offsets of every product in the sum
// that defines the convolution.
template <typename Visit>
void each_term(const Conv& c, const Visit& visit) {
  const auto out = out_sizes(c);
  const int64_t group_in = c.in_channels / c.groups;
  const int64_t group_out = c.out_channels / c.groups;
  const int64_t taps = product(c.kernel);
  for (int64_t n = 0; n < c.batch; ++n) {
    for (int64_t p = 0; p < product(out); ++p) {
      const int64_t at[3] = {
          p / (out[1] * out[2]), p / out[2] % out[1], p % out[2]};
      for (int64_t t = 0; t < taps; ++t) {
        const int64_t tap[3] = {t / (c.kernel[1] * c.kernel[2]),
                                t / c.kernel[2] % c.kernel[1],
                                t % c.kernel[2]};
        int64_t position = 0;
        bool inside = true;
        for (size_t d = 0; d < 3; ++d) {
          const int64_t x =
              at[d] * c.stride[d] + tap[d] * c.dilation[d] - c.pad_begin[d];
          inside = inside && x >= 0 && x < c.in[d];
          position = position * c.in[d] + x;
        }
        if (!inside) {
          continue;
        }
        for (int64_t o = 0; o < c.out_channels; ++o) {
          for (int64_t i = 0; i < group_in; ++i) {
            const int64_t channel = o / group_out * group_in + i;
            visit(
                offset(c.channels_last,
                       n,
                       channel,
                       c.in_channels,
                       position,
                       product(c.in)),
                offset(c.weight_channels_last, o, i, group_in, t, taps),
                offset(c.channels_last, n, o, c.out_channels, p, product(out)));
          }
        }
      }
    }
  }
}

template <typename T>
void expect_close(const std::vector<T>& got,
                  const std::vector<double>& expected) {
  const double bound =
      blas::testing::epsilon<T>() * (std::is_same_v<T, float> ? 64 : 8);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(static_cast<float>(got[i])),
                expected[i],
                bound * (4 + std::fabs(expected[i])))
        << "at " << i;
  }
}

template <typename T>
class Case {
 public:
  explicit Case(Conv conv) : conv_(conv), sizes_(sizes_of(conv)) {
    conv_.dtype = std::is_same_v<T, float> ? DataType::kF32 : DataType::kBF16;
    std::mt19937 rng(11);
    src_ = random_vector<T>(sizes_.src, rng);
    weight_ = random_vector<T>(sizes_.weight, rng);
    dst_ = random_vector<T>(sizes_.dst, rng);
    bias_ = random_vector<T>(conv.out_channels, rng);
  }

  bool is_supported() {
    std::vector<T> got(static_cast<size_t>(sizes_.dst));
    return conv_forward(
        conv_, src_.data(), weight_.data(), {}, nullptr, got.data());
  }

  void check_forward(bool with_bias) {
    std::vector<double> expected(static_cast<size_t>(sizes_.dst), 0.0);
    if (with_bias) {
      add_bias(expected);
    }
    each_term(conv_, [&](int64_t s, int64_t w, int64_t d) {
      at(expected, d) += value(src_, s) * value(weight_, w);
    });
    std::vector<T> got(static_cast<size_t>(sizes_.dst), nan());
    ASSERT_TRUE(conv_forward(conv_,
                             src_.data(),
                             weight_.data(),
                             {},
                             with_bias ? bias_.data() : nullptr,
                             got.data()));
    expect_close(got, expected);
  }

  void check_backward_data() {
    std::vector<double> expected(static_cast<size_t>(sizes_.src), 0.0);
    each_term(conv_, [&](int64_t s, int64_t w, int64_t d) {
      at(expected, s) += value(dst_, d) * value(weight_, w);
    });
    std::vector<T> got(static_cast<size_t>(sizes_.src), nan());
    ASSERT_TRUE(
        conv_backward_data(conv_, dst_.data(), weight_.data(), {}, got.data()));
    expect_close(got, expected);
  }

  void check_backward_weights() {
    std::vector<double> expected(static_cast<size_t>(sizes_.weight), 0.0);
    each_term(conv_, [&](int64_t s, int64_t w, int64_t d) {
      at(expected, w) += value(dst_, d) * value(src_, s);
    });
    std::vector<double> bias(static_cast<size_t>(conv_.out_channels), 0.0);
    each_output([&](int64_t channel, int64_t d) {
      at(bias, channel) += value(dst_, d);
    });
    std::vector<T> got(static_cast<size_t>(sizes_.weight), nan());
    std::vector<T> got_bias(bias.size(), nan());
    ASSERT_TRUE(conv_backward_weights(
        conv_, src_.data(), dst_.data(), got.data(), got_bias.data()));
    expect_close(got, expected);
    expect_close(got_bias, bias);
    std::fill(got.begin(), got.end(), nan());
    ASSERT_TRUE(conv_backward_weights(
        conv_, src_.data(), dst_.data(), got.data(), nullptr));
    expect_close(got, expected);
  }

 private:
  static T nan() { return T(std::numeric_limits<float>::quiet_NaN()); }
  static double value(const std::vector<T>& x, int64_t i) {
    return static_cast<double>(static_cast<float>(x[static_cast<size_t>(i)]));
  }
  static double& at(std::vector<double>& x, int64_t i) {
    return x[static_cast<size_t>(i)];
  }
  template <typename Visit>
  void each_output(const Visit& visit) {
    const int64_t positions = product(out_sizes(conv_));
    for (int64_t n = 0; n < conv_.batch; ++n) {
      for (int64_t o = 0; o < conv_.out_channels; ++o) {
        for (int64_t p = 0; p < positions; ++p) {
          visit(
              o,
              offset(
                  conv_.channels_last, n, o, conv_.out_channels, p, positions));
        }
      }
    }
  }
  void add_bias(std::vector<double>& out) {
    each_output([&](int64_t channel, int64_t d) {
      at(out, d) += value(bias_, channel);
    });
  }

  Conv conv_;
  Sizes sizes_;
  std::vector<T> src_;
  std::vector<T> weight_;
  std::vector<T> dst_;
  std::vector<T> bias_;
};

TEST(Conv, ForwardMatchesTheSum) {
  for (const Conv& conv : cases()) {
    SCOPED_TRACE(describe(conv));
    Case<float>(conv).check_forward(false);
    Case<float>(conv).check_forward(true);
  }
}

TEST(Conv, BackwardDataMatchesTheSum) {
  for (const Conv& conv : cases()) {
    SCOPED_TRACE(describe(conv));
    Case<float>(conv).check_backward_data();
  }
}

TEST(Conv, BackwardWeightsMatchesTheSum) {
  for (const Conv& conv : cases()) {
    SCOPED_TRACE(describe(conv));
    Case<float>(conv).check_backward_weights();
  }
}

TEST(Conv, BFloat16) {
  if (cpu_capability() < CpuCapability::kAvx512) {
    // The answer "not here" is the documented one.
    Conv conv = make_conv(2, 7, 3);
    conv.dtype = DataType::kBF16;
    const Sizes sizes = sizes_of(conv);
    std::vector<BFloat16> x(static_cast<size_t>(sizes.src));
    std::vector<BFloat16> w(static_cast<size_t>(sizes.weight));
    std::vector<BFloat16> y(static_cast<size_t>(sizes.dst));
    EXPECT_FALSE(conv_forward(conv, x.data(), w.data(), {}, nullptr, y.data()));
    return;
  }
  for (const Conv& conv : cases()) {
    SCOPED_TRACE(describe(conv));
    // Version 2 of oneDNN is not trusted with these, and says so.
    if (conv.channels_last && !Case<BFloat16>(conv).is_supported()) {
      continue;
    }
    Case<BFloat16>(conv).check_forward(true);
    Case<BFloat16>(conv).check_backward_data();
    Case<BFloat16>(conv).check_backward_weights();
  }
}

TEST(Conv, ThreadCountMayChangeBetweenCalls) {
  const int before = get_num_threads();
  for (const int threads : {1, 4, 2, 1}) {
    set_num_threads(threads);
    Case<float>(make_conv(2, 9, 3)).check_forward(true);
  }
  set_num_threads(before);
}

TEST(Conv, RunsInsideAParallelRegion) {
  const int before = get_num_threads();
  set_num_threads(3);
  parallel_for(0, 3, 1, [](int64_t, int64_t) {
    Case<float>(make_conv(2, 9, 3)).check_forward(true);
  });
  set_num_threads(before);
}

TEST(Conv, SeveralUserThreadsAtOnce) {
  std::vector<std::thread> users;
  for (int i = 0; i < 4; ++i) {
    users.emplace_back([i] {
      for (int round = 0; round < 4; ++round) {
        Case<float> test(make_conv(2, 9 + (i + round) % 3, 3));
        test.check_forward(true);
        test.check_backward_weights();
      }
    });
  }
  for (auto& user : users) {
    user.join();
  }
}

// The kept form is given up where somebody asks for the weight to write it.
TEST(Conv, KeptWeightsFollowWrites) {
  Conv conv = make_conv(2, 8, 3);
  conv.in_channels = conv.out_channels = 32;
  const Sizes sizes = sizes_of(conv);
  const std::vector<float> src(static_cast<size_t>(sizes.src), 1.0f);
  const auto count = static_cast<size_t>(sizes.weight);
  Storage weight = make_intrusive<StorageImpl>(
      count * sizeof(float), cpu_allocator(), Device(DeviceType::CPU));
  std::vector<float> dst(static_cast<size_t>(sizes.dst));
  const auto fill = [&](float value) {
    auto* to = static_cast<float*>(weight->mutable_data());
    std::fill(to, to + count, value);
  };
  const auto first = [&](WeightId id) {
    EXPECT_TRUE(conv_forward(
        conv, src.data(), weight->data(), id, nullptr, dst.data()));
    return dst[0];
  };
  fill(1.0f);
  for (int call = 0; call < 4; ++call) {
    EXPECT_EQ(first({weight.get()}), 32 * 9);
  }
  fill(2.0f);
  for (int call = 0; call < 4; ++call) {
    EXPECT_EQ(first({weight.get()}), 2 * 32 * 9);
  }
  fill(3.0f);
  EXPECT_EQ(first({}), 3 * 32 * 9);
}

TEST(Conv, ImpossibleGeometryIsRefused) {
  Conv conv = make_conv(2, 3, 3);
  conv.groups = 3;  // does not divide 4 channels
  std::vector<float> x(10000);
  EXPECT_FALSE(
      conv_forward(conv, x.data(), x.data(), {}, nullptr, x.data() + 5000));
}

template <typename T>
void check_matmul(MatMul m) {
  m.dtype = std::is_same_v<T, float> ? DataType::kF32 : DataType::kBF16;
  std::mt19937 rng(2);
  const auto a = random_vector<T>(m.batch * m.m * m.k, rng);
  const auto b = random_vector<T>(m.batch * m.k * m.n, rng);
  const auto bias = random_vector<T>(m.n, rng);
  std::vector<T> c(static_cast<size_t>(m.batch * m.m * m.n));
  const size_t bytes = b.size() * sizeof(T);
  Storage kept = make_intrusive<StorageImpl>(
      bytes, cpu_allocator(), Device(DeviceType::CPU));
  std::memcpy(kept->mutable_data(), b.data(), bytes);
  for (StorageImpl* owner :
       std::array<StorageImpl*, 3>{nullptr, kept.get(), kept.get()}) {
    ASSERT_TRUE(matmul(m,
                       a.data(),
                       kept->data(),
                       {owner},
                       m.has_bias ? bias.data() : nullptr,
                       c.data()));
    std::vector<double> expected(c.size());
    for (int64_t z = 0; z < m.batch; ++z) {
      for (int64_t i = 0; i < m.m; ++i) {
        for (int64_t j = 0; j < m.n; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < m.k; ++p) {
            const int64_t at =
                z * m.stride_a + (m.trans_a ? p * m.lda + i : i * m.lda + p);
            const int64_t bt =
                z * m.stride_b + (m.trans_b ? j * m.ldb + p : p * m.ldb + j);
            sum += static_cast<double>(
                       static_cast<float>(a[static_cast<size_t>(at)])) *
                   static_cast<double>(
                       static_cast<float>(b[static_cast<size_t>(bt)]));
          }
          if (m.has_bias) {
            sum += static_cast<double>(
                static_cast<float>(bias[static_cast<size_t>(j)]));
          }
          expected[static_cast<size_t>((z * m.m + i) * m.n + j)] = sum;
        }
      }
    }
    expect_close(c, expected);
  }
}

TEST(MatMul, EveryForm) {
  const bool wide = cpu_capability() >= CpuCapability::kAvx512;
  for (const int form : {0, 1, 2, 3, 4, 5, 6, 7}) {
    const bool ta = (form & 1) != 0;
    const bool tb = (form & 2) != 0;
    const bool bias = (form & 4) != 0;
    for (const int64_t batch : {1, 3}) {
      MatMul m{DataType::kF32,
               ta,
               tb,
               bias,
               batch,
               17,
               33,
               20,
               ta ? 17 : 20,
               tb ? 20 : 33,
               33,
               17 * 20,
               20 * 33,
               17 * 33};
      check_matmul<float>(m);
      m.stride_b = 0;
      check_matmul<float>(m);
      if (wide) {
        check_matmul<BFloat16>(m);
      }
    }
  }
}

}  // namespace
}  // namespace taeda::dnn
