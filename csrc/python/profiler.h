// The profiler's part of _C, bound with the rest (init.h).
#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

void bind_profiler(PyObject* module);

}  // namespace taeda::python
