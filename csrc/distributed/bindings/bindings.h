// The parts of the extension module taeda._distributed.
#pragma once

#include <taeda/csrc/distributed/error.h>
#include <taeda/csrc/extension/bridge.h>

#include <pybind11/chrono.h>
#include <pybind11/functional.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

namespace taeda::distributed {

namespace py = pybind11;

const python::Bridge& bridge();
// The Python exception of an error that a work has kept.
py::object exception_object(std::exception_ptr error);

// The line of the first frame outside of this package, "train.py:12".
std::string calling_line();

void bind_errors(py::module_& m);
void bind_stores(py::module_& m);
void bind_groups(py::module_& m);
void bind_reducer(py::module_& m);
void bind_mpi(py::module_& m);
void bind_flight_record(py::module_& m);
void bind_heartbeat(py::module_& m);

using Released = py::call_guard<py::gil_scoped_release>;

}  // namespace taeda::distributed
