// Conversions of dtype and device.
#pragma once

#include <taeda/csrc/python/tensor_entry.h>

namespace taeda::python {

PyObject* to_method(const MethodArgs& m);
PyObject* type_method(const MethodArgs& m);
PyObject* cpu_method(const MethodArgs& m);
PyObject* cuda_method(const MethodArgs& m);
PyObject* new_tensor_method(const MethodArgs& m);
// A new handle of the same memory that stays in the graph.
TensorBase alias_with_history(const TensorBase& t);
// The tensor in another dtype or place, recorded where grad mode asks for it.
TensorBase convert(const TensorBase& t,
                   ScalarType dtype,
                   Device device,
                   bool non_blocking,
                   bool copy,
                   MemoryFormat format);

}  // namespace taeda::python
