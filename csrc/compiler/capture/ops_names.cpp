// Instructions that read and write variables and attributes.
#include <taeda/csrc/compiler/capture/evaluate.h>

#include <opcode.h>

namespace taeda::capture {

PyObject* Machine::slot(int i) const {
  PyObject*& held = f.slots[i];
  if (static_cast<size_t>(i) < f.untouched.size() && f.untouched[i]) {
    f.untouched[i] = false;
    if (held != nullptr) {
      int place =
          capture->entry.guards.fetch(Do::Slot, f.number, f.name_of_slot(i), i);
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
  if (m.capture) m.capture->name_variable(m.f.peek(1), local_name(m, i));
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
  if (argument & 1) {
    push_callable(m.f, std::move(value));
  } else {
    m.f.push(value.release());
  }
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

// Of `object`, in place of the `used` topmost values.
Flow replace_by_attribute(
    Machine& m, PyObject* object, int name, int used, bool to_call) {
  Ref value = load_attribute(m, object, m.name(name));
  for (int i = 0; i < used; ++i) m.f.pop();
  if (to_call) {
    push_method(m.f, std::move(value));
  } else {
    m.f.push(value.release());
  }
  return Flow::Next;
}
Flow load_attr(Machine& m, int argument) {
  // From 3.12 on the lowest bit says that the attribute is to be called.
  int name = kPython312 ? argument >> 1 : argument;
  bool to_call = kPython312 && (argument & 1);
  return replace_by_attribute(m, m.f.peek(1), name, 1, to_call);
}

Flow store_attr(Machine& m, int i) {
  PyObject* name = m.name(i);
  Capture* c = m.capture;
  if (!c || !c->write_attribute(m.f.peek(1), name, m.f.peek(2))) {
    python::check_status(PyObject_SetAttr(m.f.peek(1), name, m.f.peek(2)));
  }
  m.f.pop();
  m.f.pop();
  return Flow::Next;
}
Flow delete_attr(Machine& m, int i) {
  PyObject* name = m.name(i);
  if (m.capture) m.capture->write_attribute(m.f.peek(1), name, nullptr);
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
    m.capture->name_variable(m.f.peek(1), local_name(m, i));
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
    PyObject* cell = PyTuple_GET_ITEM(closure, i);
    Ref old(m.f.slots[from + i]);
    m.f.slots[from + i] = Py_NewRef(cell);
    // What a call began with is found there again.
    if (old.get() != cell) forget(m, from + i);
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

// Takes those parts of the function off the stack that the flags name.
void set_parts(Machine& m, PyObject* function, int flags) {
  using Setter = int (*)(PyObject*, PyObject*);
  const std::pair<int, Setter> parts[] = {{8, PyFunction_SetClosure},
                                          {4, set_annotations},
                                          {2, PyFunction_SetKwDefaults},
                                          {1, PyFunction_SetDefaults}};
  for (auto [flag, set] : parts) {
    if (!(flags & flag)) continue;
    Ref part = m.f.pop();
    python::check_status(set(function, part.get()));
  }
}

Flow make_function(Machine& m, int flags) {
  Ref code = m.f.pop();
  Ref function = checked(PyFunction_New(code.get(), m.f.globals));
  // In 3.13 they are set by instructions that follow.
  set_parts(m, function.get(), kPython313 ? 0 : flags);
  if (m.capture != nullptr) {
    m.capture->own_functions.insert(function.get());
    m.capture->kept.push_back(function);
  }
  m.f.push(function.release());
  return Flow::Next;
}

#if PY_VERSION_HEX >= 0x030C0000
// For the variables of a comprehension, which is run in its function's frame.
Flow load_fast_and_clear(Machine& m, int i) {
  PyObject* value = m.slot(i);
  forget(m, i);
  m.f.slots[i] = nullptr;
  m.f.push(value);
  return Flow::Next;
}
// `super().name`, or with bit 1 `super(type, self).name`.
Flow load_super_attr(Machine& m, int argument) {
  PyObject* super = m.f.peek(3);
  PyObject* args[] = {m.f.peek(2), m.f.peek(1)};
  bool known = super == reinterpret_cast<PyObject*>(&PySuper_Type);
  if (!known && m.capture != nullptr) break_graph("`super` is replaced");
  size_t count = known || (argument & 2) ? 2 : 0;
  Ref made = checked(PyObject_Vectorcall(super, args, count, nullptr));
  return replace_by_attribute(
      m, made.get(), argument >> 2, 3, (argument & 1) != 0);
}
#endif
#if PY_VERSION_HEX >= 0x030D0000
Flow load_two(Machine& m, int argument) {
  load_fast(m, argument >> 4);
  return load_fast(m, argument & 15);
}
Flow store_and_load(Machine& m, int argument) {
  store_fast(m, argument >> 4);
  return load_fast(m, argument & 15);
}
Flow store_two(Machine& m, int argument) {
  store_fast(m, argument >> 4);
  return store_fast(m, argument & 15);
}
Flow set_function_attribute(Machine& m, int flag) {
  Ref function = m.f.pop();
  set_parts(m, function.get(), flag);
  m.f.push(function.release());
  return Flow::Next;
}
#endif

void add_names_of_version(Operation** t) {
#if PY_VERSION_HEX >= 0x030C0000
  t[LOAD_FAST_CHECK] = load_fast;
  t[LOAD_FAST_AND_CLEAR] = load_fast_and_clear;
  t[LOAD_SUPER_ATTR] = load_super_attr;
#else
  t[LOAD_METHOD] = [](Machine& m, int name) {
    return replace_by_attribute(m, m.f.peek(1), name, 1, true);
  };
#endif
#if PY_VERSION_HEX >= 0x030D0000
  t[LOAD_FAST_LOAD_FAST] = load_two;
  t[STORE_FAST_LOAD_FAST] = store_and_load;
  t[STORE_FAST_STORE_FAST] = store_two;
  t[SET_FUNCTION_ATTRIBUTE] = set_function_attribute;
#else
  t[LOAD_CLOSURE] = load_fast;
#endif
}

}  // namespace

void add_name_operations(Operation** t) {
  add_names_of_version(t);
  t[LOAD_CONST] = load_const;
  t[LOAD_FAST] = load_fast;
  t[STORE_FAST] = store_fast;
  t[DELETE_FAST] = delete_fast;
  t[LOAD_GLOBAL] = load_global;
  t[STORE_GLOBAL] = store_global;
  t[LOAD_ATTR] = load_attr;
  t[STORE_ATTR] = store_attr;
  t[DELETE_ATTR] = delete_attr;
  t[MAKE_CELL] = make_cell;
  t[LOAD_DEREF] = load_deref;
  t[STORE_DEREF] = store_deref;
  t[COPY_FREE_VARS] = copy_free_vars;
  t[IMPORT_NAME] = import_name;
  t[IMPORT_FROM] = import_from;
  t[MAKE_FUNCTION] = make_function;
}

}  // namespace taeda::capture
