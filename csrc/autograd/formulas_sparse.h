// Derivatives of what makes, reads and multiplies sparse tensors.
#pragma once

#include <taeda/csrc/autograd/formulas.h>
#include <taeda/csrc/autograd/formulas_products.h>

#include <initializer_list>

namespace taeda::autograd {

// What a gradient holds at the entries of `result`, one for each of them,
// whatever the layout of the gradient.
TAEDA_API Tensor sparse_values_gradient(const Tensor& grad,
                                        const Tensor& result);
// A sparse tensor with the entries of `self` whose values are `values`.
TAEDA_API Tensor sparse_of_values(const Tensor& values, const Tensor& self);
// Of the derivative of a pointwise operator: whether it is to be computed for
// entries, and that: of what the tensors hold at those of the gradient
// (everywhere, if that is strided). Not templates, which each node would have.
TAEDA_API bool holds_entries(const Tensor& grad,
                             std::initializer_list<const Tensor*> others);
TAEDA_API Tensor at_entries(const Tensor& grad,
                            std::initializer_list<const Tensor*> others,
                            Tensor (*derivative)(void* f,
                                                 const Tensor& grad,
                                                 const Tensor* others),
                            void* f);
TAEDA_API Tensor to_dense_gradient(const Tensor& grad,
                                   const Tensor& self,
                                   std::optional<bool> masked_grad);
// The gradient in the layout of `self`.
TAEDA_API Tensor to_sparse_gradient(const Tensor& grad, const Tensor& self);
TAEDA_API Tensor sparse_mask_gradient(const Tensor& grad,
                                      const Tensor& self,
                                      const Tensor& mask);
TAEDA_API Tensor spdiags_gradient(const Tensor& grad,
                                  const Tensor& offsets,
                                  const Tensor& diagonals);
TAEDA_API Tensor sparse_broadcast_gradient(const Tensor& grad,
                                           const Tensor& self);
TAEDA_API Tensor sparse_sum_gradient(const Tensor& grad,
                                     const Tensor& self,
                                     IntArrayRef dims);
// grad @ b^H at the entries of `a`, where the result was alpha * a @ b.
TAEDA_API Tensor masked_product_gradient(const Tensor& grad,
                                         const Tensor& a,
                                         const Tensor& b,
                                         const Scalar& alpha);
TAEDA_API Tensor sparse_mm_reduce_gradient(const Tensor& grad,
                                           const Tensor& a,
                                           const Tensor& b,
                                           std::string_view reduce,
                                           const Tensor& origin);
TAEDA_API Tensor dense_mm_reduce_gradient(const Tensor& grad,
                                          const Tensor& a,
                                          const Tensor& b,
                                          std::string_view reduce,
                                          const Tensor& origin);

}  // namespace taeda::autograd
