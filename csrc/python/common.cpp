#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>

namespace taeda::python {

namespace {
PyObject* out_of_memory_error = nullptr;
PyObject* linalg_error = nullptr;
std::string library = "taeda";  // under the interpreter's lock

PyObject* exception_type(ErrorKind kind) {
  switch (kind) {
#define _(kind, type)   \
  case ErrorKind::kind: \
    return type;
    _(Value, PyExc_ValueError)
    _(Index, PyExc_IndexError)
    _(Type, PyExc_TypeError)
    _(NotImplemented, PyExc_NotImplementedError)
    _(OutOfMemory, out_of_memory_error)
    _(LinAlg, linalg_error)
    _(Overflow, PyExc_OverflowError)
    _(Assertion, PyExc_AssertionError)
#undef _
    default:
      return PyExc_RuntimeError;
  }
}
// The exception of PyTorch's name, from where programs catch it.
void raise_data_dependent(const char* what) {
  guarded_status([&] {
    Ref type = imported("taeda.fx.experimental.symbolic_shapes",
                        "GuardOnDataDependentSymNode");
    raise(type.get(), "{}", what);
  });
}
}  // namespace

// py::error_already_set carries Python's error, to be put back; pybind11 itself
// translates the errors that have a type of their own there.
void translate_exception() noexcept {
  try {
    throw;
  } catch (py::error_already_set& e) {
    e.restore();
  } catch (const py::builtin_exception& e) {
    e.set_error();
  } catch (const PythonError&) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_SystemError, "an error without a message");
    }
  } catch (const DataDependentError& e) {
    raise_data_dependent(e.what());
  } catch (const Error& e) {
    PyErr_SetString(exception_type(e.kind()), e.what());
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, "out of memory");
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
  } catch (...) {
    PyErr_SetString(PyExc_RuntimeError, "unknown C++ exception");
  }
}

void init_errors(PyObject* module) {
  out_of_memory_error = PyErr_NewExceptionWithDoc(
      "taeda.OutOfMemoryError",
      "Raised when a device has no memory left for a tensor.",
      PyExc_RuntimeError,
      nullptr);
  linalg_error = PyErr_NewExceptionWithDoc(
      "taeda._C._LinAlgError",
      "Raised when a matrix does not allow the operation (singular, say).",
      PyExc_RuntimeError,
      nullptr);
  add_object(module, "OutOfMemoryError", out_of_memory_error);
  add_object(module, "_LinAlgError", linalg_error);
  py::detail::ensure_internals();
  py::register_local_exception_translator([](std::exception_ptr error) {
    try {
      std::rethrow_exception(error);
    } catch (...) {
      translate_exception();
    }
  });
}

const char* library_name() { return library.c_str(); }
void set_library_name(std::string name) { library = std::move(name); }

void add_object(PyObject* module, const char* name, PyObject* borrowed) {
  check_status(PyModule_AddObjectRef(module, name, borrowed));
}

PyTypeObject* add_type(PyObject* module,
                       const char* name,
                       size_t size,
                       std::vector<PyType_Slot> slots,
                       unsigned flags,
                       PyTypeObject* base) {
  slots.push_back({0, nullptr});
  flags |= Py_TPFLAGS_DEFAULT;
  PyType_Spec spec = {name, static_cast<int>(size), 0, flags, slots.data()};
  Ref type = checked(
      PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(base)));
  if (module != nullptr)
    add_object(module, std::strrchr(name, '.') + 1, type.get());
  return reinterpret_cast<PyTypeObject*>(type.release());
}

void add_members(PyTypeObject* type,
                 PyMethodDef* methods,
                 PyGetSetDef* getset) {
  auto add = [&](const char* name, PyObject* descriptor) {
    Ref owned = checked(descriptor);
    check_status(PyDict_SetItemString(type->tp_dict, name, owned.get()));
  };
  for (PyMethodDef* d = methods; d->ml_name != nullptr; ++d) {
    add(d->ml_name, PyDescr_NewMethod(type, d));
  }
  for (PyGetSetDef* d = getset; d->name != nullptr; ++d) {
    add(d->name, PyDescr_NewGetSet(type, d));
  }
  PyType_Modified(type);
}

}  // namespace taeda::python
