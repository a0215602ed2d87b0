// Products of matrices and of batches of them, over the BLAS layer.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::native {

// out = alpha a b + beta out for matrices of one dtype; out is row-major. With
// beta 0, out is not read.
void gemm_into(std::string_view op,
               const Tensor& a,
               const Tensor& b,
               const Tensor& out,
               const Scalar& alpha,
               const Scalar& beta);
// The same for operands of two and more dims whose leading dims broadcast to
// those of `out` (row-major).
void batched_gemm_into(std::string_view op,
                       const Tensor& a,
                       const Tensor& b,
                       const Tensor& out,
                       const Scalar& alpha,
                       const Scalar& beta);
// out (row-major, one dim) = alpha mat vec + beta out.
void gemv_into(std::string_view op,
               const Tensor& mat,
               const Tensor& vec,
               const Tensor& out,
               const Scalar& alpha,
               const Scalar& beta);
// The 0-d result of a dot product; conjugates a when asked to.
void dot_into(std::string_view op,
              const Tensor& a,
              const Tensor& b,
              const Tensor& out,
              bool conjugate);
// [..., n, k] x [..., k, m] with PyTorch's rules for vectors.
void matmul_into(const Tensor& a, const Tensor& b, const Tensor& out);

// The same memory under another geometry, outside of autograd's sight.
Tensor view_over(const Tensor& t, IntArrayRef sizes, IntArrayRef strides);
template <class T>
void check_inner_sizes(const T& a, const T& b) {
  TAEDA_CHECK(a.sizes()[1] == b.sizes()[0],
              "mat1 and mat2 shapes cannot be multiplied (",
              a.sizes()[0],
              "x",
              a.sizes()[1],
              " and ",
              b.sizes()[0],
              "x",
              b.sizes()[1],
              ")");
}

// Integers compute with whole factors, as PyTorch's do.
inline Scalar factor_for(ScalarType t, const Scalar& s) {
  return is_integral(t, true) && s.is_floating()
             ? Scalar(static_cast<int64_t>(s.to_double()))
             : s;
}

}  // namespace taeda::native
