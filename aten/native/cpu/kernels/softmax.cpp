#include <taeda/aten/math/compare.h>
#include <taeda/aten/math/exp.h>
#include <taeda/aten/math/log.h>
#include <taeda/aten/native/cpu/kernels/isa.h>
#include <taeda/aten/native/cpu/kernels/softmax.h>

TAEDA_ISA_BEGIN

namespace {

// Independent chains of a reduction: four AVX-512 registers.
template <class T>
constexpr int kChains = 256 / static_cast<int>(sizeof(T));

// f(i) folded over [0, n) by `combine`, many chains at a time.
template <class T, class F, class C>
[[gnu::always_inline]] inline T fold(int64_t n, T init, F&& f, C&& combine) {
  constexpr int chains = kChains<T>;
  int64_t i = 0;
  T total = init;
  if (n >= chains) {
    T parts[chains];
    for (int l = 0; l < chains; ++l) parts[l] = f(l);
    for (i = chains; i + chains <= n; i += chains) {
      for (int l = 0; l < chains; ++l) parts[l] = combine(parts[l], f(i + l));
    }
    for (int half = chains / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) {
        parts[l] = combine(parts[l], parts[l + half]);
      }
    }
    total = combine(total, parts[0]);
  }
  for (; i < n; ++i) total = combine(total, f(i));
  return total;
}

template <class T>
void row(const T* in, T* __restrict out, int64_t n, bool log) {
  T high = fold(
      n,
      -math::kInfinity<T>,
      [&](int64_t i) { return in[i]; },
      [](T a, T b) { return math::maximum(a, b); });
  auto add = [](T a, T b) { return a + b; };
  if (log) {
    T sum =
        fold(n, T(0), [&](int64_t i) { return math::exp(in[i] - high); }, add);
    T shift = math::log(sum);
    for (int64_t i = 0; i < n; ++i) out[i] = in[i] - high - shift;
    return;
  }
  for (int64_t i = 0; i < n; ++i) out[i] = math::exp(in[i] - high);
  T sum = fold(n, T(0), [&](int64_t i) { return out[i]; }, add);
  T scale = T(1) / sum;
  for (int64_t i = 0; i < n; ++i) out[i] *= scale;
}

template <class T>
void columns(const T* in,
             T* __restrict out,
             int64_t n,
             int64_t stride,
             int64_t count,
             bool log) {
  T high[kSoftmaxColumns], sum[kSoftmaxColumns];
  for (int64_t c = 0; c < count; ++c) high[c] = in[c];
  for (int64_t i = 1; i < n; ++i) {
    const T* x = in + i * stride;
    for (int64_t c = 0; c < count; ++c) high[c] = math::maximum(high[c], x[c]);
  }
  for (int64_t c = 0; c < count; ++c) sum[c] = T(0);
  for (int64_t i = 0; i < n; ++i) {
    const T* x = in + i * stride;
    T* y = out + i * stride;
    for (int64_t c = 0; c < count; ++c) {
      T e = math::exp(x[c] - high[c]);
      sum[c] += e;
      y[c] = e;
    }
  }
  for (int64_t c = 0; c < count; ++c) {
    sum[c] = log ? math::log(sum[c]) : T(1) / sum[c];
  }
  for (int64_t i = 0; i < n; ++i) {
    const T* x = in + i * stride;
    T* y = out + i * stride;
    if (log) {
      for (int64_t c = 0; c < count; ++c) y[c] = x[c] - high[c] - sum[c];
    } else {
      for (int64_t c = 0; c < count; ++c) y[c] *= sum[c];
    }
  }
}

template <class T>
[[gnu::always_inline]] inline T restoring(T sum, T rounding) {
  return math::abs(sum - T(1)) <= rounding ? T(1) / sum : T(1);
}

template <class T>
void row_backward(const T* grad,
                  const T* y,
                  T* __restrict out,
                  int64_t n,
                  bool log,
                  T rounding) {
  auto add = [](T a, T b) { return a + b; };
  if (log) {
    T sum = fold(n, T(0), [&](int64_t i) { return grad[i]; }, add);
    for (int64_t i = 0; i < n; ++i) out[i] = grad[i] - math::exp(y[i]) * sum;
    return;
  }
  T scale = 1;
  if (rounding > T(0)) {
    scale = restoring(
        fold(n, T(0), [&](int64_t i) { return y[i]; }, add), rounding);
  }
  T sum = fold(n, T(0), [&](int64_t i) { return grad[i] * y[i]; }, add) * scale;
  for (int64_t i = 0; i < n; ++i) out[i] = (grad[i] - sum) * (y[i] * scale);
}

template <class T>
void columns_backward(const T* grad,
                      const T* y,
                      T* __restrict out,
                      int64_t n,
                      int64_t stride,
                      int64_t count,
                      bool log,
                      T rounding) {
  T sum[kSoftmaxColumns], scale[kSoftmaxColumns];
  for (int64_t c = 0; c < count; ++c) sum[c] = T(0), scale[c] = T(1);
  if (!log && rounding > T(0)) {
    for (int64_t i = 0; i < n; ++i) {
      const T* v = y + i * stride;
      for (int64_t c = 0; c < count; ++c) sum[c] += v[c];
    }
    for (int64_t c = 0; c < count; ++c) scale[c] = restoring(sum[c], rounding);
    for (int64_t c = 0; c < count; ++c) sum[c] = T(0);
  }
  for (int64_t i = 0; i < n; ++i) {
    const T* g = grad + i * stride;
    const T* v = y + i * stride;
    if (log) {
      for (int64_t c = 0; c < count; ++c) sum[c] += g[c];
    } else {
      for (int64_t c = 0; c < count; ++c) sum[c] += g[c] * (v[c] * scale[c]);
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    const T* g = grad + i * stride;
    const T* v = y + i * stride;
    T* o = out + i * stride;
    if (log) {
      for (int64_t c = 0; c < count; ++c) {
        o[c] = g[c] - math::exp(v[c]) * sum[c];
      }
    } else {
      for (int64_t c = 0; c < count; ++c) {
        o[c] = (g[c] - sum[c]) * (v[c] * scale[c]);
      }
    }
  }
}

}  // namespace

extern const SoftmaxTable kSoftmaxTable = {
    {row<float>, columns<float>, row_backward<float>, columns_backward<float>},
    {row<double>,
     columns<double>,
     row_backward<double>,
     columns_backward<double>}};

TAEDA_ISA_END
