#include <taeda/aten/native/cpu/kernels/isa.h>
#include <taeda/aten/native/cpu/kernels/moments.h>

TAEDA_ISA_BEGIN

namespace {

// A block stays in the first-level cache for its second pass.
constexpr int64_t kBlock = 2048;

template <class T, class F>
[[gnu::always_inline]] inline double total(int64_t n, F&& f) {
  constexpr int chains = 256 / static_cast<int>(sizeof(T));
  T parts[chains] = {};
  int64_t i = 0;
  for (; i + chains <= n; i += chains) {
    for (int l = 0; l < chains; ++l) parts[l] += f(i + l);
  }
  for (int l = 0; i + l < n; ++l) parts[l] += f(i + l);
  for (int half = chains / 2; half > 0; half /= 2) {
    for (int l = 0; l < half; ++l) parts[l] += parts[l + half];
  }
  return parts[0];
}

template <class T>
Moments row(const T* in, int64_t n) {
  Moments all;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    int64_t count = n - begin < kBlock ? n - begin : kBlock;
    const T* x = in + begin;
    Moments part;
    part.count = static_cast<double>(count);
    double sum = total<T>(count, [&](int64_t i) { return x[i]; });
    part.mean = sum / part.count;
    T mean = static_cast<T>(part.mean);
    part.squares = total<T>(count, [&](int64_t i) {
      T d = x[i] - mean;
      return d * d;
    });
    all.add(part);
  }
  return all;
}

// Welford (1962), side by side, in double.
template <class T>
void columns(
    const T* in, int64_t n, int64_t stride, int64_t count, Moments* out) {
  double mean[kMomentColumns] = {}, squares[kMomentColumns] = {};
  for (int64_t i = 0; i < n; ++i) {
    const T* x = in + i * stride;
    double share = 1.0 / static_cast<double>(i + 1);
    for (int64_t c = 0; c < count; ++c) {
      double delta = static_cast<double>(x[c]) - mean[c];
      mean[c] += delta * share;
      squares[c] += delta * (static_cast<double>(x[c]) - mean[c]);
    }
  }
  for (int64_t c = 0; c < count; ++c) {
    out[c] = {static_cast<double>(n), mean[c], squares[c]};
  }
}

}  // namespace

extern const MomentTable kMomentTable = {{row<float>, columns<float>},
                                         {row<double>, columns<double>}};

TAEDA_ISA_END
