// What extension modules of Python include.
#pragma once

#include <taeda/csrc/extension/casters.h>
#include <torch/all.h>

// pybind11 as PyTorch's programs name it.
namespace py = pybind11;
