// The kernels of our own that exist once per instruction set.
#pragma once

#include <cstdint>
#include <type_traits>

#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/half.h>

namespace taeda::blas {

// What a small product needs; op(A) and op(B) are given by their strides, so
// that the kernel sees no transposition of A.
template <typename T>
struct SmallGemm {
  int64_t m;
  int64_t n;
  int64_t k;
  T alpha;
  const T* a;  // op(A)(i, p) at a[i * a_row + p * a_step]
  int64_t a_row;
  int64_t a_step;
  const T* b;  // op(B)(p, j) at b[p * ldb + j]
  int64_t ldb;
  T beta;
  T* c;
  int64_t ldc;
};

template <typename T>
struct Kernels {
  // One thread, no packing: right while B stays in the first-level cache.
  void (*small_gemm)(const SmallGemm<T>& g);
  // out[j * rows + i] = in[i * ld + j] for i < rows, j < cols.
  void (*transpose)(
      int64_t rows, int64_t cols, const T* in, int64_t ld, T* out);
  T (*dot)(int64_t n, const T* x, const T* y);
  void (*axpy)(int64_t n, T alpha, const T* x, T* y);
  // y[i] = alpha sum_j a[i * lda + j] x[j] + beta y[i * inc_y]
  void (*gemv_rows)(int64_t rows,
                    int64_t cols,
                    T alpha,
                    const T* a,
                    int64_t lda,
                    const T* x,
                    T beta,
                    T* y,
                    int64_t inc_y);
  // y[j] = alpha sum_i a[i * lda + j] x[i] + beta y[j], y contiguous
  void (*gemv_cols)(int64_t rows,
                    int64_t cols,
                    T alpha,
                    const T* a,
                    int64_t lda,
                    const T* x,
                    T beta,
                    T* y);
  // out[i * out_stride] = alpha dot(x + i * x_stride, y + i * y_stride)
  //                       + beta out[i * out_stride] for i < count
  void (*dots)(int64_t count,
               int64_t n,
               T alpha,
               const T* x,
               int64_t x_stride,
               const T* y,
               int64_t y_stride,
               T beta,
               T* out,
               int64_t out_stride);
};

// Conversion of n contiguous elements of BFloat16 or Half.
template <typename T>
struct SixteenKernels {
  void (*widen)(const T* in, float* out, int64_t n);
  void (*narrow)(const float* in, T* out, int64_t n);
};

// Integer products wrap around, so unsigned sums serve every integer type.
template <typename T>
struct IntegerKernels {
  void (*small_gemm)(const SmallGemm<T>& g);
};

// All kernels of one instruction set.
struct KernelSet {
  Kernels<float> f32;
  Kernels<double> f64;
  SixteenKernels<BFloat16> bf16;
  SixteenKernels<Half> f16;
  IntegerKernels<uint32_t> u32;
  IntegerKernels<uint64_t> u64;
};

namespace isa_default {
extern const KernelSet kernel_set;
}
namespace isa_avx2 {
extern const KernelSet kernel_set;
}
namespace isa_avx512 {
extern const KernelSet kernel_set;
}

// Those of the level in use.
const KernelSet& kernel_set();

// float and double.
template <typename T>
const Kernels<T>& kernels() {
  if constexpr (std::is_same_v<T, float>) {
    return kernel_set().f32;
  } else {
    return kernel_set().f64;
  }
}

// BFloat16 and Half.
template <typename T>
const SixteenKernels<T>& sixteen_kernels() {
  if constexpr (std::is_same_v<T, BFloat16>) {
    return kernel_set().bf16;
  } else {
    return kernel_set().f16;
  }
}

}  // namespace taeda::blas
