// Named tuples of operators with several named results.
#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

struct StructType {
  const char* name;    // the operator
  const char* fields;  // names, each ended by a NUL, then one more
  PyTypeObject* type;  // made when first needed
};

PyTypeObject* struct_type(StructType& type);
// Takes over a sequence of the fields; a new reference to the named tuple.
PyObject* wrap_struct(StructType& type, PyObject* sequence);

}  // namespace taeda::python
