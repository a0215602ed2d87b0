// Operators that another device has no kernel for, computed by the CPU.
#pragma once

#include <taeda/aten/core/dispatcher.h>

namespace taeda::native {

// Calls the operator with copies of its tensors on the CPU; what it writes and
// gives lies on the tensors' own device afterwards. For boxed kernels at
// PrivateUse1, whose arguments are at the end of the stack. RuntimeError naming
// operator and devices where tensors with dims lie on different ones,
// NotImplementedError for an operator whose result shares memory with one.
// Factories of random numbers (`rand`, `randint_like`, ...) make a tensor of
// the device and call `uniform_`, `normal_` or `random_` on it.
TAEDA_API void cpu_fallback(const OperatorEntry& op, Stack& stack);

}  // namespace taeda::native
