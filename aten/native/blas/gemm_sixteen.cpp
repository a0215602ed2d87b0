// BFloat16 and Half products: sums in float, rounded once at the end.
#include <algorithm>
#include <memory>

#include <taeda/aten/native/blas/gemm_choice.h>
#include <taeda/aten/native/blas/gemm_internal.h>
#include <taeda/aten/native/blas/kernels.h>
#include <taeda/aten/native/dnn/dnn.h>
#include <taeda/aten/parallel/parallel.h>

namespace taeda::blas {
namespace {

constexpr int64_t kConvertGrain = 1 << 15;

// `rows` x `cols` as stored, to float without gaps.
template <typename T>
std::unique_ptr<float[]> to_float(const T* in,
                                  int64_t rows,
                                  int64_t cols,
                                  int64_t ld) {
  std::unique_ptr<float[]> out(new float[static_cast<size_t>(rows * cols)]);
  const auto& convert = sixteen_kernels<T>().widen;
  parallel_for(0,
               rows,
               std::max<int64_t>(kConvertGrain / cols, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   convert(in + i * ld, out.get() + i * cols, cols);
                 }
               });
  return out;
}

template <typename T>
void store(const Product<T>& p, float* sums) {
  const auto& kernel = sixteen_kernels<T>();
  parallel_for(0,
               p.m,
               std::max<int64_t>(kConvertGrain / p.n, 1),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   float* row = sums + i * p.n;
                   T* c = p.c + i * p.ldc;
                   for (int64_t j = 0; p.beta != 0 && j < p.n; ++j) {
                     row[j] += p.beta * static_cast<float>(c[j]);
                   }
                   kernel.narrow(row, c, p.n);
                 }
               });
}

template <typename T>
void gemm_through_float(const Product<T>& p) {
  const bool plain_a = p.trans_a == Op::kNone;
  const bool plain_b = p.trans_b == Op::kNone;
  const int64_t a_cols = plain_a ? p.k : p.m;
  const int64_t b_cols = plain_b ? p.n : p.k;
  const auto a = to_float(p.a, plain_a ? p.m : p.k, a_cols, p.lda);
  const auto b = to_float(p.b, plain_b ? p.k : p.n, b_cols, p.ldb);
  const std::unique_ptr<float[]> c(new float[static_cast<size_t>(p.m * p.n)]);
  gemm<float>(p.trans_a,
              p.trans_b,
              p.m,
              p.n,
              p.k,
              p.alpha,
              a.get(),
              a_cols,
              b.get(),
              b_cols,
              0.0f,
              c.get(),
              p.n);
  store(p, c.get());
}

}  // namespace

template <typename T>
void gemm_sixteen(const Product<T>& p) {
  gemm_through_float(p);
}

template void gemm_sixteen(const Product<BFloat16>&);
template void gemm_sixteen(const Product<Half>&);

}  // namespace taeda::blas
