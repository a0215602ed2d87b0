// Parts of the module taeda._cuda.
#pragma once

#include <taeda/c10/core/gpu.h>
#include <taeda/csrc/python/casters.h>

namespace taeda::python {

using Release = py::call_guard<py::gil_scoped_release>;

inline py::tuple row(const GpuCount& c) {
  return py::make_tuple(c.current, c.peak, c.taken, c.freed);
}

void bind_memory(py::module_& m);
void bind_pools(py::module_& m);
void bind_graphs(py::module_& m);
void bind_sharing(py::module_& m);
void bind_streams(py::module_& m);
void bind_program_device(py::module_& m);

}  // namespace taeda::python
