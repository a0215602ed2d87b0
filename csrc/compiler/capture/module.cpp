// The extension module taeda._capture, loaded when something is compiled.
#include <taeda/csrc/compiler/capture/driver.h>
#include <taeda/csrc/compiler/capture/pieces.h>
#include <taeda/csrc/compiler/capture/policy.h>

#include <algorithm>
#include <chrono>

namespace taeda::capture {
namespace {

struct Object {
  PyObject_HEAD vectorcallfunc call;
  PyObject* dict;
  PyObject* function;
  std::shared_ptr<Compiled>* compiled;
};

Compiled& compiled_of(PyObject* o) {
  return **reinterpret_cast<Object*>(o)->compiled;
}

PyObject* call_object(PyObject* self,
                      PyObject* const* args,
                      size_t count,
                      PyObject* names) {
  // What runs inside may drop the last reference.
  Ref kept = Ref::borrow(self);
  try {
    return compiled_of(self)
        .call(compiled_function(self), args, PyVectorcall_NARGS(count), names)
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
  Py_CLEAR(reinterpret_cast<Object*>(self)->function);
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
  return reinterpret_cast<Object*>(o)->function;
}

namespace {

PyObject* explain(PyObject* self, PyObject*) {
  Compiled& c = compiled_of(self);
  Ref parts = checked(PyList_New(0));
  Ref guards = checked(PyList_New(0));
  for (auto& [key, cache] : c.caches) {
    for (auto& entry : cache) {
      std::vector<std::string> sizes = entry->guards.conditions();
      Ref conditions = python::new_list(sizes.size(), [&](size_t i) {
        return python::new_text(sizes[i]).release();
      });
      Ref one = checked(Py_BuildValue("{s:n,s:n,s:O,s:O,s:s}",
                                      "calls",
                                      entry->graph.call_count(),
                                      "guards",
                                      entry->guards.size(),
                                      "sizes",
                                      conditions.get(),
                                      "plain",
                                      entry->plain ? Py_True : Py_False,
                                      "reason",
                                      entry->reason.c_str()));
      python::check_status(PyList_Append(parts.get(), one.get()));
      for (const std::string& each : entry->guards.texts()) {
        python::check_status(
            PyList_Append(guards.get(), python::new_text(each).get()));
      }
    }
  }
  Ref reasons = python::new_list(c.reasons.size(), [&](size_t i) {
    const Compiled::Break& b = c.reasons[i];
    return Py_BuildValue("(sO)", b.reason.c_str(), b.stack.get());
  });
  return Py_BuildValue("{s:L,s:O,s:O,s:O}",
                       "graphs",
                       static_cast<long long>(c.graphs),
                       "guards",
                       guards.get(),
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
  Ref function = Ref::borrow(compiled_function(self));
  auto* f = reinterpret_cast<PyFunctionObject*>(function.get());
  CodeInfo* info = code_info(reinterpret_cast<PyCodeObject*>(f->func_code));
  Frame frame(info, function, f->func_globals, f->func_builtins);
  auto items = python::items_of(given);
  Entry* entry = nullptr;
  auto at = c.caches.find({{info, 0}});
  if (at != c.caches.end() && !at->second.empty()) {
    entry = at->second.front().get();
  }
  if (entry == nullptr ||
      !begin_call(
          function.get(), frame, items.begin(), items.size(), nullptr)) {
    PyErr_SetString(PyExc_ValueError, "time_guards: nothing is captured");
    return nullptr;
  }
  std::vector<FrameState> state{{frame.slots}};
  bool holds = true;
  using Clock = std::chrono::steady_clock;
  Clock::time_point begin = Clock::now();
  for (long long i = 0; i < repeats; ++i) holds &= entry->guards.hold(state);
  std::chrono::duration<double> spent = Clock::now() - begin;
  if (!holds) {
    PyErr_SetString(PyExc_ValueError, "time_guards: guards do not hold");
    return nullptr;
  }
  return PyFloat_FromDouble(spent.count() / static_cast<double>(repeats));
}

PyObject* set_dynamic(PyObject* self, PyObject* value) {
  compiled_of(self).dynamic = Ref::borrow(value);
  Py_RETURN_NONE;
}

PyObject* set_takes_passes(PyObject* self, PyObject* value) {
  compiled_of(self).takes_passes = value == Py_True;
  Py_RETURN_NONE;
}

PyObject* set_guard_filter(PyObject* self, PyObject* filter) {
  compiled_of(self).filter = Ref::borrow(filter);
  Py_RETURN_NONE;
}

PyObject* set_recompile_limit(PyObject* self, PyObject* value) {
  const long long limit = PyLong_AsLongLong(value);
  if (limit == -1 && PyErr_Occurred()) return nullptr;
  compiled_of(self).recompile_limit = limit;
  Py_RETURN_NONE;
}

constexpr const char* kShared = "taeda._capture.shared";

void destroy_shared(PyObject* capsule) {
  delete static_cast<std::shared_ptr<Compiled>*>(
      PyCapsule_GetPointer(capsule, kShared));
}

// Whether another function may capture what it needs besides.
PyObject* has_room(PyObject*, PyObject* capsule) {
  auto* held = static_cast<std::shared_ptr<Compiled>*>(
      PyCapsule_GetPointer(capsule, kShared));
  if (held == nullptr) return nullptr;
  const Compiled& c = **held;
  int64_t most =
      c.recompile_limit < 0 ? policy().recompile_limit : c.recompile_limit;
  bool full = std::any_of(c.caches.begin(), c.caches.end(), [&](auto& each) {
    return static_cast<int64_t>(each.second.size()) >= most;
  });
  return PyBool_FromLong(!full);
}

// For others of the same code: see compile().
PyObject* shared(PyObject* self, PyObject*) {
  auto* copy =
      new std::shared_ptr<Compiled>(*reinterpret_cast<Object*>(self)->compiled);
  return PyCapsule_New(copy, kShared, destroy_shared);
}

PyMethodDef methods[] = {
    {"shared",
     shared,
     METH_NOARGS,
     "What has been captured, for compile() of a function of the same code."},
    {"set_recompile_limit",
     set_recompile_limit,
     METH_O,
     "How often one place is captured; below 0 what configure() was told."},
    {"set_takes_passes",
     set_takes_passes,
     METH_O,
     "Whether the backend takes graphs with calls of `backward`."},
    {"set_guard_filter",
     set_guard_filter,
     METH_O,
     "Takes a function of guard entries that says which guards stay."},
    {"set_dynamic",
     set_dynamic,
     METH_O,
     "Whether sizes are symbols: True, False, or None for those that differ."},
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
  PyObject *function, *backend, *marker, *same_code = Py_None;
  int fullgraph;
  if (!PyArg_ParseTuple(args,
                        "OOOp|O",
                        &function,
                        &backend,
                        &marker,
                        &fullgraph,
                        &same_code)) {
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
  object->function = Py_NewRef(function);
  if (same_code != Py_None) {
    object->compiled =
        new std::shared_ptr<Compiled>(*static_cast<std::shared_ptr<Compiled>*>(
            PyCapsule_GetPointer(same_code, kShared)));
    return self;
  }
  auto made = std::make_shared<Compiled>();
  if (backend != Py_None) made->backend = Ref::borrow(backend);
  made->marker = Ref::borrow(marker);
  made->fullgraph = fullgraph != 0;
  made->dynamic = Ref::borrow(Py_None);
  object->compiled = new std::shared_ptr<Compiled>(std::move(made));
  return self;
}

// Of frames that are evaluated here the interpreter knows nothing.
std::string (*outer_location)() = nullptr;
std::string location() {
  if (active == nullptr || active->frames.empty()) {
    return outer_location == nullptr ? std::string() : outer_location();
  }
  const Frame& f = *active->frames.back();
  const char* file = PyUnicode_AsUTF8(f.info->object()->co_filename);
  return std::string(file) + ":" + std::to_string(f.line());
}
// After the bindings of symbols, which set it first.
void install_location() {
  outer_location = std::exchange(ShapeEnv::location, location);
}

Ref item_of(PyObject* table, const char* name) {
  PyObject* found = PyDict_GetItemString(table, name);
  if (found == nullptr) {
    PyErr_Format(PyExc_KeyError, "setup: %s is missing", name);
    throw PythonError();
  }
  return Ref::borrow(found);
}

// What stands for numbers.
void take_numbers(Library& lib, PyObject* table) {
  auto take = [&](const char* name) { return item_of(table, name); };
  lib.sym_int = take("sym_int");
  lib.sym_bool = take("sym_bool");
  lib.sym_float = take("sym_float");
  lib.float_input = take("float_input");
  lib.shared_symbol = take("shared_symbol");
  lib.constraint_error = take("constraint_error");
  lib.data_error = take("data_error");
  lib.dynamic_settings = take("dynamic_settings");
  lib.symbolic_functions = take("symbolic_functions");
  lib.size_marker = take("size_marker");
  lib.apply_marker = take("apply_marker");
  lib.as_number = take("as_number");
}

PyObject* setup(PyObject*, PyObject* table) {
  try {
    install_location();
    Library lib;
    auto take = [&](const char* name) { return item_of(table, name); };
    lib.tensor_base = take("tensor_base");
    lib.tensor = take("tensor");
    lib.parameter = take("parameter");
    lib.module_getattr = take("module_getattr");
    lib.empty_strided = take("twin");
    lib.meta = take("meta");
    lib.grad_setter = take("grad_setter");
    lib.break_error = take("break_error");
    lib.compiler_error = take("compiler_error");
    lib.device_type = take("device_type");
    lib.dtype_type = take("dtype_type");
    lib.push_mode = take("push_mode");
    lib.pop_mode = take("pop_mode");
    lib.last_mode = take("last_mode");
    lib.mode_count = take("mode_count");
    lib.mode_at = take("mode_at");
    lib.getitem = take("getitem");
    lib.factories = take("factories");
    lib.default_device = take("default_device");
    lib.has_modes = reinterpret_cast<bool (*)()>(PyCapsule_GetPointer(
        take("has_modes").get(), "taeda.has_function_modes"));
    lib.readers = take("readers");
    lib.counted = take("counted");
    lib.numbered = take("numbered");
    lib.holds = take("holds");
    lib.list_handler = take("list_handler");
    lib.random_class = take("random_class");
    lib.draw_handler = take("draw_handler");
    lib.enum_type = take("enum_type");
    lib.cpu_tensor = take("cpu_tensor");
    lib.unbind = take("unbind");
    lib.mode_types = take("mode_types");
    lib.mode_setter = take("mode_setter");
    lib.autocast_setter = take("autocast_setter");
    lib.default_dtype = take("default_dtype");
    lib.default_dtype_setter = take("default_dtype_setter");
    lib.module = take("module");
    take_numbers(lib, table);
    lib.unsafe = take("unsafe").release();
    lib.unsafe_modules = take("unsafe_modules").release();
    lib.handlers = take("handlers");
    lib.builtins = take("builtins");
    lib.array_handler = take("array_handler");
    lib.numpy_handler = take("numpy_handler");
    lib.make_instance = take("make_instance");
    lib.whole_handler = take("whole_handler");
    lib.assertion = take("assertion");
    lib.function_setter = take("function_setter");
    lib.apply_handler = take("apply_handler");
    lib.operator_handler = take("operator_handler");
    lib.function_base = take("function_base");
    lib.make_closure = take("make_closure");
    lib.make_handle = take("make_handle");
    lib.passing_code = take("passing_code");
    lib.level_types = take("level_types");
    lib.operator_types = take("operator_types");
    lib.node_marker = take("node_marker");
    lib.observer = take("observer");
    lib.lock = take("lock");
    lib.allowed = take("allowed");
    lib.substitutes = take("substitutes");
    lib.disabled_code = take("disabled_code");
    lib.strict_type = take("strict_type");
    lib.recorder = make_recorder();
    set_library(std::move(lib));
  } catch (const PythonError&) {
    return nullptr;
  }
  Py_RETURN_NONE;
}

PyObject* fixed_number(PyObject*, PyObject* inner) {
  if (active == nullptr) {
    PyErr_SetString(PyExc_RuntimeError, "a number of an ended capture is read");
    return nullptr;
  }
  try {
    return active->fixed_number(inner).release();
  } catch (const PythonError&) {
    return nullptr;
  }
}

PyMethodDef functions[] = {
    {"fixed_number",
     fixed_number,
     METH_O,
     "The value of a float that stands for an outside one, guarded."},
    {"setup", setup, METH_O, "Takes what capture needs of the package."},
    {"set_modes",
     set_modes_for_python,
     METH_VARARGS,
     "set_modes(grad, inference, forward): what the thread records."},
    {"set_autocast",
     set_autocast_for_python,
     METH_VARARGS,
     "set_autocast(enabled, cache_enabled, nesting, dtypes): as in a graph."},
    {"compile",
     compile,
     METH_VARARGS,
     "compile(function, backend, marker, fullgraph, shared=None): a function "
     "that is captured when it is called, unless `shared` has what fits."},
    {"has_room",
     has_room,
     METH_O,
     "Whether what is shared is below its recompile limit everywhere."},
    {"configure",
     configure,
     METH_VARARGS,
     "configure(name, value): stance, recompile_limit; adds to generation."},
    {"set_guard_hook",
     set_guard_hook,
     METH_O,
     "Takes what asks all ranks whether they have a graph that fits, or None; "
     "returns whether there was one."},
    {"set_strict",
     set_strict,
     METH_O,
     "Whether graph breaks of this thread are errors; returns what was."},
    {"is_capturing",
     is_capturing,
     METH_NOARGS,
     "Whether this thread captures a graph."},
    {nullptr, nullptr, 0, nullptr}};

PyModuleDef definition = {PyModuleDef_HEAD_INIT,
                          "taeda._capture",
                          "Graph capture from bytecode.",
                          -1,
                          functions,
                          nullptr,
                          nullptr,
                          nullptr,
                          nullptr};

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
  PyTypeObject* piece = make_piece_type();
  if (piece == nullptr) return nullptr;
  PyObject* module = PyModule_Create(&definition);
  if (module == nullptr) return nullptr;
  if (PyModule_AddFunctions(module, piece_functions) < 0 ||
      PyModule_AddType(module, piece) < 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}
