// Derivatives of views, of operators that join and rearrange, and of indexing.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

namespace taeda::autograd {

TAEDA_API Tensor permute_backward(const Tensor& grad, IntArrayRef dims);
TAEDA_API Tensor slice_backward(const Tensor& grad,
                                IntArrayRef sizes,
                                int64_t dim,
                                std::optional<int64_t> start,
                                std::optional<int64_t> end,
                                int64_t step);
TAEDA_API Tensor as_strided_grad(const Tensor& grad,
                                 const TensorGeometry& input,
                                 IntArrayRef sizes,
                                 IntArrayRef strides,
                                 std::optional<int64_t> storage_offset);

// Gradients of outputs that nobody used count as zeros.
TAEDA_API Tensor split_backward(const Tensors& grads,
                                IntArrayRef sizes,
                                int64_t split_size,
                                int64_t dim);
TAEDA_API Tensor split_with_sizes_backward(const Tensors& grads,
                                           IntArrayRef sizes,
                                           IntArrayRef split_sizes,
                                           int64_t dim);
TAEDA_API Tensor unbind_backward(const Tensors& grads, int64_t dim);

// The gradient of what a *_scatter left of self.
TAEDA_API Tensor select_scatter_backward(const Tensor& grad,
                                         IntArrayRef src_sizes,
                                         int64_t dim,
                                         int64_t index);
TAEDA_API Tensor slice_scatter_backward(const Tensor& grad,
                                        IntArrayRef src_sizes,
                                        int64_t dim,
                                        std::optional<int64_t> start,
                                        std::optional<int64_t> end,
                                        int64_t step);
TAEDA_API Tensor diagonal_scatter_backward(const Tensor& grad,
                                           IntArrayRef src_sizes,
                                           int64_t offset,
                                           int64_t dim1,
                                           int64_t dim2);
TAEDA_API Tensor
as_strided_scatter_backward(const Tensor& grad,
                            const TensorGeometry& input,
                            IntArrayRef src_sizes,
                            IntArrayRef sizes,
                            IntArrayRef strides,
                            std::optional<int64_t> storage_offset);
// as_strided of a gradient laid out as the tensor it belongs to.
TAEDA_API Tensor as_strided_of(const Tensor& grad,
                               const TensorGeometry& input,
                               IntArrayRef sizes,
                               IntArrayRef strides,
                               std::optional<int64_t> storage_offset);

}  // namespace taeda::autograd
