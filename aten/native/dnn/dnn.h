// oneDNN's primitives on raw pointers. The library is loaded by the first call;
// RuntimeError where it is missing.
#pragma once

#include <cstdint>

#include <taeda/c10/util/macros.h>

namespace taeda::dnn {

// Row-major C = alpha op(A) op(B) + beta C, as blas::gemm.
TAEDA_API void sgemm(bool trans_a,
                     bool trans_b,
                     int64_t m,
                     int64_t n,
                     int64_t k,
                     float alpha,
                     const float* a,
                     int64_t lda,
                     const float* b,
                     int64_t ldb,
                     float beta,
                     float* c,
                     int64_t ldc);

}  // namespace taeda::dnn
