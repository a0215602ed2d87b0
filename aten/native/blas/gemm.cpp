// The way of a product: trivial cases, matrix times vector, then the type's
// code; and batches of products.
#include <taeda/aten/native/blas/gemm.h>

#include <algorithm>

#include <taeda/aten/native/blas/gemm_choice.h>
#include <taeda/aten/native/blas/gemm_internal.h>
#include <taeda/aten/native/blas/kernels.h>
#include <taeda/aten/native/dnn/dnn.h>
#include <taeda/aten/parallel/parallel.h>

namespace taeda::blas {
namespace {

// A product over nothing: C is scaled alone. beta 0 means that C is not read,
// so that NaN in uninitialised memory does not stay.
template <typename T>
void scale_c(const Product<T>& p) {
  using S = scale_t<T>;
  for (int64_t i = 0; i < p.m; ++i) {
    T* row = p.c + i * p.ldc;
    for (int64_t j = 0; j < p.n; ++j) {
      row[j] = p.beta == S(0) ? T(S(0))
                              : static_cast<T>(p.beta * static_cast<S>(row[j]));
    }
  }
}

// A conjugated vector needs the matrix code.
template <typename T>
bool as_gemv(const Product<T>& p) {
  if (p.n == 1 && p.trans_b != Op::kConjTrans) {
    const bool plain = p.trans_a == Op::kNone;
    gemv<T>(p.trans_a,
            plain ? p.m : p.k,
            plain ? p.k : p.m,
            p.alpha,
            p.a,
            p.lda,
            p.b,
            p.b_row(),
            p.beta,
            p.c,
            p.ldc);
    return true;
  }
  // A row times a matrix is the transposed matrix times a column.
  if (p.m == 1 && p.trans_a != Op::kConjTrans && p.trans_b != Op::kConjTrans) {
    const bool plain = p.trans_b == Op::kNone;
    gemv<T>(plain ? Op::kTrans : Op::kNone,
            plain ? p.k : p.n,
            plain ? p.n : p.k,
            p.alpha,
            p.b,
            p.ldb,
            p.a,
            p.a_step(),
            p.beta,
            p.c,
            1);
    return true;
  }
  return false;
}

// oneDNN runs the whole batch in one call, where that is quicker than products
// one by one.
template <typename T>
bool as_dnn_batch(const Product<T>& p, int64_t batch, BatchStrides strides) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (p.alpha == 1.0f && p.beta == 0.0f && batch > 0 && p.m > 0 && p.n > 0 &&
        choose_dnn_bf16(p.m * batch, p.n, p.k)) {
      dnn::MatMul matmul{};
      matmul.dtype = dnn::DataType::kBF16;
      matmul.trans_a = p.trans_a != Op::kNone;
      matmul.trans_b = p.trans_b != Op::kNone;
      matmul.batch = batch;
      matmul.m = p.m;
      matmul.n = p.n;
      matmul.k = p.k;
      matmul.lda = p.lda;
      matmul.ldb = p.ldb;
      matmul.ldc = p.ldc;
      matmul.stride_a = strides.a;
      matmul.stride_b = strides.b;
      matmul.stride_c = strides.c;
      return dnn::matmul(matmul, p.a, p.b, {}, nullptr, p.c);
    }
  }
  return false;
}

// A batch of vectors times vectors, whose products are a few instructions each.
template <typename T>
bool as_dots(const Product<T>& p, int64_t count, BatchStrides strides) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double>) {
    const bool rows = p.trans_a == Op::kNone || p.lda == 1;
    const bool columns = p.trans_b != Op::kNone || p.ldb == 1;
    if (p.m == 1 && p.n == 1 && p.k > 0 && p.alpha != T(0) && rows && columns) {
      kernels<T>().dots(count,
                        p.k,
                        p.alpha,
                        p.a,
                        strides.a,
                        p.b,
                        strides.b,
                        p.beta,
                        p.c,
                        strides.c);
      return true;
    }
  }
  return false;
}

}  // namespace

template <typename T>
void run_product(const Product<T>& p) {
  if (p.m <= 0 || p.n <= 0) {
    return;
  }
  if (p.k <= 0 || p.alpha == scale_t<T>(0)) {
    scale_c(p);
    return;
  }
  if constexpr (std::is_integral_v<T>) {
    gemm_loops(p);
  } else {
    if ((p.m == 1 || p.n == 1) && as_gemv(p)) {
      return;
    }
    if constexpr (std::is_same_v<T, BFloat16> || std::is_same_v<T, Half>) {
      gemm_sixteen(p);
    } else {
      gemm_library(p);
    }
  }
}

template <typename T>
void gemm(Op trans_a,
          Op trans_b,
          int64_t m,
          int64_t n,
          int64_t k,
          scale_t<T> alpha,
          const T* a,
          int64_t lda,
          const T* b,
          int64_t ldb,
          scale_t<T> beta,
          T* c,
          int64_t ldc) {
  // Of real numbers the conjugate is the number: libraries then have two cases
  // less.
  if constexpr (!kIsComplex<T>) {
    trans_a = trans_a == Op::kConjTrans ? Op::kTrans : trans_a;
    trans_b = trans_b == Op::kConjTrans ? Op::kTrans : trans_b;
  }
  run_product(Product<T>{
      trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc});
}

template <typename T>
void gemm_batched(Op trans_a,
                  Op trans_b,
                  int64_t batch,
                  int64_t m,
                  int64_t n,
                  int64_t k,
                  scale_t<T> alpha,
                  const T* a,
                  int64_t lda,
                  const T* b,
                  int64_t ldb,
                  scale_t<T> beta,
                  T* c,
                  int64_t ldc,
                  BatchStrides strides) {
  const Product<T> all{
      trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc};
  if (as_dnn_batch(all, batch, strides)) {
    return;
  }
  const auto range = [&](int64_t begin, int64_t end) {
    Product<T> first = all;
    first.a += begin * strides.a;
    first.b += begin * strides.b;
    first.c += begin * strides.c;
    if (as_dots(first, end - begin, strides)) {
      return;
    }
    for (int64_t i = begin; i < end; ++i) {
      gemm<T>(trans_a,
              trans_b,
              m,
              n,
              k,
              alpha,
              a + i * strides.a,
              lda,
              b + i * strides.b,
              ldb,
              beta,
              c + i * strides.c,
              ldc);
    }
  };
  const GemmShape shape{m, n, k, trans_b != Op::kNone};
  // Large products are parallel in themselves; small ones are spread over
  // threads.
  if (!batch_over_threads(batch, shape)) {
    range(0, batch);
    return;
  }
  // A part below about 20 us of work does not pay for waking a thread.
  constexpr int64_t kPartFlops = 1 << 18;
  const int64_t flops = std::max<int64_t>(m * n * k, 1);
  const int64_t grain = std::max<int64_t>(kPartFlops / flops, 1);
  parallel_for(0, batch, grain, range);
}

#define TAEDA_INSTANTIATE_GEMM(T)                     \
  template void run_product<T>(const Product<T>&);    \
  template TAEDA_API void gemm<T>(Op,                 \
                                  Op,                 \
                                  int64_t,            \
                                  int64_t,            \
                                  int64_t,            \
                                  scale_t<T>,         \
                                  const T*,           \
                                  int64_t,            \
                                  const T*,           \
                                  int64_t,            \
                                  scale_t<T>,         \
                                  T*,                 \
                                  int64_t);           \
  template TAEDA_API void gemm_batched<T>(Op,         \
                                          Op,         \
                                          int64_t,    \
                                          int64_t,    \
                                          int64_t,    \
                                          int64_t,    \
                                          scale_t<T>, \
                                          const T*,   \
                                          int64_t,    \
                                          const T*,   \
                                          int64_t,    \
                                          scale_t<T>, \
                                          T*,         \
                                          int64_t,    \
                                          BatchStrides);
TAEDA_INSTANTIATE_GEMM(float)
TAEDA_INSTANTIATE_GEMM(double)
TAEDA_INSTANTIATE_GEMM(complex<float>)
TAEDA_INSTANTIATE_GEMM(complex<double>)
TAEDA_INSTANTIATE_GEMM(BFloat16)
TAEDA_INSTANTIATE_GEMM(Half)
TAEDA_INSTANTIATE_GEMM(uint8_t)
TAEDA_INSTANTIATE_GEMM(int8_t)
TAEDA_INSTANTIATE_GEMM(int16_t)
TAEDA_INSTANTIATE_GEMM(int32_t)
TAEDA_INSTANTIATE_GEMM(int64_t)
#undef TAEDA_INSTANTIATE_GEMM

}  // namespace taeda::blas
