// Derivatives of reductions, scans and powers.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

namespace taeda::autograd {

using OptionalDims = std::optional<IntArrayRef>;

TAEDA_API Tensor pow_grad(const Tensor& grad,
                          const Tensor& self,
                          const Scalar& exponent);
TAEDA_API Tensor mean_grad(const Tensor& grad,
                           SymIntArrayRef sizes,
                           OptionalDims dims,
                           bool keepdim);
TAEDA_API Tensor nansum_grad(const Tensor& grad,
                             const Tensor& self,
                             OptionalDims dims,
                             bool keepdim);
// Shared evenly by all elements that equal the result.
TAEDA_API Tensor extremum_grad(const Tensor& grad,
                               const Tensor& self,
                               const Tensor& result,
                               OptionalDims dims,
                               bool keepdim);
TAEDA_API Tensor prod_grad(const Tensor& grad,
                           const Tensor& self,
                           const Tensor& result);
TAEDA_API Tensor prod_grad(const Tensor& grad,
                           const Tensor& self,
                           const Tensor& result,
                           int64_t dim,
                           bool keepdim);

using Correction = std::optional<Scalar>;
TAEDA_API Tensor var_grad(const Tensor& grad,
                          const Tensor& self,
                          OptionalDims dims,
                          const Correction& correction,
                          bool keepdim);
TAEDA_API Tensor std_grad(const Tensor& grad,
                          const Tensor& self,
                          const Tensor& result,
                          OptionalDims dims,
                          const Correction& correction,
                          bool keepdim);
TAEDA_API Tensor var_mean_grad(const Tensor& grad_var,
                               const Tensor& grad_mean,
                               const Tensor& self,
                               OptionalDims dims,
                               const Correction& correction,
                               bool keepdim);
TAEDA_API Tensor std_mean_grad(const Tensor& grad_std,
                               const Tensor& grad_mean,
                               const Tensor& self,
                               const Tensor& result,
                               OptionalDims dims,
                               const Correction& correction,
                               bool keepdim);

TAEDA_API Tensor cumsum_grad(const Tensor& grad, int64_t dim);
TAEDA_API Tensor cumprod_grad(const Tensor& grad,
                              const Tensor& self,
                              const Tensor& result,
                              int64_t dim);
TAEDA_API Tensor logsumexp_grad(const Tensor& grad,
                                const Tensor& self,
                                const Tensor& result,
                                OptionalDims dims,
                                bool keepdim);
TAEDA_API Tensor norm_grad(const Tensor& grad,
                           const Tensor& self,
                           const std::optional<Scalar>& order,
                           const Tensor& result,
                           OptionalDims dims,
                           bool keepdim);

// Of value_selecting_reduction_backward: picks again.
TAEDA_API Tensor picked_grad(const Tensor& grad,
                             int64_t dim,
                             const Tensor& indices,
                             bool keepdim);

// Of the backward operators of softmax and log_softmax.
TAEDA_API Tensor softmax_double_grad(const Tensor& grad,
                                     const Tensor& grad_output,
                                     const Tensor& output,
                                     int64_t dim);
TAEDA_API Tensor log_softmax_double_grad(const Tensor& grad,
                                         const Tensor& output,
                                         int64_t dim);
TAEDA_API Tensor log_softmax_output_grad(const Tensor& grad,
                                         const Tensor& grad_output,
                                         const Tensor& output,
                                         int64_t dim);

}  // namespace taeda::autograd
