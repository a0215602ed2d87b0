// Singletons for dtypes, layouts and memory formats.
#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

struct PyDtype {
  PyObject_HEAD ScalarType type;
};
struct PyLayout {
  PyObject_HEAD Layout layout;
};
struct PyMemoryFormat {
  PyObject_HEAD MemoryFormat format;
};

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
inline Layout to_layout(PyObject* o) {
  return reinterpret_cast<PyLayout*>(o)->layout;
}
inline bool is_memory_format(PyObject* o) {
  return Py_TYPE(o) == memory_format_type;
}
inline MemoryFormat to_memory_format(PyObject* o) {
  return reinterpret_cast<PyMemoryFormat*>(o)->format;
}

void init_dtype(PyObject* module);
void init_enum_types(PyObject* module);

}  // namespace taeda::python
