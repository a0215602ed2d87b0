// The bodies of kernels.h over a vector type V of one instruction set, for the
// kernels.*.cpp beside this file only. Everything is in an unnamed namespace:
// the same template compiled for another level must stay another function.
//
// V offers: T, kWidth, kRows (rows of a register tile), zero, set1, load,
// store, load_n and store_n (the first n elements; load_n fills with zeros),
// fma(a, b, c) = a * b + c, mul, sum (over the lanes).
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <taeda/aten/native/blas/kernels.h>
#include <taeda/c10/util/convert_bulk.h>

namespace taeda::blas {
namespace {

template <class V, bool kPartial>
inline auto load_last(const typename V::T* p, int64_t n) {
  if constexpr (kPartial) {
    return V::load_n(p, n);
  } else {
    return V::load(p);
  }
}

// Rows x kVecs vectors of C, the last vector `last` elements wide.
template <class V, int kRows, int kVecs, bool kPartial>
inline void tile(const SmallGemm<typename V::T>& g,
                 int64_t i0,
                 int64_t j0,
                 int64_t last) {
  using T = typename V::T;
  constexpr int kW = V::kWidth;
  typename V::Reg acc[kRows][kVecs];
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      acc[r][v] = V::zero();
    }
  }
  const T* a = g.a + i0 * g.a_row;
  const T* b = g.b + j0;
  for (int64_t p = 0; p < g.k; ++p) {
    typename V::Reg row[kVecs];
#pragma GCC unroll 4
    for (int v = 0; v + 1 < kVecs; ++v) {
      row[v] = V::load(b + v * kW);
    }
    row[kVecs - 1] = load_last<V, kPartial>(b + (kVecs - 1) * kW, last);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const auto value = V::set1(a[r * g.a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) {
        acc[r][v] = V::fma(value, row[v], acc[r][v]);
      }
    }
    a += g.a_step;
    b += g.ldb;
  }
  const auto alpha = V::set1(g.alpha);
  const auto beta = V::set1(g.beta);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    T* c = g.c + (i0 + r) * g.ldc + j0;
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      auto result = V::mul(alpha, acc[r][v]);
      const bool cut = kPartial && v == kVecs - 1;
      if (g.beta != T(0)) {
        const auto old =
            cut ? V::load_n(c + v * kW, last) : V::load(c + v * kW);
        result = V::fma(beta, old, result);
      }
      if (cut) {
        V::store_n(c + v * kW, result, last);
      } else {
        V::store(c + v * kW, result);
      }
    }
  }
}

template <class V, int kVecs, bool kPartial>
inline void all_rows(const SmallGemm<typename V::T>& g,
                     int64_t j0,
                     int64_t last) {
  int64_t i = 0;
  for (; i + V::kRows <= g.m; i += V::kRows) {
    tile<V, V::kRows, kVecs, kPartial>(g, i, j0, last);
  }
  if constexpr (V::kRows > 4) {
    if (i + 4 <= g.m) {
      tile<V, 4, kVecs, kPartial>(g, i, j0, last);
      i += 4;
    }
  }
  if (i + 2 <= g.m) {
    tile<V, 2, kVecs, kPartial>(g, i, j0, last);
    i += 2;
  }
  if (i < g.m) {
    tile<V, 1, kVecs, kPartial>(g, i, j0, last);
  }
}

template <class V>
void small_gemm(const SmallGemm<typename V::T>& g) {
  constexpr int64_t kW = V::kWidth;
  int64_t j = 0;
  for (; j + 2 * kW <= g.n; j += 2 * kW) {
    all_rows<V, 2, false>(g, j, kW);
  }
  const int64_t rest = g.n - j;
  if (rest == kW) {
    all_rows<V, 1, false>(g, j, kW);
  } else if (rest > kW) {
    all_rows<V, 2, true>(g, j, rest - kW);
  } else if (rest > 0) {
    all_rows<V, 1, true>(g, j, rest);
  }
}

// Blocks of 8 x 8 keep both sides' cache lines in use.
template <class V>
void transpose(int64_t rows,
               int64_t cols,
               const typename V::T* in,
               int64_t ld,
               typename V::T* out) {
  constexpr int64_t kBlock = 8;
  for (int64_t i0 = 0; i0 < rows; i0 += kBlock) {
    const int64_t i1 = std::min(rows, i0 + kBlock);
    int64_t j = 0;
    if (i1 - i0 == kBlock) {
      for (; j + kBlock <= cols; j += kBlock) {
        V::transpose8(in + i0 * ld + j, ld, out + j * rows + i0, rows);
      }
    }
    for (; j < cols; ++j) {
      for (int64_t i = i0; i < i1; ++i) {
        out[j * rows + i] = in[i * ld + j];
      }
    }
  }
}

template <class V>
typename V::T dot(int64_t n, const typename V::T* x, const typename V::T* y) {
  constexpr int64_t kW = V::kWidth;
  typename V::Reg acc[4] = {V::zero(), V::zero(), V::zero(), V::zero()};
  int64_t i = 0;
  for (; i + 4 * kW <= n; i += 4 * kW) {
#pragma GCC unroll 4
    for (int v = 0; v < 4; ++v) {
      acc[v] = V::fma(V::load(x + i + v * kW), V::load(y + i + v * kW), acc[v]);
    }
  }
  for (; i + kW <= n; i += kW) {
    acc[0] = V::fma(V::load(x + i), V::load(y + i), acc[0]);
  }
  if (i < n) {
    acc[1] = V::fma(V::load_n(x + i, n - i), V::load_n(y + i, n - i), acc[1]);
  }
  return V::sum(V::add(V::add(acc[0], acc[1]), V::add(acc[2], acc[3])));
}

template <class V>
void axpy(int64_t n,
          typename V::T alpha,
          const typename V::T* x,
          typename V::T* y) {
  constexpr int64_t kW = V::kWidth;
  const auto factor = V::set1(alpha);
  int64_t i = 0;
  for (; i + kW <= n; i += kW) {
    V::store(y + i, V::fma(factor, V::load(x + i), V::load(y + i)));
  }
  if (i < n) {
    const auto sum =
        V::fma(factor, V::load_n(x + i, n - i), V::load_n(y + i, n - i));
    V::store_n(y + i, sum, n - i);
  }
}

// Four rows share each load of x.
template <class V, int kRows>
inline void dot_rows(int64_t cols,
                     const typename V::T* a,
                     int64_t lda,
                     const typename V::T* x,
                     typename V::T* sums) {
  constexpr int64_t kW = V::kWidth;
  typename V::Reg acc[kRows][2];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    acc[r][0] = acc[r][1] = V::zero();
  }
  int64_t j = 0;
  for (; j + 2 * kW <= cols; j += 2 * kW) {
    const auto x0 = V::load(x + j);
    const auto x1 = V::load(x + j + kW);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      acc[r][0] = V::fma(V::load(a + r * lda + j), x0, acc[r][0]);
      acc[r][1] = V::fma(V::load(a + r * lda + j + kW), x1, acc[r][1]);
    }
  }
  for (; j < cols; j += kW) {
    const int64_t count = std::min(kW, cols - j);
    const auto x0 = V::load_n(x + j, count);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      acc[r][0] = V::fma(V::load_n(a + r * lda + j, count), x0, acc[r][0]);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    sums[r] = V::sum(V::add(acc[r][0], acc[r][1]));
  }
}

template <class V>
void gemv_rows(int64_t rows,
               int64_t cols,
               typename V::T alpha,
               const typename V::T* a,
               int64_t lda,
               const typename V::T* x,
               typename V::T beta,
               typename V::T* y,
               int64_t inc_y) {
  using T = typename V::T;
  const auto put = [&](int64_t i, T sum) {
    T& out = y[i * inc_y];
    out = beta == T(0) ? alpha * sum : alpha * sum + beta * out;
  };
  int64_t i = 0;
  for (; i + 4 <= rows; i += 4) {
    T sums[4];
    dot_rows<V, 4>(cols, a + i * lda, lda, x, sums);
    for (int r = 0; r < 4; ++r) {
      put(i + r, sums[r]);
    }
  }
  for (; i < rows; ++i) {
    T sum;
    dot_rows<V, 1>(cols, a + i * lda, lda, x, &sum);
    put(i, sum);
  }
}

template <class V>
void dots(int64_t count,
          int64_t n,
          typename V::T alpha,
          const typename V::T* x,
          int64_t x_stride,
          const typename V::T* y,
          int64_t y_stride,
          typename V::T beta,
          typename V::T* out,
          int64_t out_stride) {
  using T = typename V::T;
  for (int64_t i = 0; i < count; ++i) {
    T sum;
    dot_rows<V, 1>(n, x + i * x_stride, 0, y + i * y_stride, &sum);
    T& to = out[i * out_stride];
    to = beta == T(0) ? alpha * sum : alpha * sum + beta * to;
  }
}

// y[j] += alpha sum_r a[r * lda + j] x[r], or = for kFirst.
template <class V, int kRows, bool kFirst>
inline void add_rows(int64_t cols,
                     typename V::T alpha,
                     const typename V::T* a,
                     int64_t lda,
                     const typename V::T* x,
                     typename V::T* y) {
  constexpr int64_t kW = V::kWidth;
  typename V::Reg factor[kRows];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    factor[r] = V::set1(alpha * x[r]);
  }
  int64_t j = 0;
  for (; j + kW <= cols; j += kW) {
    auto sum = kFirst ? V::zero() : V::load(y + j);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      sum = V::fma(factor[r], V::load(a + r * lda + j), sum);
    }
    V::store(y + j, sum);
  }
  if (j == cols) {
    return;
  }
  auto sum = kFirst ? V::zero() : V::load_n(y + j, cols - j);
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    sum = V::fma(factor[r], V::load_n(a + r * lda + j, cols - j), sum);
  }
  V::store_n(y + j, sum, cols - j);
}

// Many rows of A at a time, each a stream for the prefetcher; the sums stay in
// the first cache. Where alpha is 1 they are those of strips, bit by bit.
template <class V>
void gemv_streams(int64_t rows,
                  int64_t cols,
                  typename V::T alpha,
                  const typename V::T* a,
                  int64_t lda,
                  const typename V::T* x,
                  typename V::T beta,
                  typename V::T* y) {
  using T = typename V::T;
  constexpr int kRows = 8;
  constexpr int64_t kBlock = 16384 / sizeof(T);
  for (int64_t j = 0; j < cols; j += kBlock) {
    const int64_t width = std::min(kBlock, cols - j);
    int64_t i = 0;
    if (beta == T(0)) {
      add_rows<V, kRows, true>(width, alpha, a + j, lda, x, y + j);
      i = kRows;
    }
    for (int64_t k = j; beta != T(0) && k < j + width; ++k) {
      y[k] *= beta;
    }
    for (; i + kRows <= rows; i += kRows) {
      add_rows<V, kRows, false>(
          width, alpha, a + i * lda + j, lda, x + i, y + j);
    }
    for (; i < rows; ++i) {
      add_rows<V, 1, false>(width, alpha, a + i * lda + j, lda, x + i, y + j);
    }
  }
}

template <class V>
void gemv_cols(int64_t rows,
               int64_t cols,
               typename V::T alpha,
               const typename V::T* a,
               int64_t lda,
               const typename V::T* x,
               typename V::T beta,
               typename V::T* y) {
  // A row vector times A: the register tile with one row serves as it stands,
  // but streams A once per strip of 2 vectors; wide strips suit the prefetcher,
  // and whole rows, where there are several strips, suit it more.
  using T = typename V::T;
  constexpr int64_t kStrip = 8 * V::kWidth;
  if (rows >= 8 && cols >= 2 * kStrip) {
    gemv_streams<V>(rows, cols, alpha, a, lda, x, beta, y);
    return;
  }
  const auto factor = V::set1(alpha);
  for (int64_t j = 0; j < cols; j += kStrip) {
    const int64_t width = std::min(kStrip, cols - j);
    if (width < kStrip) {
      SmallGemm<T> g{
          1, width, rows, alpha, x, 0, 1, a + j, lda, beta, y + j, 0};
      small_gemm<V>(g);
      return;
    }
    typename V::Reg acc[8];
    for (auto& sum : acc) {
      sum = V::zero();
    }
    for (int64_t i = 0; i < rows; ++i) {
      const auto value = V::set1(x[i]);
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v) {
        const auto row = V::load(a + i * lda + j + v * V::kWidth);
        acc[v] = V::fma(value, row, acc[v]);
      }
    }
    for (int v = 0; v < 8; ++v) {
      T* out = y + j + v * V::kWidth;
      auto result = V::mul(factor, acc[v]);
      if (beta != T(0)) {
        result = V::fma(V::set1(beta), V::load(out), result);
      }
      V::store(out, result);
    }
  }
}

template <typename T>
void widen(const T* in, float* out, int64_t n) {
  convert(in, out, n);
}

template <typename T>
void narrow(const float* in, T* out, int64_t n) {
  convert(in, out, n);
}

template <class V>
constexpr Kernels<typename V::T> kKernelsOf = {small_gemm<V>,
                                               transpose<V>,
                                               dot<V>,
                                               axpy<V>,
                                               gemv_rows<V>,
                                               gemv_cols<V>,
                                               dots<V>};

// A vector of kBytes in the compiler's own notation: all that integers need,
// and the baseline's floats.
template <typename Scalar, int kBytes, int kTileRows>
struct PlainVector {
  using T = Scalar;
  typedef Scalar Reg __attribute__((vector_size(kBytes)));
  static constexpr int kWidth = kBytes / sizeof(T);
  static constexpr int kRows = kTileRows;
  static Reg zero() { return Reg{}; }
  static Reg set1(T x) { return Reg{} + x; }
  static Reg load(const T* p) {
    Reg x;
    std::memcpy(&x, p, sizeof(x));
    return x;
  }
  static Reg load_n(const T* p, int64_t n) {
    Reg x{};
    for (int i = 0; i < kWidth; ++i) {
      x[i] = i < n ? p[i] : T(0);
    }
    return x;
  }
  static void store(T* p, Reg x) { std::memcpy(p, &x, sizeof(x)); }
  static void store_n(T* p, Reg x, int64_t n) {
    for (int i = 0; i < kWidth && i < n; ++i) {
      p[i] = x[i];
    }
  }
  static Reg fma(Reg a, Reg b, Reg c) { return a * b + c; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static Reg add(Reg a, Reg b) { return a + b; }
  static T sum(Reg x) {
    T total = 0;
    for (int i = 0; i < kWidth; ++i) {
      total += x[i];
    }
    return total;
  }
  static void transpose8(const T* in, int64_t ld, T* out, int64_t ld_out) {
    for (int i = 0; i < 8; ++i) {
      for (int j = 0; j < 8; ++j) {
        out[j * ld_out + i] = in[i * ld + j];
      }
    }
  }
};

template <class V32, class V64, int kBytes, int kTileRows>
constexpr KernelSet kSetOf = {
    kKernelsOf<V32>,
    kKernelsOf<V64>,
    {widen<BFloat16>, narrow<BFloat16>},
    {widen<Half>, narrow<Half>},
    {small_gemm<PlainVector<uint32_t, kBytes, kTileRows>>},
    {small_gemm<PlainVector<uint64_t, kBytes, kTileRows>>}};

}  // namespace
}  // namespace taeda::blas
