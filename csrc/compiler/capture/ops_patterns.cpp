// Instructions of `match`.
#include <taeda/csrc/compiler/capture/evaluate.h>

#include <opcode.h>

namespace taeda::capture {
namespace {

void extend(PyObject* list, PyObject* items) {
  checked(call_method(list, "extend", items));
}

Flow get_len(Machine& m, int) {
  Py_ssize_t n = PyObject_Size(m.f.peek(1));
  if (n < 0) return Flow::Failed;
  m.f.push(PyLong_FromSsize_t(n));
  return Flow::Next;
}
template <unsigned long flag>
Flow match_kind(Machine& m, int) {
  bool is = (Py_TYPE(m.f.peek(1))->tp_flags & flag) != 0;
  m.f.push(PyBool_FromLong(is));
  return Flow::Next;
}
Flow match_keys(Machine& m, int) {
  PyObject* keys = m.f.peek(1);
  std::vector<Ref> found;
  for (PyObject* key : python::items_of(keys)) {
    Ref value(PyObject_GetItem(m.f.peek(2), key));
    if (!value) {
      if (!PyErr_ExceptionMatches(PyExc_KeyError)) return Flow::Failed;
      PyErr_Clear();
      m.f.push(python::none());
      return Flow::Next;
    }
    found.push_back(std::move(value));
  }
  m.f.push(python::new_tuple(found.size(), [&](size_t i) {
             return found[i].release();
           }).release());
  return Flow::Next;
}

// Names of the attributes that a class pattern reads; null for the subject.
Ref names_of_pattern(Machine& m, PyObject* type, int count, PyObject* named) {
  Ref out = checked(PyList_New(0));
  const char* name = reinterpret_cast<PyTypeObject*>(type)->tp_name;
  Ref given;
  if (count > 0) {
    try {
      given = load_attribute(m, type, python::interned<"__match_args__">());
    } catch (const PythonError&) {
      if (is_break() || !PyErr_ExceptionMatches(PyExc_AttributeError)) throw;
      PyErr_Clear();
      given = checked(PyTuple_New(0));
      auto flags = reinterpret_cast<PyTypeObject*>(type)->tp_flags;
      if (flags & _Py_TPFLAGS_MATCH_SELF) {
        given = checked(PyTuple_Pack(1, Py_None));
      }
    }
    if (!PyTuple_CheckExact(given.get())) {
      PyErr_Format(PyExc_TypeError,
                   "%s.__match_args__ must be a tuple (got %s)",
                   name,
                   Py_TYPE(given.get())->tp_name);
      throw PythonError();
    }
    auto allowed = static_cast<int>(PyTuple_GET_SIZE(given.get()));
    if (allowed < count) {
      PyErr_Format(PyExc_TypeError,
                   "%s() accepts %d positional sub-pattern%s (%d given)",
                   name,
                   allowed,
                   allowed == 1 ? "" : "s",
                   count);
      throw PythonError();
    }
    given = checked(PyTuple_GetSlice(given.get(), 0, count));
    extend(out.get(), given.get());
  }
  extend(out.get(), named);
  return out;
}

Ref match_attributes(Machine& m,
                     PyObject* subject,
                     PyObject* names,
                     const char* type) {
  Ref out = checked(PyList_New(0));
  Ref seen = checked(PySet_New(nullptr));
  for (PyObject* name : python::items_of(names)) {
    Ref value = Ref::borrow(subject);
    if (name != Py_None) {
      if (!PyUnicode_CheckExact(name)) {
        PyErr_Format(PyExc_TypeError,
                     "__match_args__ elements must be strings (got %s)",
                     Py_TYPE(name)->tp_name);
        throw PythonError();
      }
      if (PySet_Contains(seen.get(), name) == 1) {
        PyErr_Format(PyExc_TypeError,
                     "%s() got multiple sub-patterns for attribute %R",
                     type,
                     name);
        throw PythonError();
      }
      python::check_status(PySet_Add(seen.get(), name));
      try {
        value = load_attribute(m, subject, name);
      } catch (const PythonError&) {
        if (is_break() || !PyErr_ExceptionMatches(PyExc_AttributeError)) throw;
        PyErr_Clear();
        return Ref::borrow(Py_None);
      }
    }
    python::check_status(PyList_Append(out.get(), value.get()));
  }
  return checked(PyList_AsTuple(out.get()));
}

// Symbols are numbers to a class pattern too.
bool is_instance(PyObject* subject, PyObject* type) {
  auto* type_of_number = reinterpret_cast<PyObject*>(&PyType_Type);
  Ref number = symbolic_call(type_of_number, &subject, 1);
  int is = number ? PyObject_IsSubclass(number.get(), type) : 0;
  if (is == 0) is = PyObject_IsInstance(subject, type);
  python::check_status(is);
  return is == 1;
}

Flow match_class(Machine& m, int count) {
  PyObject* type = m.f.peek(2);
  if (!PyType_Check(type)) {
    PyErr_SetString(PyExc_TypeError, "called match pattern must be a type");
    return Flow::Failed;
  }
  Ref out = Ref::borrow(Py_None);
  if (is_instance(m.f.peek(3), type)) {
    Ref names = names_of_pattern(m, type, count, m.f.peek(1));
    const char* name = reinterpret_cast<PyTypeObject*>(type)->tp_name;
    out = match_attributes(m, m.f.peek(3), names.get(), name);
  }
  for (int i = 0; i < 3; ++i) m.f.pop();
  m.f.push(out.release());
  return Flow::Next;
}

}  // namespace

void add_pattern_operations(Operation** t) {
  t[GET_LEN] = get_len;
  t[MATCH_MAPPING] = match_kind<Py_TPFLAGS_MAPPING>;
  t[MATCH_SEQUENCE] = match_kind<Py_TPFLAGS_SEQUENCE>;
  t[MATCH_KEYS] = match_keys;
  t[MATCH_CLASS] = match_class;
}

}  // namespace taeda::capture
