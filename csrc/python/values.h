// The Python objects of what is no tensor: devices, dtypes, layouts, memory
// formats, sizes, generators.
#pragma once

#include <taeda/c10/core/generator.h>
#include <taeda/csrc/python/common.h>

namespace taeda::python {

// An object of one value.
template <class T>
struct PyValue {
  PyObject_HEAD T value;
};
template <class T>
T value_of(PyObject* o) {
  return reinterpret_cast<PyValue<T>*>(o)->value;
}

extern PyTypeObject* device_type;

PyObject* new_device(Device device);
// device, str, or an int (an accelerator's index).
inline bool is_device(PyObject* o) { return Py_TYPE(o) == device_type; }
inline bool is_device_like(PyObject* o) {
  return is_device(o) || PyUnicode_Check(o) ||
         (PyLong_Check(o) && !PyBool_Check(o));
}
Device to_device(PyObject* o);

extern PyTypeObject* dtype_type;
extern PyTypeObject* layout_type;
extern PyTypeObject* memory_format_type;

// Borrowed references that live as long as the process.
PyObject* dtype_object(ScalarType t);
PyObject* layout_object(Layout l);
PyObject* memory_format_object(MemoryFormat f);

// A dtype object, or one of the Python types bool, int, float, complex.
bool is_dtype_like(PyObject* o);
ScalarType to_dtype(PyObject* o);
inline bool is_layout(PyObject* o) { return Py_TYPE(o) == layout_type; }
inline Layout to_layout(PyObject* o) { return value_of<Layout>(o); }
inline bool is_memory_format(PyObject* o) {
  return Py_TYPE(o) == memory_format_type;
}
inline MemoryFormat to_memory_format(PyObject* o) {
  return value_of<MemoryFormat>(o);
}

extern PyTypeObject* size_type;
PyObject* new_size(IntArrayRef sizes);
// A plain tuple of ints (strides).
PyObject* new_int_tuple(IntArrayRef values);

extern PyTypeObject* generator_type;
inline bool is_generator(PyObject* o) {
  return PyObject_TypeCheck(o, generator_type);
}
Generator to_generator(PyObject* o);
PyObject* wrap(const Generator& generator);

}  // namespace taeda::python
