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
// The gradients of a product with PyTorch's rules for vectors and batches.
TAEDA_API std::tuple<Tensor, Tensor> matmul_gradients(
    const Tensor& grad,
    const Tensor& a,
    const Tensor& b,
    std::array<bool, 2> wanted);
TAEDA_API std::tuple<Tensor, Tensor> addmv_gradients(
    const Tensor& grad,
    const Tensor& mat,
    const Tensor& vec,
    const Scalar& alpha,
    std::array<bool, 2> wanted);
TAEDA_API std::tuple<Tensor, Tensor, Tensor> linear_gradients(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& weight,
    SymIntArrayRef bias_sizes,
    std::array<bool, 3> wanted);

}  // namespace taeda::autograd
