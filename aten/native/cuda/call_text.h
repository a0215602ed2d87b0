// What texts of programs are put together from.
#pragma once

#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/iteration_space.h>

#include <string>

namespace taeda::cuda {

// Dims after those that lie behind each other were merged; the number in
// prelude.cuh.
inline constexpr int kMaxDims = 8;

// "Half", "Long": how device text names an element's type.
const char* device_type(ScalarType t);
// "bool", "int", "float", "complex": which functor computes in a type.
const char* kind_of(Compute c);

}  // namespace taeda::cuda
