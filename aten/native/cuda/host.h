// Calls that the host computes. See Note [Calls on the device].
#pragma once

#include <taeda/aten/core/dispatcher.h>

namespace taeda::cuda {

// Whether the host computes the operator's functional form.
bool is_of_host(const OperatorEntry& op);
// Copies the tensors to the CPU, computes there, and copies the results to
// `device`. Waits for it.
void compute_on_host(const OperatorEntry& op, Stack& stack, Device device);
// A copy on the device that lies as the CPU's tensor does.
TensorBase moved_to(const TensorBase& here, Device device);
// Makes the tensor of a factory on the CPU and copies it; false for other
// operators, and for random ones, since the CPU's generator is not the
// device's.
bool make_on_host(const OperatorEntry& op, Stack& stack);

}  // namespace taeda::cuda
