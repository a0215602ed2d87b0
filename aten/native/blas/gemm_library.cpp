// float, double and complex products through the small kernel, oneDNN or
// OpenBLAS, as gemm_choice.cpp decides.
#include <algorithm>
#include <climits>

#include <taeda/aten/native/blas/gemm_choice.h>
#include <taeda/aten/native/blas/gemm_internal.h>
#include <taeda/aten/native/blas/kernels.h>
#include <taeda/aten/native/blas/lapack.h>
#include <taeda/aten/native/dnn/dnn.h>
#include <taeda/aten/parallel/parallel.h>

namespace taeda::blas {
namespace {

template <typename T>
void gemm_small(const Product<T>& p) {
  const Kernels<T>& kernel = kernels<T>();
  SmallGemm<T> g{p.m,
                 p.n,
                 p.k,
                 p.alpha,
                 p.a,
                 p.a_row(),
                 p.a_step(),
                 p.b,
                 p.ldb,
                 p.beta,
                 p.c,
                 p.ldc};
  if (p.trans_b == Op::kNone) {
    kernel.small_gemm(g);
    return;
  }
  T turned[kSmallPackElements];
  kernel.transpose(p.n, p.k, p.b, p.ldb, turned);
  g.b = turned;
  g.ldb = p.n;
  kernel.small_gemm(g);
}

const char* fortran_letter(Op op) {
  return op == Op::kNone ? "N" : op == Op::kTrans ? "T" : "C";
}

// One thread. Column-major by transposing the product: C' = op(B)' op(A)'.
template <typename T>
void call_openblas(const Product<T>& p) {
  const int m = static_cast<int>(p.m);
  const int n = static_cast<int>(p.n);
  const int k = static_cast<int>(p.k);
  const int lda = static_cast<int>(p.lda);
  const int ldb = static_cast<int>(p.ldb);
  const int ldc = static_cast<int>(p.ldc);
  lapack<T>().gemm(fortran_letter(p.trans_b),
                   fortran_letter(p.trans_a),
                   &n,
                   &m,
                   &k,
                   &p.alpha,
                   p.b,
                   &ldb,
                   p.a,
                   &lda,
                   &p.beta,
                   p.c,
                   &ldc,
                   1,
                   1);
}

// C as a grid of rows x cols parts, one for each thread.
struct Grid {
  int64_t rows;
  int64_t cols;
};

// Of the grids with a part for each thread the one with the squarest parts,
// since a part of m x n reads (m + n) k elements. Parts stay wide enough for
// the kernels, and big enough to pay for a thread's wake-up.
Grid choose_grid(int64_t m, int64_t n, int64_t k) {
  constexpr int64_t kNarrowest = 32;
  constexpr double kPartFlops = 64.0 * 64.0 * 64.0;
  const double flops =
      static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k);
  const int64_t threads = std::min<int64_t>(
      get_num_threads(), static_cast<int64_t>(flops / kPartFlops));
  Grid best{1, 1};
  for (int64_t rows = 1; rows <= threads; ++rows) {
    const int64_t cols = threads / rows;
    const Grid grid{std::clamp<int64_t>(m / kNarrowest, 1, rows),
                    std::clamp<int64_t>(n / kNarrowest, 1, cols)};
    const int64_t parts = grid.rows * grid.cols;
    const int64_t best_parts = best.rows * best.cols;
    const bool squarer =
        m / grid.rows + n / grid.cols < m / best.rows + n / best.cols;
    if (parts > best_parts || (parts == best_parts && squarer)) {
      best = grid;
    }
  }
  return best;
}

// The i-th of `parts` cuts of [0, size), at multiples of a cache line.
int64_t cut(int64_t size, int64_t parts, int64_t i) {
  return i == parts ? size : size * i / parts / 16 * 16;
}

template <typename T>
void gemm_openblas(const Product<T>& p) {
  for (const int64_t size : {p.m, p.n, p.k, p.lda, p.ldb, p.ldc}) {
    if (size > INT_MAX) {
      gemm_loops(p);
      return;
    }
  }
  const Grid grid =
      in_parallel_region() ? Grid{1, 1} : choose_grid(p.m, p.n, p.k);
  parallel_for(0, grid.rows * grid.cols, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = i / grid.cols;
      const int64_t col = i % grid.cols;
      const int64_t m0 = cut(p.m, grid.rows, row);
      const int64_t n0 = cut(p.n, grid.cols, col);
      Product<T> part = p;
      part.m = cut(p.m, grid.rows, row + 1) - m0;
      part.n = cut(p.n, grid.cols, col + 1) - n0;
      part.a += m0 * p.a_row();
      part.b += n0 * p.b_step();
      part.c += m0 * p.ldc + n0;
      call_openblas(part);
    }
  });
}

}  // namespace

template <typename T>
void gemm_library(const Product<T>& p) {
  const GemmShape shape{p.m, p.n, p.k, p.trans_b != Op::kNone};
  if constexpr (std::is_same_v<T, float>) {
    switch (choose_gemm_f32(shape)) {
      case GemmRoute::kSmall:
        return gemm_small(p);
      case GemmRoute::kDnn:
        return dnn::sgemm(p.trans_a != Op::kNone,
                          p.trans_b != Op::kNone,
                          p.m,
                          p.n,
                          p.k,
                          p.alpha,
                          p.a,
                          p.lda,
                          p.b,
                          p.ldb,
                          p.beta,
                          p.c,
                          p.ldc);
      case GemmRoute::kOpenBlas:
        return gemm_openblas(p);
    }
  } else if constexpr (std::is_same_v<T, double>) {
    if (choose_gemm_f64(shape) == GemmRoute::kSmall) {
      return gemm_small(p);
    }
  }
  gemm_openblas(p);
}

template void gemm_library(const Product<float>&);
template void gemm_library(const Product<double>&);
template void gemm_library(const Product<complex<float>>&);
template void gemm_library(const Product<complex<double>>&);

}  // namespace taeda::blas
