// New tensors from Python values: taeda.tensor and its kin.
#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

// Tensor(...) as old programs write it: sizes, data or another tensor.
PyObject* legacy_new(PyTypeObject* type, PyObject* args, PyObject* kwargs);
// tensor, as_tensor, from_numpy, frombuffer, ...
void init_tensor_new(PyObject* module);

}  // namespace taeda::python
