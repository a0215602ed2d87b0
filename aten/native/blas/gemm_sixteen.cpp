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

// Floats on the stack while they are few: a heap call costs as much as a small
// product.
class Floats {
 public:
  explicit Floats(int64_t count)
      : heap_(count > kFew ? new float[static_cast<size_t>(count)] : nullptr) {}
  float* get() { return heap_ != nullptr ? heap_.get() : few_; }

 private:
  static constexpr int64_t kFew = 2048;
  std::unique_ptr<float[]> heap_;
  float few_[kFew];
};

// `rows` x `cols` as stored, to float without gaps.
template <typename T>
void to_float(const T* in, int64_t rows, int64_t cols, int64_t ld, float* out) {
  const auto& convert = sixteen_kernels<T>().widen;
  const int64_t grain = std::max<int64_t>(kConvertGrain / cols, 1);
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      convert(in + i * ld, out + i * cols, cols);
    }
  });
}

template <typename T>
void store(const Product<T>& p, float* sums) {
  const auto& kernel = sixteen_kernels<T>();
  const int64_t grain = std::max<int64_t>(kConvertGrain / p.n, 1);
  parallel_for(0, p.m, grain, [&](int64_t begin, int64_t end) {
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
  const int64_t a_rows = plain_a ? p.m : p.k;
  const int64_t a_cols = plain_a ? p.k : p.m;
  const int64_t b_rows = plain_b ? p.k : p.n;
  const int64_t b_cols = plain_b ? p.n : p.k;
  Floats a(a_rows * a_cols);
  Floats b(b_rows * b_cols);
  Floats c(p.m * p.n);
  to_float(p.a, a_rows, a_cols, p.lda, a.get());
  to_float(p.b, b_rows, b_cols, p.ldb, b.get());
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

// oneDNN has no alpha here; layers use none.
bool gemm_dnn(const Product<BFloat16>& p) {
  if (p.alpha != 1.0f || !choose_dnn_bf16(p.m, p.n, p.k)) {
    return false;
  }
  dnn::MatMul matmul{};
  matmul.dtype = dnn::DataType::kBF16;
  matmul.trans_a = p.trans_a != Op::kNone;
  matmul.trans_b = p.trans_b != Op::kNone;
  matmul.batch = 1;
  matmul.m = p.m;
  matmul.n = p.n;
  matmul.k = p.k;
  matmul.lda = p.lda;
  matmul.ldb = p.ldb;
  matmul.ldc = p.ldc;
  matmul.beta = p.beta;
  return dnn::matmul(matmul, p.a, p.b, {}, nullptr, p.c);
}

}  // namespace

template <typename T>
void gemm_sixteen(const Product<T>& p) {
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (gemm_dnn(p)) {
      return;
    }
  }
  gemm_through_float(p);
}

template void gemm_sixteen(const Product<BFloat16>&);
template void gemm_sixteen(const Product<Half>&);

}  // namespace taeda::blas
