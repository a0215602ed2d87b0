// Derivatives that records name, written with ops:: calls so that they can be
// differentiated again.
#pragma once

#include <taeda/csrc/autograd/inplace.h>
#include <taeda/csrc/autograd/variable.h>

#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/c10/core/scalar.h>

#include <vector>

namespace taeda::autograd {

// Note [Formulas over symbols]
// Sizes in formulas are SymInt: plain integers but where a program is traced on
// sizes that are symbols. Formulas ask tensors for symbolic_sizes (sizes()
// would fix the symbols) and call operators that take sizes by namespace sym.
using native::same_sizes;
using native::symbolic_sizes;

// Shapes and dtypes ----------------------------------------------------------

// Sums over the dims that broadcasting from `sizes` made or stretched.
TAEDA_API Tensor sum_to(const Tensor& t, SymIntArrayRef sizes);
TAEDA_API Tensor cast_to(const Tensor& t, ScalarType dtype);
// The real part of a complex gradient of something real.
TAEDA_API Tensor real_if_needed(const Tensor& t, ScalarType wanted);
TAEDA_API Tensor conj_of(const Tensor& t);
// NotImplementedError: nobody knows the derivative of `op` by `argument`.
[[noreturn]] TAEDA_API Tensor no_derivative(const char* op,
                                            const char* argument);
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
                          SymIntArrayRef sizes,
                          std::optional<IntArrayRef> dims,
                          bool keepdim);

TAEDA_API Tensor copy_backward(const Tensor& grad,
                               SymIntArrayRef sizes,
                               ScalarType dtype,
                               Device device);
// Reductions -----------------------------------------------------------------

TAEDA_API Tensor sum_backward(const Tensor& grad,
                              SymIntArrayRef sizes,
                              std::optional<IntArrayRef> dims,
                              bool keepdim);

}  // namespace taeda::autograd
