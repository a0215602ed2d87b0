// Exchange of memory with other libraries: NumPy, DLPack, storages.
#pragma once

#include <taeda/csrc/python/tensor_entry.h>

namespace taeda::python {

PyObject* numpy_method(const MethodArgs& m);
void init_numpy(PyObject* module);

PyObject* dlpack_device_method(const TensorBase& t);
void init_dlpack(PyObject* module);

PyObject* untyped_storage_method(const TensorBase& t);
PyObject* set_method(const MethodArgs& m);
void init_storage(PyObject* module);

}  // namespace taeda::python
