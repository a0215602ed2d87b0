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

}  // namespace taeda::native
