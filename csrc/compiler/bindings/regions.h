// Kernels of compiled graphs, for people and tests.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>
#include <taeda/csrc/python/bridge.h>

#include <vector>

namespace taeda::compiler {

// A new list of taeda._compiler.Region: the loop kernels of graphs, in order.
PyObject* new_regions(const std::vector<const Graph*>& graphs);
void add_region_type(PyObject* module);

}  // namespace taeda::compiler
