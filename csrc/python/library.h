// Bindings of operator registration and boxed calls.
#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

void init_library(PyObject* module);

}  // namespace taeda::python
