// Derivatives of reductions, scans and powers.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

namespace taeda::autograd {

using OptionalDims = std::optional<IntArrayRef>;

TAEDA_API Tensor pow_grad(const Tensor& grad,
                          const Tensor& self,
                          const Scalar& exponent);
TAEDA_API Tensor mean_grad(const Tensor& grad,
                           IntArrayRef sizes,
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

// Of binary_cross_entropy by its target.
TAEDA_API Tensor bce_target_grad(const Tensor& grad,
                                 const Tensor& self,
                                 const OptionalTensor& weight,
                                 int64_t reduction);

}  // namespace taeda::autograd
