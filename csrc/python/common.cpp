#include <taeda/csrc/python/common.h>

namespace taeda::python {

namespace {
PyObject* out_of_memory_error = nullptr;
PyObject* linalg_error = nullptr;
std::string& library() {
  static std::string name = "taeda";
  return name;
}

PyObject* exception_type(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::Value:
      return PyExc_ValueError;
    case ErrorKind::Index:
      return PyExc_IndexError;
    case ErrorKind::Type:
      return PyExc_TypeError;
    case ErrorKind::NotImplemented:
      return PyExc_NotImplementedError;
    case ErrorKind::OutOfMemory:
      return out_of_memory_error;
    case ErrorKind::LinAlg:
      return linalg_error;
    case ErrorKind::Overflow:
      return PyExc_OverflowError;
    case ErrorKind::Assertion:
      return PyExc_AssertionError;
    default:
      return PyExc_RuntimeError;
  }
}
}  // namespace

void translate_exception() noexcept {
  try {
    throw;
  } catch (const PythonError&) {
    if (PyErr_Occurred() == nullptr) {
      PyErr_SetString(PyExc_SystemError, "an error without a message");
    }
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
}

void raise(PyObject* type, const std::string& message) {
  PyErr_SetString(type, message.c_str());
  throw PythonError();
}

std::string_view utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) throw PythonError();
  return {data, static_cast<size_t>(size)};
}

const char* library_name() { return library().c_str(); }
void set_library_name(std::string name) { library() = std::move(name); }

void add_object(PyObject* module, const char* name, PyObject* borrowed) {
  check_status(PyModule_AddObjectRef(module, name, borrowed));
}

PyTypeObject* add_type(PyObject* module, PyType_Spec& spec) {
  Ref type = checked(PyType_FromSpec(&spec));
  std::string_view name = spec.name;
  name.remove_prefix(name.rfind('.') + 1);
  add_object(module, std::string(name).c_str(), type.get());
  return reinterpret_cast<PyTypeObject*>(type.release());
}

}  // namespace taeda::python
