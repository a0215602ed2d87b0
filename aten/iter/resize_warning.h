// The warning of out= tensors that change their shape.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

// PyTorch's warning that `out` is about to get other sizes; none where it is
// empty.
TAEDA_API void warn_of_resize(const TensorBase& out, IntArrayRef sizes);

}  // namespace taeda
