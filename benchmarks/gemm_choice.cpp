// Timed products and convolutions for gemm_choice.py and dnn_layers.py, loaded
// with ctypes: each call returns the seconds of the fastest of `rounds` runs.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <vector>

#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/blas/gemm_choice.h>
#include <taeda/aten/native/dnn/dnn.h>
#include <taeda/aten/parallel/parallel.h>

namespace {

using taeda::blas::Op;

double now() {
  const auto t = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(t).count();
}

template <typename F>
double fastest(int rounds, int repeats, const F& f) {
  double best = 1e9;
  for (int i = 0; i < rounds; ++i) {
    const double start = now();
    for (int j = 0; j < repeats; ++j) {
      f();
    }
    best = std::min(best, (now() - start) / repeats);
  }
  return best;
}

template <typename T>
double time_gemm(int ta,
                 int tb,
                 int64_t batch,
                 int64_t m,
                 int64_t n,
                 int64_t k,
                 int rounds,
                 int repeats) {
  const std::vector<T> a(static_cast<size_t>(batch * m * k), T(0.5f));
  const std::vector<T> b(static_cast<size_t>(batch * k * n), T(0.5f));
  std::vector<T> c(static_cast<size_t>(batch * m * n));
  const Op op_a = ta ? Op::kTrans : Op::kNone;
  const Op op_b = tb ? Op::kTrans : Op::kNone;
  const int64_t lda = ta ? m : k;
  const int64_t ldb = tb ? k : n;
  return fastest(rounds, repeats, [&] {
    if (batch == 1) {
      taeda::blas::gemm<T>(
          op_a, op_b, m, n, k, 1, a.data(), lda, b.data(), ldb, 0, c.data(), n);
    } else {
      taeda::blas::gemm_batched<T>(op_a,
                                   op_b,
                                   batch,
                                   m,
                                   n,
                                   k,
                                   1,
                                   a.data(),
                                   lda,
                                   b.data(),
                                   ldb,
                                   0,
                                   c.data(),
                                   n,
                                   {m * k, k * n, m * n});
    }
  });
}

}  // namespace

extern "C" {

TAEDA_API void bench_set_threads(int count) { taeda::set_num_threads(count); }

// route: "small", "dnn", "openblas", or "" for the choice.
TAEDA_API double bench_gemm(const char* route,
                            char dtype,
                            int ta,
                            int tb,
                            int64_t batch,
                            int64_t m,
                            int64_t n,
                            int64_t k,
                            int rounds,
                            int repeats) {
  taeda::blas::force_gemm_route(route);
  const auto run = [&](auto zero) {
    return time_gemm<decltype(zero)>(ta, tb, batch, m, n, k, rounds, repeats);
  };
  double seconds = 0;
  switch (dtype) {
    case 'f':
      seconds = run(0.0f);
      break;
    case 'd':
      seconds = run(0.0);
      break;
    case 'c':
      seconds = run(taeda::complex<float>());
      break;
    case 'b':
      seconds = run(taeda::BFloat16());
      break;
    case 'h':
      seconds = run(taeda::Half());
      break;
    default:
      seconds = run(int64_t{});
  }
  taeda::blas::force_gemm_route("");
  return seconds;
}

// One float32 convolution of a square image: pass 0 forward with bias, 1 the
// gradient of the input, 2 those of weight and bias. Negative: unsupported.
TAEDA_API double bench_conv(int pass,
                            int bf16,
                            int last,
                            int64_t batch,
                            int64_t in_channels,
                            int64_t out_channels,
                            int64_t groups,
                            int64_t size,
                            int64_t kernel,
                            int64_t stride,
                            int64_t pad,
                            int keep,
                            int rounds,
                            int repeats) {
  taeda::dnn::Conv conv{};
  conv.dtype = bf16 ? taeda::dnn::DataType::kBF16 : taeda::dnn::DataType::kF32;
  conv.channels_last = conv.weight_channels_last = last != 0;
  conv.spatial = 2;
  conv.batch = batch;
  conv.in_channels = in_channels;
  conv.out_channels = out_channels;
  conv.groups = groups;
  conv.in = {size, size, 1};
  conv.kernel = {kernel, kernel, 1};
  conv.stride = {stride, stride, 1};
  conv.dilation = {1, 1, 1};
  conv.pad_begin = conv.pad_end = {pad, pad, 0};
  const auto floats = [](int64_t n) {
    return std::vector<float>(static_cast<size_t>(n), 0.5f);
  };
  auto src = floats(batch * in_channels * size * size);
  auto dst = floats(batch * out_channels * conv.out(0) * conv.out(1));
  auto weight = floats(out_channels * in_channels / groups * kernel * kernel);
  auto bias = floats(out_channels);
  bool done = true;
  const taeda::dnn::WeightId id{keep ? 1u : 0u, static_cast<uint64_t>(keep)};
  const double seconds = fastest(rounds, repeats, [&] {
    if (pass == 0) {
      done &= taeda::dnn::conv_forward(
          conv, src.data(), weight.data(), id, bias.data(), dst.data());
    } else if (pass == 1) {
      done &= taeda::dnn::conv_backward_data(
          conv, dst.data(), weight.data(), id, src.data());
    } else {
      done &= taeda::dnn::conv_backward_weights(
          conv, src.data(), dst.data(), weight.data(), bias.data());
    }
  });
  return done ? seconds : -1;
}

}  // extern "C"
