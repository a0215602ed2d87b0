// Derivatives of matrix decompositions and solvers.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

#include <array>
#include <string_view>
#include <tuple>

namespace taeda::autograd {

TAEDA_API std::tuple<Tensor, Tensor> linalg_solve_gradients(
    const Tensor& grad,
    const Tensor& a,
    const Tensor& b,
    const Tensor& x,
    bool left,
    std::array<bool, 2> wanted);
TAEDA_API Tensor linalg_inv_gradient(const Tensor& grad, const Tensor& inverse);
TAEDA_API Tensor linalg_qr_gradient(const Tensor& grad_q,
                                    const Tensor& grad_r,
                                    const Tensor& q,
                                    const Tensor& r,
                                    std::string_view mode);
TAEDA_API std::tuple<Tensor, Tensor> householder_product_gradients(
    const Tensor& grad,
    const Tensor& reflectors,
    const Tensor& tau,
    const Tensor& q);
// Refuses gradients of complex vectors, told up to a phase each, that turn with
// it: `turn` has to be -`other` (0 if undefined), as far as can be seen. Waits
// for a device.
TAEDA_API void check_phase(std::string_view op,
                           const Tensor& turn,
                           const Tensor& other = {});
TAEDA_API Tensor linalg_svd_gradient(const Tensor& grad_u,
                                     const Tensor& grad_s,
                                     const Tensor& grad_vh,
                                     const Tensor& u,
                                     const Tensor& s,
                                     const Tensor& vh);

}  // namespace taeda::autograd
