// What every file of the bindings starts from: owning references and the
// passage of errors between C++ and Python.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <taeda/aten/core/tensor_base.h>
#include <taeda/c10/util/format.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace taeda::python {

// An owning reference. The GIL must be held wherever one is changed.
class Ref {
 public:
  Ref() = default;
  // Takes over a new reference, as calls of the C API return them.
  explicit Ref(PyObject* owned) : object_(owned) {}
  static Ref borrow(PyObject* borrowed) {
    Py_XINCREF(borrowed);
    return Ref(borrowed);
  }
  Ref(const Ref& o) : object_(o.object_) { Py_XINCREF(object_); }
  Ref(Ref&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
  Ref& operator=(Ref o) noexcept {
    std::swap(object_, o.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }

  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Thrown when Python's error indicator is already set.
struct PythonError {};

// Sets Python's error from the C++ exception in flight.
void translate_exception() noexcept;

// A new reference, or PythonError when it is null.
inline Ref checked(PyObject* owned) {
  if (owned == nullptr) throw PythonError();
  return Ref(owned);
}
inline void check_status(int status) {
  if (status < 0) throw PythonError();
}
[[noreturn]] inline void raise_text(PyObject* type, const std::string& text) {
  PyErr_SetString(type, text.c_str());
  throw PythonError();
}
// raise(PyExc_TypeError, "expected a dtype, got {}", type_name_of(o));
template <class... Values>
[[noreturn]] void raise(PyObject* type,
                        MessageText<std::type_identity_t<Values>...> text,
                        const Values&... values) {
  raise_text(type, message(text, values...));
}
inline const char* type_name_of(PyObject* o) { return Py_TYPE(o)->tp_name; }

// Runs f, whose result is a new reference; exceptions become Python errors.
template <class F>
PyObject* guarded(F&& f) {
  try {
    return f();
  } catch (...) {
    translate_exception();
    return nullptr;
  }
}
// The same for slots that return a status.
template <class F>
int guarded_status(F&& f) {
  try {
    f();
    return 0;
  } catch (...) {
    translate_exception();
    return -1;
  }
}

// UTF-8 of a str; valid as long as the object.
inline std::string_view utf8(PyObject* text) {
  Py_ssize_t size = 0;
  const char* data = PyUnicode_AsUTF8AndSize(text, &size);
  if (data == nullptr) throw PythonError();
  return {data, static_cast<size_t>(size)};
}
inline Ref new_text(std::string_view s) {
  return checked(
      PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size())));
}
inline std::string repr_of(PyObject* o) {
  return std::string(utf8(checked(PyObject_Repr(o)).get()));
}
// "taeda", or "torch" for a program that runs under as_torch.
const char* library_name();
void set_library_name(std::string name);

inline PyObject* none() { return Py_NewRef(Py_None); }
inline PyObject* boolean(bool v) { return PyBool_FromLong(v); }
void add_object(PyObject* module, const char* name, PyObject* borrowed);
template <class F>
PyType_Slot slot(int id, F* function) {
  return {id, reinterpret_cast<void*>(function)};
}
inline PyType_Slot doc_slot(const char* text) {
  return {Py_tp_doc, const_cast<char*>(text)};
}
// A heap type of these slots; under its short name in the module if there is
// one.
PyTypeObject* add_type(PyObject* module,
                       const char* name,
                       size_t size,
                       std::vector<PyType_Slot> slots,
                       unsigned flags = 0,
                       PyTypeObject* base = nullptr);
// A member that says where in its objects a type keeps its dict or weakrefs.
constexpr PyMemberDef offset_member(const char* name, size_t offset) {
  return {name, T_PYSSIZET, static_cast<Py_ssize_t>(offset), READONLY, nullptr};
}
// Methods and attributes of a type that is made already.
void add_members(PyTypeObject* type, PyMethodDef* methods, PyGetSetDef* getset);

// A tuple, or a list, of the new references that make(0), make(1), ... return.
template <class F>
Ref new_tuple(size_t count, F&& make) {
  Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = checked(make(i)).release();
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
  }
  return out;
}
template <class F>
Ref new_list(size_t count, F&& make) {
  Ref out = checked(PyList_New(static_cast<Py_ssize_t>(count)));
  for (size_t i = 0; i < count; ++i) {
    PyObject* item = checked(make(i)).release();
    PyList_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i), item);
  }
  return out;
}
// The items of a tuple or list, borrowed.
inline ArrayRef<PyObject*> items_of(PyObject* o) {
  return {PySequence_Fast_ITEMS(o), static_cast<size_t>(Py_SIZE(o))};
}
inline bool is_sequence(PyObject* o) {
  return PyTuple_Check(o) || PyList_Check(o);
}
inline Ref attribute(PyObject* o, const char* name) {
  return checked(PyObject_GetAttrString(o, name));
}
template <size_t N>
struct FixedName {
  char text[N];
  constexpr FixedName(const char (&s)[N]) { std::copy_n(s, N, text); }
};
// Names that are looked up often are made into Python's text once.
template <FixedName Name>
PyObject* interned() {
  static PyObject* const text = PyUnicode_InternFromString(Name.text);
  return text;
}
template <FixedName Name>
Ref attribute(PyObject* o) {
  return checked(PyObject_GetAttr(o, interned<Name>()));
}
// What a module that is imported now has by that name.
inline Ref imported(const char* module, const char* name) {
  return attribute(checked(PyImport_ImportModule(module)).get(), name);
}

// Python calls made without the GIL's caller: takes it for a scope.
class GilAcquire {
 public:
  GilAcquire() : state_(PyGILState_Ensure()) {}
  GilAcquire(const GilAcquire&) = delete;
  GilAcquire& operator=(const GilAcquire&) = delete;
  ~GilAcquire() { PyGILState_Release(state_); }

 private:
  PyGILState_STATE state_;
};

// Gives up the GIL when `release` holds, until acquire() or the scope's end.
class GilRelease {
 public:
  explicit GilRelease(bool release)
      : state_(release ? PyEval_SaveThread() : nullptr) {}
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;
  ~GilRelease() { acquire(); }
  void acquire() {
    if (state_ != nullptr) PyEval_RestoreThread(std::exchange(state_, nullptr));
  }

 private:
  PyThreadState* state_;
};

}  // namespace taeda::python
