// A level whose calls a function in Python sees, composites as a whole.
#pragma once

#include <taeda/csrc/python/casters.h>

namespace taeda::python {

// Adds the class RecordLevel to the module of levels.
void add_record_level(py::module_ m);

}  // namespace taeda::python
