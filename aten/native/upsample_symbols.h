// The upsample operators where symbols are among the sizes that are asked for.
#pragma once

#include <taeda/aten/iter/symbolic.h>

namespace taeda::native {

// Null for other operators.
SymbolicComposite find_symbolic_upsample(const OperatorEntry& op);

}  // namespace taeda::native
