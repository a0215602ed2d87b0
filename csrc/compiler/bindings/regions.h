// Kernels of compiled graphs, for people and tests.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>
#include <taeda/csrc/extension/bridge.h>
#include <taeda/csrc/python/tensor_type.h>

namespace taeda::compiler {

// A new list of taeda._compiler.Region: the loop kernels of a version's graphs,
// in order; `backward` may be null.
PyObject* new_regions(const Graph& forward, const Graph* backward);
void add_region_type(PyObject* module);

}  // namespace taeda::compiler
