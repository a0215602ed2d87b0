// Conversions of dtype and device.
#pragma once

#include <taeda/csrc/python/tensor_entry.h>

namespace taeda::python {

PyObject* to_method(const MethodArgs& m);
PyObject* type_method(const MethodArgs& m);
PyObject* cpu_method(const MethodArgs& m);
PyObject* cuda_method(const MethodArgs& m);
PyObject* new_tensor_method(const MethodArgs& m);
// float(), long(), ...: (*, memory_format=preserve_format).
PyObject* cast_method(const MethodArgs& m, const char* name, ScalarType dtype);
template <FixedName Name, ScalarType Dtype>
PyObject* cast_entry(const MethodArgs& m) {
  return cast_method(m, Name.text, Dtype);
}
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
