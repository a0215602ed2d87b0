// Compiled backward passes in Python.
#pragma once

#include <taeda/csrc/compiler/loops/fuse.h>
#include <taeda/csrc/extension/bridge.h>

#include <pybind11/pybind11.h>

#include <functional>

namespace taeda::compiler {

// The function that fuses graphs, as the default backend's options say.
// `check`: whether kernels that differ from their calls raise KernelDiffers.
std::function<void(Graph& graph)> fuser(FuseOptions options, bool check);

void add_passes(pybind11::module_& module);

}  // namespace taeda::compiler
