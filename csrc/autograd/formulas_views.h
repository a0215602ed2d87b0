// Derivatives of views, of operators that join and rearrange, and of indexing.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

namespace taeda::autograd {

TAEDA_API Tensor permute_backward(const Tensor& grad, IntArrayRef dims);
TAEDA_API Tensor slice_backward(const Tensor& grad,
                                SymIntArrayRef sizes,
                                int64_t dim,
                                const std::optional<SymInt>& start,
                                const std::optional<SymInt>& end,
                                const SymInt& step);
// Whether two places of the geometry may be one element.
bool may_overlap(IntArrayRef sizes, IntArrayRef strides);
TAEDA_API Tensor as_strided_grad(const Tensor& grad,
                                 const TensorGeometry& input,
                                 SymIntArrayRef sizes,
                                 SymIntArrayRef strides,
                                 const std::optional<SymInt>& storage_offset);

// Gradients of outputs that nobody used count as zeros.
TAEDA_API Tensor split_backward(const Tensors& grads,
                                SymIntArrayRef sizes,
                                const SymInt& split_size,
                                int64_t dim);
TAEDA_API Tensor split_with_sizes_backward(const Tensors& grads,
                                           SymIntArrayRef sizes,
                                           SymIntArrayRef split_sizes,
                                           int64_t dim);
TAEDA_API Tensor unbind_backward(const Tensors& grads, int64_t dim);

// The gradient of what a *_scatter left of self.
TAEDA_API Tensor select_scatter_backward(const Tensor& grad,
                                         SymIntArrayRef src_sizes,
                                         int64_t dim,
                                         const SymInt& index);
TAEDA_API Tensor slice_scatter_backward(const Tensor& grad,
                                        SymIntArrayRef src_sizes,
                                        int64_t dim,
                                        const std::optional<SymInt>& start,
                                        const std::optional<SymInt>& end,
                                        const SymInt& step);
TAEDA_API Tensor diagonal_scatter_backward(const Tensor& grad,
                                           SymIntArrayRef src_sizes,
                                           int64_t offset,
                                           int64_t dim1,
                                           int64_t dim2);
TAEDA_API Tensor
as_strided_scatter_backward(const Tensor& grad,
                            const TensorGeometry& input,
                            SymIntArrayRef src_sizes,
                            SymIntArrayRef sizes,
                            SymIntArrayRef strides,
                            const std::optional<SymInt>& storage_offset);
// as_strided of a gradient laid out as the tensor it belongs to.
TAEDA_API Tensor as_strided_of(const Tensor& grad,
                               const TensorGeometry& input,
                               SymIntArrayRef sizes,
                               SymIntArrayRef strides,
                               const std::optional<SymInt>& storage_offset);

}  // namespace taeda::autograd
