// The extension module taeda._capture, loaded when something is compiled.
#include <taeda/csrc/compiler/capture/driver.h>

namespace taeda::capture {
namespace {

struct Object {
  PyObject_HEAD vectorcallfunc call;
  PyObject* dict;
  Compiled* compiled;
};

Compiled& compiled_of(PyObject* o) {
  return *reinterpret_cast<Object*>(o)->compiled;
}

PyObject* call_object(PyObject* self,
                      PyObject* const* args,
                      size_t count,
                      PyObject* names) {
  // What runs inside may drop the last reference.
  Ref kept = Ref::borrow(self);
  try {
    return compiled_of(self)
        .call(args, PyVectorcall_NARGS(count), names)
        .release();
  } catch (const PythonError&) {
    return nullptr;
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
    return nullptr;
  }
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  delete reinterpret_cast<Object*>(self)->compiled;
  Py_CLEAR(reinterpret_cast<Object*>(self)->dict);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* get(PyObject* self, PyObject* owner, PyObject*) {
  if (owner == nullptr || owner == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, owner);
}

}  // namespace

PyObject* compiled_function(PyObject* o) {
  if (Py_TYPE(o)->tp_dealloc != destroy) return nullptr;
  return compiled_of(o).function.get();
}

namespace {

Ref text(const std::string& s) { return python::new_text(s); }

PyObject* explain(PyObject* self, PyObject*) {
  Compiled& c = compiled_of(self);
  Ref parts = checked(PyList_New(0));
  for (auto& [key, cache] : c.caches) {
    for (auto& entry : cache) {
      Ref one = checked(Py_BuildValue("{s:n,s:n,s:O,s:s}",
                                      "calls",
                                      entry->graph.call_count(),
                                      "guards",
                                      entry->guards.size(),
                                      "plain",
                                      entry->plain ? Py_True : Py_False,
                                      "reason",
                                      entry->reason.c_str()));
      PyList_Append(parts.get(), one.get());
    }
  }
  Ref reasons = python::new_list(
      c.reasons.size(), [&](size_t i) { return text(c.reasons[i]).release(); });
  return Py_BuildValue("{s:L,s:O,s:O}",
                       "graphs",
                       c.graphs,
                       "parts",
                       parts.get(),
                       "reasons",
                       reasons.get());
}

// Seconds that one walk over the guards of the first part takes.
PyObject* time_guards(PyObject* self, PyObject* args) {
  PyObject* given;
  long long repeats;
  if (!PyArg_ParseTuple(args, "OL", &given, &repeats)) return nullptr;
  Compiled& c = compiled_of(self);
  auto* f = reinterpret_cast<PyFunctionObject*>(c.function.get());
  CodeInfo* info = code_info(reinterpret_cast<PyCodeObject*>(f->func_code));
  Frame frame(info, c.function, f->func_globals, f->func_builtins);
  frame.own_slots();
  auto items = python::items_of(given);
  Entry* entry = nullptr;
  auto at = c.caches.find({{info, 0}});
  if (at != c.caches.end() && !at->second.empty()) {
    entry = at->second.front().get();
  }
  if (entry == nullptr ||
      !bind(nullptr, frame, items.begin(), items.size(), nullptr)) {
    PyErr_SetString(PyExc_ValueError, "time_guards: nothing is captured");
    return nullptr;
  }
  std::vector<FrameState> state{{frame.slots}};
  bool holds = true;
  _PyTime_t begin = _PyTime_GetPerfCounter();
  for (long long i = 0; i < repeats; ++i) holds &= entry->guards.hold(state);
  _PyTime_t end = _PyTime_GetPerfCounter();
  if (!holds) {
    PyErr_SetString(PyExc_ValueError, "time_guards: guards do not hold");
    return nullptr;
  }
  return PyFloat_FromDouble(static_cast<double>(end - begin) * 1e-9 /
                            static_cast<double>(repeats));
}

PyMethodDef methods[] = {
    {"explain", explain, METH_NOARGS, "What has been captured, as a dict."},
    {"time_guards",
     time_guards,
     METH_VARARGS,
     "Seconds that a check of the guards takes, for a tuple of arguments."},
    {nullptr, nullptr, 0, nullptr}};

PyMemberDef members[] = {
    {"__vectorcalloffset__",
     T_PYSSIZET,
     offsetof(Object, call),
     READONLY,
     nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(Object, dict), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr}};

PyGetSetDef getset[] = {{"__dict__",
                         PyObject_GenericGetDict,
                         PyObject_GenericSetDict,
                         nullptr,
                         nullptr},
                        {nullptr, nullptr, nullptr, nullptr, nullptr}};

PyTypeObject* compiled_type = nullptr;

PyObject* compile(PyObject*, PyObject* args) {
  PyObject *function, *backend, *marker, *unsupported;
  int fullgraph;
  if (!PyArg_ParseTuple(args,
                        "OOOpO",
                        &function,
                        &backend,
                        &marker,
                        &fullgraph,
                        &unsupported)) {
    return nullptr;
  }
  if (!PyFunction_Check(function)) {
    PyErr_SetString(PyExc_TypeError, "compile: expected a Python function");
    return nullptr;
  }
  PyObject* self = compiled_type->tp_alloc(compiled_type, 0);
  if (self == nullptr) return nullptr;
  auto* object = reinterpret_cast<Object*>(self);
  object->call = call_object;
  object->compiled = new Compiled();
  object->compiled->function = Ref::borrow(function);
  if (backend != Py_None) object->compiled->backend = Ref::borrow(backend);
  object->compiled->marker = Ref::borrow(marker);
  object->compiled->unsupported = Ref::borrow(unsupported);
  object->compiled->fullgraph = fullgraph != 0;
  return self;
}

PyObject* setup(PyObject*, PyObject* table) {
  try {
    Library lib;
    auto take = [&](const char* name) {
      PyObject* found = PyDict_GetItemString(table, name);
      if (found == nullptr) {
        PyErr_Format(PyExc_KeyError, "setup: %s is missing", name);
        throw PythonError();
      }
      return Ref::borrow(found);
    };
    lib.tensor_base = take("tensor_base");
    lib.tensor = take("tensor");
    lib.parameter = take("parameter");
    lib.module_getattr = take("module_getattr");
    lib.empty_strided = take("twin");
    lib.meta = take("meta");
    lib.grad_setter = take("grad_setter");
    lib.break_error = take("break_error");
    lib.device_type = take("device_type");
    lib.dtype_type = take("dtype_type");
    lib.push_mode = take("push_mode");
    lib.pop_mode = take("pop_mode");
    lib.getitem = take("getitem");
    lib.factories = take("factories");
    lib.readers = take("readers");
    lib.enum_type = take("enum_type");
    lib.cpu_tensor = take("cpu_tensor");
    lib.unbind = take("unbind");
    lib.mode_types = take("mode_types");
    lib.mode_setter = take("mode_setter");
    lib.unsafe = take("unsafe").release();
    lib.unsafe_modules = take("unsafe_modules").release();
    lib.recorder = make_recorder();
    set_library(std::move(lib));
  } catch (const PythonError&) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"setup", setup, METH_O, "Takes what capture needs of the package."},
    {"set_modes",
     set_modes_for_python,
     METH_VARARGS,
     "set_modes(grad, inference, forward): what the thread records."},
    {"compile",
     compile,
     METH_VARARGS,
     "compile(function, backend, marker, fullgraph, error): a function that is "
     "captured when it is called."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "taeda._capture",
                          "Graph capture from bytecode.",
                          -1,
                          functions};

PyTypeObject* make_type() {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(get)},
      {Py_tp_methods, methods},
      {Py_tp_members, members},
      {Py_tp_getset, getset},
      {0, nullptr}};
  PyType_Spec spec = {"taeda._capture.Compiled",
                      sizeof(Object),
                      0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL,
                      slots};
  return reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
}

}  // namespace

}  // namespace taeda::capture

PyMODINIT_FUNC PyInit__capture() {
  using namespace taeda::capture;
  compiled_type = make_type();
  if (compiled_type == nullptr) return nullptr;
  return PyModule_Create(&definition);
}
