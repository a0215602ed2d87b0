// Matrix times vector, dot and axpy: bound by memory, so our own loops, but for
// complex matrices.
// -O3 for the generic ones: at -O2 g++ 12 leaves them scalar.
#pragma GCC optimize("O3")
#include <algorithm>
#include <climits>
#include <cstdlib>
#include <vector>

#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/blas/gemm_internal.h>
#include <taeda/aten/native/blas/kernels.h>
#include <taeda/aten/native/blas/lapack.h>
#include <taeda/aten/parallel/parallel.h>

namespace taeda::blas {
namespace {

template <typename T>
inline constexpr bool kHasKernels =
    std::is_same_v<T, float> || std::is_same_v<T, double>;
template <typename T>
inline constexpr bool kIsSixteen =
    std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>;

// Integers wrap around; signed overflow would be undefined.
template <typename T>
auto sum_type() {
  if constexpr (std::is_integral_v<T>) {
    return uint64_t{};
  } else {
    return scale_t<T>{};
  }
}
template <typename T>
using Sum = decltype(sum_type<T>());

// Elements of A worth a thread's wake-up.
constexpr int64_t kGrain = 1 << 16;

template <typename T>
T conjugate(const T& x) {
  if constexpr (kIsComplex<T>) {
    return T(x.real(), -x.imag());
  } else {
    return x;
  }
}

// The vector as contiguous elements of the type of sums where `widen`, else of
// its own: itself where it is that already.
template <typename T, typename Out>
const Out* contiguous(int64_t n,
                      const T* x,
                      int64_t inc,
                      std::vector<Out>& buffer) {
  if constexpr (std::is_same_v<T, Out>) {
    if (inc == 1) {
      return x;
    }
  }
  buffer.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    buffer[static_cast<size_t>(i)] = static_cast<Out>(x[i * inc]);
  }
  return buffer.data();
}

template <typename T>
void put(T& out, Sum<T> sum, Sum<T> alpha, Sum<T> beta) {
  const Sum<T> scaled = alpha * sum;
  out = static_cast<T>(
      beta == Sum<T>(0) ? scaled : scaled + beta * static_cast<Sum<T>>(out));
}

// A row of A as sums' type; 16-bit floats through the ISA's conversion.
template <typename T>
class RowReader {
 public:
  explicit RowReader(int64_t cols) {
    if constexpr (kIsSixteen<T>) {
      buffer_.resize(static_cast<size_t>(cols));
    }
  }
  auto* read(const T* row, [[maybe_unused]] int64_t cols) {
    if constexpr (kIsSixteen<T>) {
      sixteen_kernels<T>().widen(row, buffer_.data(), cols);
      return static_cast<const float*>(buffer_.data());
    } else {
      return row;
    }
  }

 private:
  std::vector<float> buffer_;
};

template <typename Row, typename S>
S dot_loop(int64_t n, const Row* a, const S* x) {
  if constexpr (std::is_same_v<Row, float> && std::is_same_v<S, float>) {
    return kernels<float>().dot(n, a, x);
  } else {
    S sums[4] = {S(0), S(0), S(0), S(0)};
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
      for (int lane = 0; lane < 4; ++lane) {
        sums[lane] += static_cast<S>(a[i + lane]) * x[i + lane];
      }
    }
    for (; i < n; ++i) {
      sums[0] += static_cast<S>(a[i]) * x[i];
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
}

template <typename T>
struct Gemv {
  Op trans;
  int64_t m;
  int64_t n;
  scale_t<T> alpha;
  const T* a;
  int64_t lda;
  const T* x;
  int64_t inc_x;
  scale_t<T> beta;
  T* y;
  int64_t inc_y;
};

template <typename T>
void gemv_plain(const Gemv<T>& g) {
  std::vector<Sum<T>> buffer;
  const Sum<T>* x = contiguous(g.n, g.x, g.inc_x, buffer);
  const int64_t grain = std::max<int64_t>(kGrain / g.n, 1);
  parallel_for(0, g.m, grain, [&](int64_t begin, int64_t end) {
    const T* a = g.a + begin * g.lda;
    T* y = g.y + begin * g.inc_y;
    if constexpr (kHasKernels<T>) {
      kernels<T>().gemv_rows(
          end - begin, g.n, g.alpha, a, g.lda, x, g.beta, y, g.inc_y);
    } else {
      RowReader<T> reader(g.n);
      for (int64_t i = 0; i < end - begin; ++i) {
        const auto* row = reader.read(a + i * g.lda, g.n);
        const auto sum = dot_loop(g.n, row, x);
        put(y[i * g.inc_y], sum, Sum<T>(g.alpha), Sum<T>(g.beta));
      }
    }
  });
}

// Columns begin .. end of y = op(A) x for a transposed A.
template <typename T>
void gemv_columns(const Gemv<T>& g,
                  const Sum<T>* x,
                  int64_t begin,
                  int64_t end) {
  const int64_t width = end - begin;
  std::vector<Sum<T>> sums(static_cast<size_t>(width), Sum<T>(0));
  if constexpr (kHasKernels<T>) {
    kernels<T>().gemv_cols(
        g.m, width, T(1), g.a + begin, g.lda, x, T(0), sums.data());
  } else {
    RowReader<T> reader(width);
    for (int64_t i = 0; i < g.m; ++i) {
      const auto* row = reader.read(g.a + i * g.lda + begin, width);
      for (int64_t j = 0; j < width; ++j) {
        auto value = static_cast<Sum<T>>(row[j]);
        if (kIsComplex<T> && g.trans == Op::kConjTrans) {
          value = conjugate(value);
        }
        sums[static_cast<size_t>(j)] += value * x[i];
      }
    }
  }
  for (int64_t j = 0; j < width; ++j) {
    put(g.y[(begin + j) * g.inc_y],
        sums[static_cast<size_t>(j)],
        Sum<T>(g.alpha),
        Sum<T>(g.beta));
  }
}

template <typename T>
void gemv_transposed(const Gemv<T>& g) {
  std::vector<Sum<T>> buffer;
  const Sum<T>* x = contiguous(g.m, g.x, g.inc_x, buffer);
  // At least a strip of the kernel, so that a part reads whole cache lines.
  const int64_t grain = std::max<int64_t>(kGrain / g.m, 128);
  parallel_for(0, g.n, grain, [&](int64_t begin, int64_t end) {
    if constexpr (kHasKernels<T>) {
      if (g.inc_y == 1) {
        kernels<T>().gemv_cols(g.m,
                               end - begin,
                               g.alpha,
                               g.a + begin,
                               g.lda,
                               x,
                               g.beta,
                               g.y + begin);
        return;
      }
    }
    gemv_columns(g, x, begin, end);
  });
}

// Complex products in parts of y. OpenBLAS sees the transpose of A; it has no
// form that conjugates what it sees as untransposed.
template <typename T>
bool gemv_openblas(const Gemv<T>& g) {
  const bool fits = g.m <= INT_MAX && g.n <= INT_MAX && g.lda <= INT_MAX &&
                    std::abs(g.inc_x) <= INT_MAX &&
                    std::abs(g.inc_y) <= INT_MAX;
  // A negative increment means another start in BLAS.
  if (!fits || g.trans == Op::kConjTrans || g.inc_x < 0 || g.inc_y < 0 ||
      g.m * g.n < 64) {
    return false;
  }
  const bool plain = g.trans == Op::kNone;
  const int64_t in = plain ? g.n : g.m;
  const int lda = static_cast<int>(g.lda);
  const int inc_x = static_cast<int>(g.inc_x);
  const int inc_y = static_cast<int>(g.inc_y);
  const int64_t grain = std::max<int64_t>(kGrain / 4 / in, 16);
  const auto& routines = lapack<T>();
  parallel_for(0, plain ? g.m : g.n, grain, [&](int64_t begin, int64_t end) {
    const int rows = static_cast<int>(plain ? g.n : end - begin);
    const int cols = static_cast<int>(plain ? end - begin : g.m);
    routines.gemv(plain ? "T" : "N",
                  &rows,
                  &cols,
                  &g.alpha,
                  g.a + begin * (plain ? g.lda : 1),
                  &lda,
                  g.x,
                  &inc_x,
                  &g.beta,
                  g.y + begin * g.inc_y,
                  &inc_y,
                  1);
  });
  return true;
}

template <typename T>
T dot_of(int64_t n,
         const T* x,
         int64_t inc_x,
         const T* y,
         int64_t inc_y,
         bool conj) {
  if constexpr (kHasKernels<T>) {
    if (inc_x == 1 && inc_y == 1) {
      return kernels<T>().dot(n, x, y);
    }
  }
  Sum<T> sums[4] = {Sum<T>(0), Sum<T>(0), Sum<T>(0), Sum<T>(0)};
  for (int64_t i = 0; i < n; ++i) {
    const T left = conj ? conjugate(x[i * inc_x]) : x[i * inc_x];
    sums[i & 3] +=
        static_cast<Sum<T>>(left) * static_cast<Sum<T>>(y[i * inc_y]);
  }
  return static_cast<T>((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

}  // namespace

template <typename T>
void gemv(Op trans,
          int64_t m,
          int64_t n,
          scale_t<T> alpha,
          const T* a,
          int64_t lda,
          const T* x,
          int64_t inc_x,
          scale_t<T> beta,
          T* y,
          int64_t inc_y) {
  const int64_t out = trans == Op::kNone ? m : n;
  const int64_t in = trans == Op::kNone ? n : m;
  if (out <= 0) {
    return;
  }
  if (in <= 0 || alpha == scale_t<T>(0)) {
    for (int64_t i = 0; i < out; ++i) {
      put(y[i * inc_y], Sum<T>(0), Sum<T>(0), Sum<T>(beta));
    }
    return;
  }
  const Gemv<T> g{trans, m, n, alpha, a, lda, x, inc_x, beta, y, inc_y};
  if constexpr (kIsComplex<T>) {
    if (gemv_openblas(g)) {
      return;
    }
  }
  if (trans == Op::kNone) {
    gemv_plain(g);
  } else {
    gemv_transposed(g);
  }
}

// One thread: two cannot read much faster than one, and a split would make the
// result depend on the thread count.
template <typename T>
T dot(int64_t n, const T* x, int64_t inc_x, const T* y, int64_t inc_y) {
  return dot_of(n, x, inc_x, y, inc_y, /*conj=*/false);
}

template <typename T>
T vdot(int64_t n, const T* x, int64_t inc_x, const T* y, int64_t inc_y) {
  return dot_of(n, x, inc_x, y, inc_y, /*conj=*/true);
}

template <typename T>
void axpy(int64_t n,
          scale_t<T> alpha,
          const T* x,
          int64_t inc_x,
          T* y,
          int64_t inc_y) {
  parallel_for(0, n, kGrain, [&](int64_t begin, int64_t end) {
    if constexpr (kHasKernels<T>) {
      if (inc_x == 1 && inc_y == 1) {
        kernels<T>().axpy(end - begin, alpha, x + begin, y + begin);
        return;
      }
    }
    for (int64_t i = begin; i < end; ++i) {
      T& out = y[i * inc_y];
      out = static_cast<T>(static_cast<Sum<T>>(out) +
                           Sum<T>(alpha) * static_cast<Sum<T>>(x[i * inc_x]));
    }
  });
}

#define TAEDA_INSTANTIATE_GEMV(T)                                              \
  template TAEDA_API void gemv<T>(Op,                                          \
                                  int64_t,                                     \
                                  int64_t,                                     \
                                  scale_t<T>,                                  \
                                  const T*,                                    \
                                  int64_t,                                     \
                                  const T*,                                    \
                                  int64_t,                                     \
                                  scale_t<T>,                                  \
                                  T*,                                          \
                                  int64_t);                                    \
  template TAEDA_API T dot<T>(int64_t, const T*, int64_t, const T*, int64_t);  \
  template TAEDA_API T vdot<T>(int64_t, const T*, int64_t, const T*, int64_t); \
  template TAEDA_API void axpy<T>(                                             \
      int64_t, scale_t<T>, const T*, int64_t, T*, int64_t);
TAEDA_INSTANTIATE_GEMV(float)
TAEDA_INSTANTIATE_GEMV(double)
TAEDA_INSTANTIATE_GEMV(complex<float>)
TAEDA_INSTANTIATE_GEMV(complex<double>)
TAEDA_INSTANTIATE_GEMV(BFloat16)
TAEDA_INSTANTIATE_GEMV(Half)
TAEDA_INSTANTIATE_GEMV(uint8_t)
TAEDA_INSTANTIATE_GEMV(int8_t)
TAEDA_INSTANTIATE_GEMV(int16_t)
TAEDA_INSTANTIATE_GEMV(int32_t)
TAEDA_INSTANTIATE_GEMV(int64_t)
#undef TAEDA_INSTANTIATE_GEMV

}  // namespace taeda::blas
