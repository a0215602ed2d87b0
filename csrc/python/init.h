// The parts of _C, in the order in which module.cpp adds them.
#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

void init_errors(PyObject* module);
void init_torch_function(PyObject* module);
void init_dtype(PyObject* module);
void init_size(PyObject* module);
void init_device(PyObject* module);
void init_tensor_type(PyObject* module);
void init_generator(PyObject* module);
void init_storage(PyObject* module);
void init_tensor_new(PyObject* module);
void init_numpy(PyObject* module);
void init_dlpack(PyObject* module);
void init_state(PyObject* module);
void init_settings(PyObject* module);
void init_return_types(PyObject* module);
void init_library(PyObject* module);
void init_autograd_function(PyObject* module);
void init_autograd_nodes(PyObject* module);
void init_autograd_hooks(PyObject* module);
void init_autograd_engine(PyObject* module);
void init_autograd_modes(PyObject* module);

}  // namespace taeda::python
