// Matrix products on raw pointers. Everything is row-major: element (i, j) of a
// matrix X stands at x[i * ldx + j]. A column-major product is the row-major
// product of the transposes: swap a with b and m with n.
#pragma once

#include <cstdint>

#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/complex.h>
#include <taeda/c10/util/half.h>
#include <taeda/c10/util/macros.h>

namespace taeda::blas {

enum class Op : uint8_t {
  kNone,
  kTrans,
  kConjTrans,  // the same as kTrans for real types
};

namespace detail {
template <typename T>
struct Scale {
  using type = T;
};
template <>
struct Scale<BFloat16> {
  using type = float;
};
template <>
struct Scale<Half> {
  using type = float;
};
}  // namespace detail

// The type of alpha and beta, and of sums: float for the 16-bit floats.
template <typename T>
using scale_t = typename detail::Scale<T>::type;

// C = alpha op(A) op(B) + beta C, with op(A) m x k, op(B) k x n and C m x n.
// With beta == 0, C is written without being read; with k == 0 or alpha == 0,
// A and B are not read. C may not overlap A or B. For float, double,
// complex<float>, complex<double>, BFloat16, Half and the integers uint8_t,
// int8_t, int16_t, int32_t, int64_t (which wrap around).
template <typename T>
TAEDA_API void gemm(Op trans_a,
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
                    int64_t ldc);

// Where the matrices of a batch stand, in elements. A stride of 0 repeats one
// matrix; the C matrices may not overlap.
struct BatchStrides {
  int64_t a;
  int64_t b;
  int64_t c;
};

// The product above for each matrix of a batch.
template <typename T>
TAEDA_API void gemm_batched(Op trans_a,
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
                            BatchStrides strides);

// y = alpha op(A) x + beta y, with A m x n as stored. Increments are not zero;
// a negative one walks backwards from the pointer (unlike in BLAS). Same types.
template <typename T>
TAEDA_API void gemv(Op trans,
                    int64_t m,
                    int64_t n,
                    scale_t<T> alpha,
                    const T* a,
                    int64_t lda,
                    const T* x,
                    int64_t inc_x,
                    scale_t<T> beta,
                    T* y,
                    int64_t inc_y);

// sum x[i] y[i], or sum conj(x[i]) y[i].
template <typename T>
TAEDA_API T
dot(int64_t n, const T* x, int64_t inc_x, const T* y, int64_t inc_y);
template <typename T>
TAEDA_API T
vdot(int64_t n, const T* x, int64_t inc_x, const T* y, int64_t inc_y);

// y += alpha x.
template <typename T>
TAEDA_API void axpy(int64_t n,
                    scale_t<T> alpha,
                    const T* x,
                    int64_t inc_x,
                    T* y,
                    int64_t inc_y);

}  // namespace taeda::blas
