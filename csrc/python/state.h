#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

// Grad mode, defaults, thread counts, allocator statistics.
void init_state(PyObject* module);
// The process-wide switches of aten/settings.h.
void init_settings(PyObject* module);
// finfo and iinfo.
void init_type_info(PyObject* module);

}  // namespace taeda::python
