// Products without a library: integers, and sizes beyond 32 bits.
#include <algorithm>
#include <vector>

#include <taeda/aten/native/blas/gemm_internal.h>
#include <taeda/aten/native/blas/kernels.h>
#include <taeda/aten/parallel/parallel.h>

namespace taeda::blas {
namespace {

// A block of op(B) stays in the second-level cache for all rows of a part, and
// one of op(A) in the first.
constexpr int64_t kBlockM = 64;
constexpr int64_t kBlockN = 128;
constexpr int64_t kBlockK = 128;

// Arithmetic that wraps around without undefined behaviour.
template <typename T>
auto wrapping() {
  if constexpr (std::is_integral_v<T>) {
    return std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>{};
  } else {
    return scale_t<T>{};
  }
}
template <typename T>
using Sum = decltype(wrapping<T>());

template <typename T>
Sum<T> value(const T& x, [[maybe_unused]] Op op) {
  if constexpr (kIsComplex<T>) {
    return op == Op::kConjTrans ? T(x.real(), -x.imag()) : x;
  } else {
    return static_cast<Sum<T>>(x);
  }
}

// rows x cols elements at distances row and step, in sums' type without gaps.
template <typename T>
void pack(int64_t rows,
          int64_t cols,
          const T* in,
          int64_t row,
          int64_t step,
          Op op,
          Sum<T>* out) {
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) {
      *out++ = value(in[i * row + j * step], op);
    }
  }
}

// sums += packed op(A) times packed op(B).
template <typename S>
void multiply(const SmallGemm<S>& g) {
  if constexpr (std::is_same_v<S, float> || std::is_same_v<S, double>) {
    kernels<S>().small_gemm(g);
  } else if constexpr (std::is_same_v<S, uint32_t>) {
    kernel_set().u32.small_gemm(g);
  } else if constexpr (std::is_same_v<S, uint64_t>) {
    kernel_set().u64.small_gemm(g);
  } else {
    for (int64_t i = 0; i < g.m; ++i) {
      for (int64_t q = 0; q < g.k; ++q) {
        const S factor = g.a[i * g.a_row + q];
        for (int64_t j = 0; j < g.n; ++j) {
          g.c[i * g.ldc + j] += factor * g.b[q * g.ldb + j];
        }
      }
    }
  }
}

template <typename T>
struct Buffers {
  Buffers(int64_t m, int64_t n, int64_t k)
      : a(static_cast<size_t>(m * k)),
        b(static_cast<size_t>(k * n)),
        sums(static_cast<size_t>(m * n)) {}
  std::vector<Sum<T>> a;
  std::vector<Sum<T>> b;
  std::vector<Sum<T>> sums;
};

// Rows i0 .. i0 + m and columns j0 .. j0 + n of C.
template <typename T>
void block(const Product<T>& p,
           int64_t i0,
           int64_t m,
           int64_t j0,
           int64_t n,
           Buffers<T>& buffers) {
  using S = Sum<T>;
  std::fill(buffers.sums.begin(), buffers.sums.end(), S(0));
  for (int64_t q = 0; q < p.k; q += kBlockK) {
    const int64_t k = std::min(kBlockK, p.k - q);
    const T* a = p.a + i0 * p.a_row() + q * p.a_step();
    const T* b = p.b + q * p.b_row() + j0 * p.b_step();
    pack(m, k, a, p.a_row(), p.a_step(), p.trans_a, buffers.a.data());
    pack(k, n, b, p.b_row(), p.b_step(), p.trans_b, buffers.b.data());
    multiply(SmallGemm<S>{m,
                          n,
                          k,
                          S(1),
                          buffers.a.data(),
                          k,
                          1,
                          buffers.b.data(),
                          n,
                          S(1),
                          buffers.sums.data(),
                          n});
  }
  const S alpha = static_cast<S>(p.alpha);
  const S beta = static_cast<S>(p.beta);
  for (int64_t i = 0; i < m; ++i) {
    T* c = p.c + (i0 + i) * p.ldc + j0;
    const S* sum = buffers.sums.data() + i * n;
    for (int64_t j = 0; j < n; ++j) {
      const S old = beta == S(0) ? S(0) : beta * static_cast<S>(c[j]);
      c[j] = static_cast<T>(alpha * sum[j] + old);
    }
  }
}

}  // namespace

template <typename T>
void gemm_loops(const Product<T>& p) {
  const int64_t block_m = std::min(kBlockM, p.m);
  const int64_t block_n = std::min(kBlockN, p.n);
  const int64_t rows = (p.m + block_m - 1) / block_m;
  const int64_t cols = (p.n + block_n - 1) / block_n;
  const int64_t work = block_m * block_n * p.k;
  const int64_t grain = std::max<int64_t>((1 << 18) / work, 1);
  parallel_for(0, rows * cols, grain, [&](int64_t begin, int64_t end) {
    Buffers<T> buffers(block_m, block_n, std::min(kBlockK, p.k));
    for (int64_t i = begin; i < end; ++i) {
      const int64_t i0 = i % rows * block_m;
      const int64_t j0 = i / rows * block_n;
      block(p,
            i0,
            std::min(block_m, p.m - i0),
            j0,
            std::min(block_n, p.n - j0),
            buffers);
    }
  });
}

template void gemm_loops(const Product<float>&);
template void gemm_loops(const Product<double>&);
template void gemm_loops(const Product<complex<float>>&);
template void gemm_loops(const Product<complex<double>>&);
template void gemm_loops(const Product<uint8_t>&);
template void gemm_loops(const Product<int8_t>&);
template void gemm_loops(const Product<int16_t>&);
template void gemm_loops(const Product<int32_t>&);
template void gemm_loops(const Product<int64_t>&);

}  // namespace taeda::blas
