// Instructions that read and write variables and attributes.
#include <taeda/csrc/compiler/capture/evaluate.h>

#include <opcode.h>

namespace taeda::capture {

PyObject* Machine::slot(int i) const {
  PyObject*& held = f.slots[i];
  if (static_cast<size_t>(i) < f.untouched.size() && f.untouched[i]) {
    f.untouched[i] = false;
    if (held != nullptr) {
      int place = capture->entry.guards.fetch(Do::Slot, f.number, nullptr, i);
      Ref outer(held);
      held = nullptr;
      capture->kept.push_back(outer);
      if (PyCell_Check(outer.get())) {
        // A cell that an earlier part of the function made.
        PyObject* type = reinterpret_cast<PyObject*>(&PyCell_Type);
        capture->entry.guards.check(Do::CheckType, place, type);
        capture->places_of_constants[outer.get()] = place;
        held = outer.release();
      } else {
        held = capture->realize(outer.get(), place).release();
      }
    }
  }
  return held;
}

Ref load_attribute(Machine& m, PyObject* object, PyObject* name) {
  if (m.capture == nullptr) return checked(PyObject_GetAttr(object, name));
  return m.capture->attribute(object, name);
}

namespace {

PyObject* local_name(Machine& m, int i) {
  return PyTuple_GET_ITEM(m.f.info->object()->co_localsplusnames, i);
}

Flow unbound(Machine& m, int i) {
  PyErr_Format(PyExc_UnboundLocalError,
               "cannot access local variable '%U' where it is not associated "
               "with a value",
               local_name(m, i));
  return Flow::Failed;
}

Flow load_const(Machine& m, int i) {
  m.f.push(Py_NewRef(PyTuple_GET_ITEM(m.f.info->object()->co_consts, i)));
  return Flow::Next;
}
Flow load_fast(Machine& m, int i) {
  PyObject* value = m.slot(i);
  if (value == nullptr) return unbound(m, i);
  m.f.push(Py_NewRef(value));
  return Flow::Next;
}
void forget(Machine& m, int i) {
  if (static_cast<size_t>(i) < m.f.untouched.size()) m.f.untouched[i] = false;
}
Flow store_fast(Machine& m, int i) {
  forget(m, i);
  Ref old(m.f.slots[i]);
  m.f.slots[i] = m.f.pop().release();
  return Flow::Next;
}
Flow delete_fast(Machine& m, int i) {
  if (m.f.slots[i] == nullptr) return unbound(m, i);
  forget(m, i);
  Ref old(std::exchange(m.f.slots[i], nullptr));
  return Flow::Next;
}

Flow load_global(Machine& m, int argument) {
  PyObject* name = m.name(argument >> 1);
  Ref value;
  if (m.capture != nullptr) {
    value = m.capture->global(m.f, name);
  } else {
    PyObject* found = PyDict_GetItemWithError(m.f.globals, name);
    if (found == nullptr) found = PyDict_GetItemWithError(m.f.builtins, name);
    if (found == nullptr) {
      PyErr_Format(PyExc_NameError, "name '%U' is not defined", name);
      return Flow::Failed;
    }
    value = Ref::borrow(found);
  }
  if (argument & 1) m.f.push(nullptr);
  m.f.push(value.release());
  return Flow::Next;
}
Flow store_global(Machine& m, int i) {
  PyObject* name = m.name(i);
  if (m.capture == nullptr) {
    python::check_status(PyDict_SetItem(m.f.globals, name, m.f.peek(1)));
  } else {
    auto key = std::pair(m.f.globals, name);
    m.capture->globals[key] = Ref::borrow(m.f.peek(1));
    m.capture->stored_globals.insert(key);
  }
  m.f.pop();
  return Flow::Next;
}

Flow load_attr(Machine& m, int i) {
  Ref value = load_attribute(m, m.f.peek(1), m.name(i));
  m.f.pop();
  m.f.push(value.release());
  return Flow::Next;
}
Flow load_method(Machine& m, int i) {
  Ref value = load_attribute(m, m.f.peek(1), m.name(i));
  m.f.pop();
  if (Py_TYPE(value.get()) == &PyMethod_Type) {
    m.f.push(Py_NewRef(PyMethod_GET_FUNCTION(value.get())));
    m.f.push(Py_NewRef(PyMethod_GET_SELF(value.get())));
  } else {
    m.f.push(nullptr);
    m.f.push(value.release());
  }
  return Flow::Next;
}

// What a graph may write attributes of: stand-ins and what was made inside.
void check_target(Machine& m, PyObject* object, PyObject* name) {
  if (m.capture == nullptr) return;
  if (PyType_Check(object) || PyModule_Check(object) ||
      (PyFunction_Check(object) &&
       !m.capture->own_functions.contains(object))) {
    break_graph(std::string("an attribute of a ") + Py_TYPE(object)->tp_name +
                " is written: " + PyUnicode_AsUTF8(name));
  }
  // The attribute's earlier value decides whether there is an effect.
  if (Shadow* s = m.capture->shadow_of(object)) {
    if (is_mode(object)) break_graph("an attribute of a mode is written");
    m.capture->look(*s, name);
  }
}
Flow store_attr(Machine& m, int i) {
  PyObject* name = m.name(i);
  check_target(m, m.f.peek(1), name);
  python::check_status(PyObject_SetAttr(m.f.peek(1), name, m.f.peek(2)));
  m.f.pop();
  m.f.pop();
  return Flow::Next;
}
Flow delete_attr(Machine& m, int i) {
  PyObject* name = m.name(i);
  check_target(m, m.f.peek(1), name);
  python::check_status(PyObject_SetAttr(m.f.peek(1), name, nullptr));
  m.f.pop();
  return Flow::Next;
}

Flow make_cell(Machine& m, int i) {
  Ref cell = checked(PyCell_New(m.slot(i)));
  Ref old(m.f.slots[i]);
  if (m.capture != nullptr) {
    m.capture->own_cells.insert(cell.get());
    m.capture->kept.push_back(cell);
  }
  m.f.slots[i] = cell.release();
  return Flow::Next;
}
Flow load_closure(Machine& m, int i) {
  m.f.push(Py_NewRef(m.slot(i)));
  return Flow::Next;
}
Flow load_deref(Machine& m, int i) {
  PyObject* cell = m.slot(i);
  PyObject* value =
      m.capture ? m.capture->cell_content(cell) : PyCell_GET(cell);
  if (value == nullptr) {
    PyErr_Format(PyExc_NameError,
                 "cannot access free variable '%U' where it is not associated "
                 "with a value in enclosing scope",
                 local_name(m, i));
    return Flow::Failed;
  }
  m.f.push(Py_NewRef(value));
  return Flow::Next;
}
Flow store_deref(Machine& m, int i) {
  PyObject* cell = m.slot(i);
  if (m.capture != nullptr) {
    m.capture->store_cell(cell, m.f.peek(1));
  } else {
    PyCell_Set(cell, m.f.peek(1));
  }
  m.f.pop();
  return Flow::Next;
}
Flow copy_free_vars(Machine& m, int n) {
  PyObject* closure = PyFunction_GET_CLOSURE(m.f.function.get());
  int from = m.f.info->object()->co_nlocalsplus - n;
  for (int i = 0; i < n; ++i) {
    forget(m, from + i);
    m.f.slots[from + i] = Py_NewRef(PyTuple_GET_ITEM(closure, i));
  }
  return Flow::Next;
}

Flow import_name(Machine& m, int i) {
  if (m.capture != nullptr) ++m.capture->suspended;
  Ref module(PyImport_ImportModuleLevelObject(
      m.name(i),
      m.f.globals,
      Py_None,
      m.f.peek(1),
      static_cast<int>(PyLong_AsLong(m.f.peek(2)))));
  if (m.capture != nullptr) --m.capture->suspended;
  if (!module) return Flow::Failed;
  m.f.pop();
  m.f.pop();
  m.f.push(module.release());
  return Flow::Next;
}
Flow import_from(Machine& m, int i) {
  m.f.push(load_attribute(m, m.f.peek(1), m.name(i)).release());
  return Flow::Next;
}

// They come as a tuple of names and values; whoever asks for them makes a dict.
int set_annotations(PyObject* function, PyObject* pairs) {
  auto* f = reinterpret_cast<PyFunctionObject*>(function);
  Py_XSETREF(f->func_annotations, Py_NewRef(pairs));
  return 0;
}

Flow make_function(Machine& m, int flags) {
  Ref code = m.f.pop();
  Ref function = checked(PyFunction_New(code.get(), m.f.globals));
  using Setter = int (*)(PyObject*, PyObject*);
  const std::pair<int, Setter> parts[] = {{8, PyFunction_SetClosure},
                                          {4, set_annotations},
                                          {2, PyFunction_SetKwDefaults},
                                          {1, PyFunction_SetDefaults}};
  for (auto [flag, set] : parts) {
    if (!(flags & flag)) continue;
    Ref part = m.f.pop();
    python::check_status(set(function.get(), part.get()));
  }
  if (m.capture != nullptr) {
    m.capture->own_functions.insert(function.get());
    m.capture->kept.push_back(function);
  }
  m.f.push(function.release());
  return Flow::Next;
}

}  // namespace

void add_name_operations(Operation** t) {
  t[LOAD_CONST] = load_const;
  t[LOAD_FAST] = load_fast;
  t[STORE_FAST] = store_fast;
  t[DELETE_FAST] = delete_fast;
  t[LOAD_GLOBAL] = load_global;
  t[STORE_GLOBAL] = store_global;
  t[LOAD_ATTR] = load_attr;
  t[LOAD_METHOD] = load_method;
  t[STORE_ATTR] = store_attr;
  t[DELETE_ATTR] = delete_attr;
  t[MAKE_CELL] = make_cell;
  t[LOAD_CLOSURE] = load_closure;
  t[LOAD_DEREF] = load_deref;
  t[STORE_DEREF] = store_deref;
  t[COPY_FREE_VARS] = copy_free_vars;
  t[IMPORT_NAME] = import_name;
  t[IMPORT_FROM] = import_from;
  t[MAKE_FUNCTION] = make_function;
}

}  // namespace taeda::capture
