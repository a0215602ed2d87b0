// taeda.Generator objects.
#pragma once

#include <taeda/c10/core/generator.h>
#include <taeda/csrc/python/common.h>

namespace taeda::python {

extern PyTypeObject* generator_type;
inline bool is_generator(PyObject* o) {
  return PyObject_TypeCheck(o, generator_type);
}
Generator to_generator(PyObject* o);
PyObject* wrap(const Generator& generator);
void init_generator(PyObject* module);

}  // namespace taeda::python
