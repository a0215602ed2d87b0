#include <taeda/csrc/compiler/capture/class_stamp.h>

#include <taeda/csrc/compiler/capture/capture.h>

#include <cstring>
#include <unordered_map>

namespace taeda::capture {
namespace {

const char* text_of(PyObject* name) {
  bool is_text = name != nullptr && PyUnicode_Check(name);
  return is_text ? PyUnicode_AsUTF8(name) : nullptr;
}
bool is_own_class(PyTypeObject* type) {
  const char* module =
      text_of(PyDict_GetItemString(type->tp_dict, "__module__"));
  return module != nullptr && is_own_module(module);
}
// What a program put on a class of the library's is its own too.
bool is_of_program(PyTypeObject* base, PyObject* value) {
  if (!is_own_class(base)) return true;
  if (!PyFunction_Check(value)) return false;
  PyObject* space = reinterpret_cast<PyFunctionObject*>(value)->func_globals;
  const char* module = text_of(PyDict_GetItemString(space, "__name__"));
  return module != nullptr && !is_own_module(module);
}

// What C code or a lookup may call: descriptors, and callables with the names
// that are Python's own.
bool counts(PyObject* name, PyObject* value) {
  if (Py_TYPE(value)->tp_descr_get != nullptr) return true;
  const char* text = text_of(name);
  if (text == nullptr || strncmp(text, "__", 2) != 0) return false;
  // `__hash__ = None`
  bool is_none = value == Py_None && strcmp(text, "__doc__") != 0;
  return is_none || PyCallable_Check(value) != 0;
}

// Those that Python code may change, with the names that count.
template <class F>
void each_member(PyObject* order, F use) {
  for (PyObject* each : python::items_of(order)) {
    auto* base = reinterpret_cast<PyTypeObject*>(each);
    if (!(base->tp_flags & Py_TPFLAGS_HEAPTYPE)) continue;
    PyObject *name, *value;
    Py_ssize_t at = 0;
    while (PyDict_Next(base->tp_dict, &at, &name, &value)) {
      if (counts(name, value)) use(base, name, value);
    }
  }
}

}  // namespace

ClassStamp::ClassStamp(PyTypeObject* type)
    : type_(Ref::borrow(reinterpret_cast<PyObject*>(type))),
      order_(Ref::borrow(type->tp_mro)) {
  each_member(
      type->tp_mro, [&](PyTypeObject* base, PyObject* name, PyObject* value) {
        members_.push_back({base, Ref::borrow(name), Ref::borrow(value)});
        programs_ += is_of_program(base, value);
      });
  note_version();
}

// The number is given to a class when something is looked up on it.
void ClassStamp::note_version() {
  _PyType_Lookup(type(), python::interned<"__init__">());
  version_ = type()->tp_version_tag;
}

bool ClassStamp::compare() {
  PyObject* order = type()->tp_mro;
  if (order != order_.get()) return false;
  for (const Member& m : members_) {
    PyObject* now = PyDict_GetItemWithError(m.base->tp_dict, m.name.get());
    if (now == m.value.get()) continue;
    bool own = now != nullptr && !is_of_program(m.base, now) &&
               !is_of_program(m.base, m.value.get());
    if (!own) return false;
  }
  size_t programs = 0;
  each_member(order, [&](PyTypeObject* base, PyObject*, PyObject* value) {
    programs += is_of_program(base, value);
  });
  if (programs != programs_) return false;
  note_version();
  return true;
}

std::shared_ptr<ClassStamp> ClassStamp::of(PyTypeObject* type) {
  // Guarded by the GIL. A stamp that lives keeps its class alive.
  static std::unordered_map<PyTypeObject*, std::weak_ptr<ClassStamp>> all;
  std::weak_ptr<ClassStamp>& known = all[type];
  std::shared_ptr<ClassStamp> stamp = known.lock();
  if (!stamp || !stamp->holds()) {
    stamp = std::make_shared<ClassStamp>(type);
    known = stamp;
  }
  return stamp;
}

}  // namespace taeda::capture
