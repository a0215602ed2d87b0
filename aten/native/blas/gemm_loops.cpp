// Products without a library: integers, and sizes beyond 32 bits.
// -O3: at -O2 g++ 12 leaves the inner loop scalar.
#pragma GCC optimize("O3")
#include <algorithm>
#include <vector>

#include <taeda/aten/native/blas/gemm_internal.h>
#include <taeda/aten/parallel/parallel.h>

namespace taeda::blas {
namespace {

// Blocks of op(B) that stay in the second-level cache for all rows of a part.
constexpr int64_t kBlockK = 128;
constexpr int64_t kBlockN = 256;

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

struct Block {
  int64_t p0;
  int64_t p1;
  int64_t j0;
  int64_t j1;
};

template <typename T>
void pack_b(const Product<T>& p, const Block& block, Sum<T>* out) {
  for (int64_t q = block.p0; q < block.p1; ++q) {
    for (int64_t j = block.j0; j < block.j1; ++j) {
      *out++ = value(p.b[q * p.b_row() + j * p.b_step()], p.trans_b);
    }
  }
}

template <typename S>
void add_row(int64_t n, S factor, const S* __restrict row, S* __restrict sums) {
  for (int64_t j = 0; j < n; ++j) {
    sums[j] += factor * row[j];
  }
}

template <typename T>
void rows(const Product<T>& p, int64_t begin, int64_t end) {
  using S = Sum<T>;
  std::vector<S> packed(static_cast<size_t>(kBlockK * kBlockN));
  std::vector<S> sums(
      static_cast<size_t>((end - begin) * std::min(p.n, kBlockN)));
  const S alpha = static_cast<S>(p.alpha);
  const S beta = static_cast<S>(p.beta);
  for (int64_t j0 = 0; j0 < p.n; j0 += kBlockN) {
    const int64_t j1 = std::min(p.n, j0 + kBlockN);
    const int64_t width = j1 - j0;
    std::fill(sums.begin(), sums.end(), S(0));
    for (int64_t p0 = 0; p0 < p.k; p0 += kBlockK) {
      const Block block{p0, std::min(p.k, p0 + kBlockK), j0, j1};
      pack_b(p, block, packed.data());
      for (int64_t i = begin; i < end; ++i) {
        const T* a = p.a + i * p.a_row();
        for (int64_t q = block.p0; q < block.p1; ++q) {
          const S factor = value(a[q * p.a_step()], p.trans_a);
          add_row(width,
                  factor,
                  packed.data() + (q - p0) * width,
                  sums.data() + (i - begin) * width);
        }
      }
    }
    for (int64_t i = begin; i < end; ++i) {
      T* c = p.c + i * p.ldc + j0;
      const S* sum = sums.data() + (i - begin) * width;
      for (int64_t j = 0; j < width; ++j) {
        const S old = beta == S(0) ? S(0) : beta * static_cast<S>(c[j]);
        c[j] = static_cast<T>(alpha * sum[j] + old);
      }
    }
  }
}

}  // namespace

template <typename T>
void gemm_loops(const Product<T>& p) {
  constexpr int64_t kRows = 256;  // of a part: bounds its buffer of sums
  const auto parts = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; i += kRows) {
      rows(p, i, std::min(end, i + kRows));
    }
  };
  const int64_t work = std::max<int64_t>(p.n * p.k, 1);
  parallel_for(0, p.m, std::max<int64_t>((1 << 16) / work, 4), parts);
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
