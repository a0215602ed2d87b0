// taeda.Size: a tuple of ints that is a tensor's shape.
#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

extern PyTypeObject* size_type;
PyObject* new_size(IntArrayRef sizes);
// A plain tuple of ints (strides).
PyObject* new_int_tuple(IntArrayRef values);
void init_size(PyObject* module);

}  // namespace taeda::python
