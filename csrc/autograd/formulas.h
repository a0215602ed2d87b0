// Derivatives that records name, written with ops:: calls so that they can be
// differentiated again.
#pragma once

#include <taeda/csrc/autograd/inplace.h>
#include <taeda/csrc/autograd/variable.h>

#include <taeda/c10/core/scalar.h>

#include <vector>

namespace taeda::autograd {

// Shapes and dtypes ----------------------------------------------------------

// Sums over the dims that broadcasting from `sizes` made or stretched.
TAEDA_API Tensor sum_to(const Tensor& t, IntArrayRef sizes);
TAEDA_API Tensor cast_to(const Tensor& t, ScalarType dtype);
// The real part of a complex gradient of something real.
TAEDA_API Tensor real_if_needed(const Tensor& t, ScalarType wanted);
TAEDA_API Tensor conj_of(const Tensor& t);
// Whether a condition of one element holds; true for a wrapper of a level,
// whose elements may differ: it stands for the formula that is right in both
// cases.
TAEDA_API bool may_hold(const Tensor& condition);
// Memory for values like those of `t`, in the same levels.
TAEDA_API Tensor empty_beside(const Tensor& t,
                              IntArrayRef sizes,
                              IntArrayRef strides);
// Puts the dims that a reduction removed back, with size 1.
TAEDA_API Tensor unreduce(const Tensor& t,
                          IntArrayRef sizes,
                          std::optional<IntArrayRef> dims,
                          bool keepdim);

TAEDA_API Tensor copy_backward(const Tensor& grad,
                               IntArrayRef sizes,
                               ScalarType dtype);
TAEDA_API Tensor as_strided_backward(const Tensor& grad,
                                     const TensorGeometry& input,
                                     IntArrayRef sizes,
                                     IntArrayRef strides,
                                     std::optional<int64_t> storage_offset);

// Reductions -----------------------------------------------------------------

TAEDA_API Tensor sum_backward(const Tensor& grad,
                              IntArrayRef sizes,
                              std::optional<IntArrayRef> dims,
                              bool keepdim);

}  // namespace taeda::autograd
