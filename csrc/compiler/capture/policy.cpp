#include <taeda/csrc/compiler/capture/policy.h>

namespace taeda::capture {

thread_local bool strict = false;

Policy& policy() {
  static Policy known;
  return known;
}

void tell(const char* event, PyObject* function, PyObject* data) {
  Ref held(data);
  if (!held) throw PythonError();
  checked(PyObject_CallFunction(
      library().observer.get(), "sOO", event, function, data));
}

CompileLock::CompileLock() {
  checked(PyObject_CallMethod(library().lock.get(), "acquire", nullptr));
}

CompileLock::~CompileLock() {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  Ref done(PyObject_CallMethod(library().lock.get(), "release", nullptr));
  if (!done) PyErr_Clear();
  PyErr_Restore(type, value, trace);
}

bool is_strict(const Capture& c) {
  for (size_t i = c.frames.size(); i-- > 0;) {
    Frame& f = *c.frames[i];
    for (int n = 1; n <= f.depth; ++n) {
      PyObject* held = f.peek(n);
      if (held == nullptr || !PyMethod_Check(held)) continue;
      PyObject* self = PyMethod_GET_SELF(held);
      auto* type = reinterpret_cast<PyObject*>(Py_TYPE(self));
      if (type != library().strict_type.get()) continue;
      auto shadow = c.shadows.find(self);
      if (shadow != c.shadows.end()) self = shadow->second->outer.get();
      Ref value = python::attribute(self, "error");
      return value.get() == Py_True;
    }
  }
  return strict;
}

namespace {

bool is_in(PyObject* set, PyObject* item) {
  int found = PySet_Contains(set, item);
  if (found < 0) PyErr_Clear();
  return found == 1;
}

// Objects whose hash is their identity's.
bool may_have_mark(PyObject* callable) {
  return PyFunction_Check(callable) || PyCFunction_Check(callable) ||
         PyType_Check(callable) || Py_TYPE(callable) == &PyMethodDescr_Type;
}

Ref dict_of(PyObject* const* args, size_t count, PyObject* names) {
  Ref out = checked(PyDict_New());
  for (Py_ssize_t i = 0; names != nullptr && i < PyTuple_GET_SIZE(names); ++i) {
    python::check_status(
        PyDict_SetItem(out.get(), PyTuple_GET_ITEM(names, i), args[count + i]));
  }
  return out;
}

std::string shown(PyObject* o) {
  Ref text = checked(PyObject_Str(o));
  const char* s = PyUnicode_AsUTF8(text.get());
  return s == nullptr ? "?" : s;
}

[[noreturn]] void break_at_disabled(PyFunctionObject* f) {
  std::string reason = "call of " + shown(f->func_qualname) +
                       ", which compiler.disable keeps out of graphs";
  PyObject* said =
      f->func_dict == nullptr
          ? nullptr
          : PyDict_GetItemString(f->func_dict, "_torchdynamo_disable_msg");
  if (said != nullptr && said != Py_None) reason += ": " + shown(said);
  break_graph(reason);
}

// Evaluated once, when it is met: what it returns is a constant of the graph.
Ref call_constant(Capture& c,
                  PyObject* callable,
                  PyObject* const* args,
                  size_t count,
                  PyObject* names) {
  size_t all = count + (names == nullptr ? 0 : PyTuple_GET_SIZE(names));
  for (size_t i = 0; i < all; ++i) {
    if (!is_shared(args[i])) {
      break_graph(
          "a function whose result is assumed constant has an "
          "argument that is not");
    }
  }
  ++c.suspended;
  Ref value(PyObject_Vectorcall(callable, args, count, names));
  --c.suspended;
  if (!value) throw PythonError();
  c.kept.push_back(value);
  return c.realize(value.get(), c.constant(value.get()));
}

}  // namespace

PyObject* substitute_of(PyObject* callable) {
  PyObject* table = library().substitutes.get();
  if (PyDict_GET_SIZE(table) == 0 || !may_have_mark(callable)) return nullptr;
  return PyDict_GetItem(table, callable);
}

Ref call_marked(Capture& c,
                PyObject* callable,
                PyObject* const* args,
                size_t count,
                PyObject* names) {
  const Library& lib = library();
  if (!may_have_mark(callable)) return {};
  if (PyFunction_Check(callable)) {
    auto* f = reinterpret_cast<PyFunctionObject*>(callable);
    if (f->func_code == lib.disabled_code.get()) break_at_disabled(f);
    if (f->func_dict != nullptr &&
        PyDict_GetItemString(f->func_dict, "_dynamo_forbidden")) {
      c.refused = true;
      PyErr_Format(PyExc_AssertionError,
                   "compile: Attempt to trace forbidden callable %R",
                   callable);
      throw PythonError();
    }
    if (f->func_dict != nullptr &&
        PyDict_GetItemString(f->func_dict, "_dynamo_marked_constant")) {
      return call_constant(c, callable, args, count, names);
    }
  }
  if (PySet_GET_SIZE(lib.allowed.get()) == 0 ||
      !is_in(lib.allowed.get(), callable)) {
    return {};
  }
  Ref given =
      python::new_tuple(count, [&](size_t i) { return Py_NewRef(args[i]); });
  Ref named = dict_of(args, count, names);
  return Ref(c.record(callable, given.get(), named.get()));
}

PyObject* configure(PyObject*, PyObject* args) {
  const char* name;
  long long value;
  if (!PyArg_ParseTuple(args, "sL", &name, &value)) return nullptr;
  std::string text = name;
  if (text == "stance") {
    policy().stance = value;
  } else if (text == "recompile_limit") {
    policy().recompile_limit = value;
  } else if (text == "spell_graphs") {
    policy().spell_graphs = value;
  } else if (text == "generation") {
    policy().generation += value;
  } else {
    PyErr_Format(PyExc_KeyError, "configure: no setting %s", name);
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* set_guard_hook(PyObject*, PyObject* hook) {
  bool before = policy().guard_hook != nullptr;
  Py_XSETREF(policy().guard_hook, hook == Py_None ? nullptr : Py_NewRef(hook));
  return PyBool_FromLong(before);
}

PyObject* set_strict(PyObject*, PyObject* value) {
  bool before = strict;
  int truth = PyObject_IsTrue(value);
  if (truth < 0) return nullptr;
  strict = truth == 1;
  return PyBool_FromLong(before);
}

PyObject* is_capturing(PyObject*, PyObject*) {
  return PyBool_FromLong(active != nullptr);
}

}  // namespace taeda::capture
