// The parts of the extension module taeda._boxed.
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/csrc/boxed/boxed_values.h>
#include <taeda/csrc/python/casters.h>

namespace taeda::python {

void bind_library(py::module_ m);
void bind_node_values(py::module_ m);
void bind_torch_dispatch(py::module_ m);
void bind_known_calls(py::module_ m);
// The levels, as the module `_functorch` inside.
void bind_levels(py::module_ m);
void bind_record_level(py::module_ levels);

// Runs linear and matmul, which are kernels here for the sake of quick calls,
// as the views and products that Python sees of them; false for all others.
bool run_parts(const OperatorEntry& op, Stack& stack);

}  // namespace taeda::python
