// Whether all values of a tensor are finite, by the bits of their exponents.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::profiler {

// False for tensors that are not of the CPU, are no strided ones or have no
// exponents of IEEE's kind (integers, float8).
TAEDA_API bool has_bad(const TensorBase& t);

}  // namespace taeda::profiler
