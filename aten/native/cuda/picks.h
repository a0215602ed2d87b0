// gather, index_select and embedding where tensors lie as most do.
#pragma once

#include <taeda/aten/core/dispatcher.h>

#include <vector>

namespace taeda::cuda {

// Computes what a formula would, from the operator's arguments into its planned
// results; false where it does not apply.
using QuickKernel = bool (*)(const IValue* values,
                             const std::vector<TensorBase>& results);
// Null where the operator has none.
QuickKernel quick_kernel(const OperatorEntry& op);

}  // namespace taeda::cuda
