// Compiled backward passes in Python.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>
#include <taeda/csrc/extension/bridge.h>

#include <pybind11/pybind11.h>

namespace taeda::compiler {

// The function that fuses graphs, as the default backend's options say.
void (*fuser(bool blocking, bool check))(Graph& graph);

void add_passes(pybind11::module_& module);

}  // namespace taeda::compiler
