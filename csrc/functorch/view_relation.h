// Wrappers of views are views of wrappers.
#pragma once

#include <taeda/aten/core/level.h>

namespace taeda::functorch {

// Makes `wrapper`, result `index` of a call with `given` arguments, a view of
// the argument that it shares memory with, if that is a wrapper of the same
// level: a change in place of one is then known to be one of the other.
void relate_view(const OperatorEntry& op,
                 std::span<const IValue> given,
                 size_t index,
                 const TensorBase& wrapper);

}  // namespace taeda::functorch
