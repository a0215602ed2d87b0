// Derivatives of factorisations, determinants and eigenvalues.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

#include <array>
#include <tuple>

namespace taeda::autograd {

TAEDA_API Tensor linalg_cholesky_gradient(const Tensor& grad,
                                          const Tensor& factor,
                                          bool upper);
TAEDA_API std::tuple<Tensor, Tensor> cholesky_solve_gradients(
    const Tensor& grad,
    const Tensor& b,
    const Tensor& factor,
    const Tensor& x,
    bool upper,
    std::array<bool, 2> wanted);
TAEDA_API std::tuple<Tensor, Tensor> solve_triangular_gradients(
    const Tensor& grad,
    const Tensor& a,
    const Tensor& b,
    const Tensor& x,
    bool upper,
    bool left,
    bool unitriangular,
    std::array<bool, 2> wanted);
TAEDA_API Tensor linalg_lu_gradient(const Tensor& grad,
                                    const Tensor& lu,
                                    const Tensor& pivots);
TAEDA_API Tensor lu_unpack_gradient(const Tensor& grad_l,
                                    const Tensor& grad_u,
                                    const Tensor& lu);
TAEDA_API Tensor linalg_det_gradient(const Tensor& grad,
                                     const Tensor& a,
                                     const Tensor& det);
TAEDA_API Tensor linalg_slogdet_gradient(const Tensor& grad_sign,
                                         const Tensor& grad_log,
                                         const Tensor& a,
                                         const Tensor& sign);
TAEDA_API Tensor linalg_eigh_gradient(const Tensor& grad_values,
                                      const Tensor& grad_vectors,
                                      const Tensor& values,
                                      const Tensor& vectors);
TAEDA_API Tensor linalg_eig_gradient(const Tensor& grad_values,
                                     const Tensor& grad_vectors,
                                     const Tensor& values,
                                     const Tensor& vectors,
                                     ScalarType dtype);
TAEDA_API Tensor matrix_exp_gradient(const Tensor& grad, const Tensor& a);
TAEDA_API Tensor linalg_pinv_gradient(const Tensor& grad,
                                      const Tensor& a,
                                      const Tensor& inverse);

// Of the solution X of least squares.
TAEDA_API std::tuple<Tensor, Tensor> least_squares_gradients(
    const Tensor& grad,
    const Tensor& a,
    const Tensor& b,
    std::array<bool, 2> wanted);
// Of op(Q) C or C op(Q), Q being the product of reflections.
TAEDA_API std::tuple<Tensor, Tensor, Tensor> ormqr_gradients(
    const Tensor& grad,
    const Tensor& reflectors,
    const Tensor& tau,
    const Tensor& other,
    bool left,
    bool transpose,
    std::array<bool, 3> wanted);

}  // namespace taeda::autograd
