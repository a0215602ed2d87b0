// Derivatives of matrix products.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

#include <array>
#include <tuple>

namespace taeda::autograd {

// t with its last two dims exchanged, conjugated.
TAEDA_API Tensor adjoint_of(const Tensor& t);
TAEDA_API Tensor times_scalar(const Tensor& t, const Scalar& s);
// s A B; 16-bit products are rounded once.
TAEDA_API Tensor scaled_mm(const Tensor& a, const Tensor& b, const Scalar& s);
TAEDA_API Tensor scaled_bmm(const Tensor& a, const Tensor& b, const Scalar& s);
// The gradients of a product with PyTorch's rules for vectors and batches. Each
// takes the other operand alone, so that one which is frozen keeps nothing
// alive.
TAEDA_API Tensor matmul_left_gradient(const Tensor& grad,
                                      SymIntArrayRef sizes,
                                      const Tensor& b);
TAEDA_API Tensor matmul_right_gradient(const Tensor& grad,
                                       const Tensor& a,
                                       SymIntArrayRef sizes);
TAEDA_API std::tuple<Tensor, Tensor> addmv_gradients(
    const Tensor& grad,
    const Tensor& mat,
    const Tensor& vec,
    const Scalar& alpha,
    std::array<bool, 2> wanted);
TAEDA_API Tensor linear_input_gradient(const Tensor& grad,
                                       SymIntArrayRef sizes,
                                       const Tensor& weight);
TAEDA_API Tensor linear_weight_gradient(const Tensor& grad,
                                        const Tensor& input,
                                        SymIntArrayRef sizes);

}  // namespace taeda::autograd
