// oneDNN's primitives on raw pointers. The library is loaded by the first call;
// RuntimeError where it is missing.
#pragma once

#include <cstdint>

#include <taeda/aten/native/dnn/problems.h>
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

// The functions below return false, having done nothing, where oneDNN has no
// code for the case on this processor (bfloat16 without AVX-512, say), or where
// settings::dnn_enabled is off: the caller then computes it in another way.
// Pointers are to elements of the geometry's dtype; output is overwritten and
// may not overlap the inputs.

// dst = conv(src, weight) + bias; bias may be null.
[[nodiscard]] TAEDA_API bool conv_forward(const Conv& conv,
                                          const void* src,
                                          const void* weight,
                                          WeightId id,
                                          const void* bias,
                                          void* dst);

// The gradient with respect to src. It is also the transposed convolution's
// forward: describe the convolution that maps its output to its input (in =
// its output sizes, in_channels = its output channels), pass its input as
// diff_dst, and add the bias afterwards.
[[nodiscard]] TAEDA_API bool conv_backward_data(const Conv& conv,
                                                const void* diff_dst,
                                                const void* weight,
                                                WeightId id,
                                                void* diff_src);

// The gradients with respect to weight and, where not null, bias.
[[nodiscard]] TAEDA_API bool conv_backward_weights(const Conv& conv,
                                                   const void* src,
                                                   const void* diff_dst,
                                                   void* diff_weight,
                                                   void* diff_bias);

// Products with the bias added while the result is in registers.
[[nodiscard]] TAEDA_API bool matmul(const MatMul& matmul,
                                    const void* a,
                                    const void* b,
                                    WeightId b_id,
                                    const void* bias,
                                    void* c);

}  // namespace taeda::dnn
