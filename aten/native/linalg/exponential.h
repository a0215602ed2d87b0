// The exponential of matrices.
#pragma once

#include <taeda/aten/core/op_types.h>
#include <taeda/c10/util/macros.h>

namespace taeda::native {

// By operators, on whatever device the matrices lie. What comes back may be of
// a wider dtype.
TAEDA_API Tensor exponential_of(const Tensor& matrices);

}  // namespace taeda::native
