// The extension module taeda._distributed, loaded when taeda.distributed is.
#include <taeda/csrc/distributed/bindings/bindings.h>

namespace taeda::distributed {

namespace {

// Classes of Python, which live as long as the process.
struct Classes {
  PyObject* any;
  PyObject* store;
  PyObject* queue_empty;
  PyObject* network;
  PyObject* backend;

  PyObject* of(Fault fault) const {
    switch (fault) {
      case Fault::Store:
        return store;
      case Fault::QueueEmpty:
        return queue_empty;
      case Fault::Network:
        return network;
      case Fault::Backend:
        return backend;
      case Fault::Any:
        break;
    }
    return any;
  }
};
Classes classes;  // set once, when the module is made

PyObject* add_class(py::module_& m,
                    const char* name,
                    PyObject* base,
                    const char* doc) {
  const std::string full = str_cat("taeda.distributed.", name);
  PyObject* made = PyErr_NewExceptionWithDoc(full.c_str(), doc, base, nullptr);
  if (made == nullptr) throw py::error_already_set();
  m.add_object(name, made);
  return made;
}

void translate(std::exception_ptr error) {
  try {
    std::rethrow_exception(error);
  } catch (const DistError& e) {
    PyErr_SetString(classes.of(e.fault()), e.what());
  } catch (const Error&) {
    bridge().translate();
  }
}

}  // namespace

const python::Bridge& bridge() {
  static const auto* const found = [] {
    auto* bridge = static_cast<const python::Bridge*>(
        PyCapsule_Import(python::Bridge::kName, /*no_block=*/0));
    if (bridge == nullptr) throw py::error_already_set();
    return bridge;
  }();
  return *found;
}

py::object exception_object(std::exception_ptr error) {
  if (!error) return py::none();
  try {
    translate(error);
  } catch (const py::error_already_set& e) {
    return e.value();
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  }
  py::error_already_set raised;
  return raised.value();
}

void bind_errors(py::module_& m) {
  classes.any = add_class(
      m, "DistError", PyExc_RuntimeError, "An error of taeda.distributed.");
  classes.store = add_class(m,
                            "DistStoreError",
                            classes.any,
                            "A store refused, or did not answer in time.");
  classes.queue_empty = add_class(m,
                                  "QueueEmptyError",
                                  classes.store,
                                  "A store's queue had nothing to give.");
  classes.network = add_class(m,
                              "DistNetworkError",
                              classes.any,
                              "A connection could not be made, or was lost.");
  classes.backend = add_class(
      m,
      "DistBackendError",
      classes.any,
      "A collective failed: a rank is lost, late, or called another.");
  py::register_local_exception_translator(&translate);
}

}  // namespace taeda::distributed

PYBIND11_MODULE(_distributed, m) {
  using namespace taeda::distributed;
  m.doc() =
      "Stores and process groups; `taeda.distributed` is their interface.";
  bind_errors(m);
  bind_stores(m);
  bind_groups(m);
  bind_reducer(m);
  bind_mpi(m);
  bind_flight_record(m);
  bind_heartbeat(m);
}
