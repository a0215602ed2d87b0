#include <taeda/csrc/python/casters.h>
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/torch_function.h>

namespace taeda::python {

thread_local OverrideState override_state;

namespace {
PyObject* disabled_impl = nullptr;
// The modes of this thread, innermost last; owned references.
thread_local std::vector<PyObject*> mode_stack;

bool is_common_type(PyTypeObject* t) {
  return t == &PyFloat_Type || t == &PyLong_Type || t == &PyBool_Type ||
         t == &PyTuple_Type || t == &PyList_Type || t == &PyUnicode_Type ||
         t == &PySlice_Type || t == Py_TYPE(Py_None) || t == &PyComplex_Type ||
         t == Py_TYPE(Py_Ellipsis) || t == &PyDict_Type;
}

// The arguments that override, subclasses before their bases, else in order.
class Overriders {
 public:
  void add(PyObject* o) {
    if (!takes_over(o)) return;
    auto* type = reinterpret_cast<PyObject*>(Py_TYPE(o));
    size_t at = objects_.size();
    for (size_t i = 0; i < objects_.size(); ++i) {
      auto* other = reinterpret_cast<PyObject*>(Py_TYPE(objects_[i]));
      if (type == other) return;
      if (at == objects_.size() && PyObject_IsSubclass(type, other) == 1) {
        at = i;
      }
    }
    objects_.insert(objects_.begin() + static_cast<int64_t>(at), o);
  }
  void add_with_items(PyObject* o) {
    add(o);
    if (!is_sequence(o)) return;
    for (PyObject* item : items_of(o)) add(item);
  }
  const std::vector<PyObject*>& objects() const { return objects_; }
  Ref types() const {
    return new_tuple(objects_.size(), [&](size_t i) {
      return Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects_[i])));
    });
  }

 private:
  std::vector<PyObject*> objects_;
};

// The innermost mode is set aside while it handles a call.
class ModeAside {
 public:
  ModeAside() : mode_(mode_stack.back()) {
    mode_stack.pop_back();
    --override_state.mode_depth;
  }
  ModeAside(const ModeAside&) = delete;
  ModeAside& operator=(const ModeAside&) = delete;
  ~ModeAside() {
    mode_stack.push_back(mode_);
    ++override_state.mode_depth;
  }
  PyObject* mode() const { return mode_; }

 private:
  PyObject* mode_;
};

Ref call_protocol(PyObject* owner,
                  PyObject* function,
                  PyObject* types,
                  PyObject* args,
                  PyObject* kwargs) {
  Ref method = attribute<"__torch_function__">(owner);
  return checked(PyObject_CallFunctionObjArgs(
      method.get(), function, types, args, kwargs, nullptr));
}

PyObject* run_override(PyObject* function,
                       const Overriders& overriders,
                       PyObject* args,
                       PyObject* kwargs) {
  Ref types = overriders.types();
  if (modes_active()) {
    ModeAside aside;
    Ref out = call_protocol(aside.mode(), function, types.get(), args, kwargs);
    if (out.get() != Py_NotImplemented) return out.release();
  }
  for (PyObject* o : overriders.objects()) {
    Ref out = call_protocol(o, function, types.get(), args, kwargs);
    if (out.get() != Py_NotImplemented) return out.release();
  }
  py::object name =
      py::getattr(function, "__qualname__", py::repr(py::handle(function)));
  py::list list = py::reinterpret_borrow<py::tuple>(types.get());
  raise(PyExc_TypeError,
        "no implementation found for '{}.{}' on types that implement "
        "__torch_function__: {}",
        library_name(),
        std::string(py::str(name)),
        repr_of(list.ptr()));
}

Ref pack(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  size_t offset = self != nullptr ? 1 : 0;
  return new_tuple(static_cast<size_t>(count) + offset, [&](size_t i) {
    return Py_NewRef(i < offset ? self : args[i - offset]);
  });
}

Ref pack_keywords(PyObject* const* values, PyObject* names) {
  Ref dict = checked(PyDict_New());
  Py_ssize_t n = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t i = 0; i < n; ++i) {
    check_status(
        PyDict_SetItem(dict.get(), PyTuple_GET_ITEM(names, i), values[i]));
  }
  return dict;
}

Ref tensor_attribute(const char* name) {
  return attribute(reinterpret_cast<PyObject*>(tensor_class), name);
}

Ref function_object(const Call& call) {
  const Function& f = *call.function;
  if (call.self != nullptr) return tensor_attribute(f.name);
  std::string space = std::string("_") + f.module;
  if (f.module[0] == '\0') space = "_VariableFunctions";
  return attribute(imported("taeda._C", space.c_str()).get(), f.name);
}

// Gives a call to whoever among its arguments overrides `function`.
PyObject* hand_over(const Ref& function, const Call& call) {
  Overriders overriders;
  if (call.self != nullptr) overriders.add(call.self);
  for (Py_ssize_t i = 0; i < call.count + call.keywords(); ++i) {
    overriders.add_with_items(call.args[i]);
  }
  Ref args = pack(call.self, call.args, call.count);
  Ref kwargs = pack_keywords(call.args + call.count, call.names);
  return run_override(function.get(), overriders, args.get(), kwargs.get());
}

// While a call skips its own override (`redispatch`): the state to return to
// once the called function asks who overrides it.
thread_local OverrideState* skipping = nullptr;
// Whether this is the question that is skipped; answers "nobody" then.
bool skipped() {
  if (TAEDA_LIKELY(!skipping)) return false;
  OverrideState& before = *std::exchange(skipping, nullptr);
  override_state.subclasses_enabled = before.subclasses_enabled;
  override_state.modes_enabled = before.modes_enabled;
  return true;
}

PyObject* has_one(PyObject*, PyObject* o) {
  return boolean(!skipped() && overrides(o));
}
PyObject* has_any(PyObject*, PyObject* const* args, Py_ssize_t n) {
  if (skipped()) return boolean(false);
  bool found = modes_active();
  for (Py_ssize_t i = 0; i < n && !found; ++i) found = overrides(args[i]);
  return boolean(found);
}
PyObject* has_in(PyObject*, PyObject* items) {
  Ref list(PySequence_Fast(items, "expected a sequence"));
  if (!list) return nullptr;
  return has_any(nullptr,
                 PySequence_Fast_ITEMS(list.get()),
                 PySequence_Fast_GET_SIZE(list.get()));
}
// What these three are asked before each call of a function written in Python.
PyMethodDef queries[] = {
    {"_has_torch_function_unary",
     has_one,
     METH_O,
     "Whether a value overrides functions by __torch_function__."},
    {"_has_torch_function_variadic",
     (PyCFunction)(void (*)(void))has_any,
     METH_FASTCALL,
     "Whether one of the arguments overrides functions."},
    {"_has_torch_function",
     has_in,
     METH_O,
     "Whether one of a sequence's values overrides functions."},
    {nullptr, nullptr, 0, nullptr},
};

py::object disabled(const py::object& function,
                    const py::object&,
                    const py::object& args,
                    const py::object& kwargs) {
  struct Restore {
    bool before = std::exchange(override_state.subclasses_enabled, false);
    ~Restore() { override_state.subclasses_enabled = before; }
  } restore;
  py::tuple packed(args);
  PyObject* keywords = kwargs.is_none() ? nullptr : kwargs.ptr();
  return owned(PyObject_Call(function.ptr(), packed.ptr(), keywords));
}

// Calls `function` as if nothing overrode it. A function of the library's own
// calls nothing that could be overridden; one written in Python first asks who
// overrides it, and from then on everything may be again.
py::object redispatch(const py::object& function,
                      const py::object&,
                      const py::object& args,
                      const py::object& kwargs) {
  OverrideState before = override_state;
  OverrideState* outer = std::exchange(skipping, &before);
  struct Restore {
    OverrideState& before;
    OverrideState* outer;
    ~Restore() {
      override_state.subclasses_enabled = before.subclasses_enabled;
      override_state.modes_enabled = before.modes_enabled;
      skipping = outer;
    }
  } restore{before, outer};
  override_state.subclasses_enabled = override_state.modes_enabled = false;
  py::tuple packed(args);
  PyObject* keywords = kwargs.is_none() ? nullptr : kwargs.ptr();
  return owned(PyObject_Call(function.ptr(), packed.ptr(), keywords));
}

// Returns the state before, for the context managers.
py::tuple set_function_enabled(bool subclasses, bool modes) {
  OverrideState before = override_state;
  override_state.subclasses_enabled = subclasses;
  override_state.modes_enabled = modes;
  return py::make_tuple(static_cast<int>(before.subclasses_enabled),
                        static_cast<int>(before.modes_enabled));
}

py::object pop_mode() {
  TAEDA_CHECK(!mode_stack.empty(), "the stack of modes is empty");
  Ref mode(mode_stack.back());
  mode_stack.pop_back();
  --override_state.mode_depth;
  return owned(mode);
}

py::object mode_at(size_t i) {
  TAEDA_CHECK_AS(
      Index, i < mode_stack.size(), "no mode at that place of the stack");
  return py::reinterpret_borrow<py::object>(mode_stack[i]);
}

// (public_api, relevant_args, *args, **kwargs)
py::object handle(const py::object& function,
                  const py::object& relevant,
                  const py::args& args,
                  const py::kwargs& kwargs) {
  Overriders overriders;
  py::tuple items(relevant);
  for (PyObject* o : items_of(items.ptr())) overriders.add(o);
  return owned(
      run_override(function.ptr(), overriders, args.ptr(), kwargs.ptr()));
}
}  // namespace

bool has_override(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (!override_state.subclasses_enabled || is_common_type(type)) return false;
  // _PyType_Lookup would not see a metaclass's attribute, as is right for a
  // special method; it neither allocates nor sets an error.
  PyObject* found = _PyType_Lookup(type, interned<"__torch_function__">());
  return found != nullptr && found != disabled_impl;
}

PyObject* call_overridden(const Call& call) {
  return hand_over(function_object(call), call);
}

PyObject* override_method(PyObject* self,
                          const char* name,
                          PyObject* const* args,
                          Py_ssize_t count,
                          PyObject* names) {
  return guarded([&] {
    return hand_over(tensor_attribute(name),
                     {nullptr, self, args, count, names});
  });
}

PyObject* override_function(const char* name, const Call& call) {
  return hand_over(imported("taeda._C", name), call);
}

PyObject* override_getter(PyObject* self, const char* name) {
  return guarded([&] {
    return hand_over(attribute(tensor_attribute(name).get(), "__get__"),
                     {nullptr, self, nullptr, 0, nullptr});
  });
}

int override_setter(PyObject* self, const char* name, PyObject* value) {
  return guarded_status([&] {
    bool set = value != nullptr;
    Ref setter =
        attribute(tensor_attribute(name).get(), set ? "__set__" : "__delete__");
    checked(hand_over(setter, {nullptr, self, &value, set, nullptr}));
  });
}

void init_torch_function(PyObject* module) {
  check_status(PyModule_AddFunctions(module, queries));
  py::module_ m = as_module(module);
  m.def("_disabled_torch_function_impl",
        disabled,
        "Assigned as __torch_function__, it makes a subclass override nothing.",
        py::arg("func"),
        py::arg("types"),
        py::arg("args") = py::tuple(),
        py::arg("kwargs") = py::none());
  disabled_impl = attribute(module, "_disabled_torch_function_impl").release();
  m.def("_set_torch_function_enabled", set_function_enabled);
}

void bind_torch_function(PyObject* module) {
  py::module_ m = as_module(module);
  m.def("_handle_torch_function", handle);
  m.def("_skip_one_hop_torch_function", redispatch);
  m.def("_is_torch_function_enabled",
        [] { return override_state.subclasses_enabled; });
  m.def("_is_torch_function_all_disabled", [] {
    return !override_state.subclasses_enabled && !override_state.modes_enabled;
  });
  m.def("_push_on_torch_function_stack", [](py::handle mode) {
    mode_stack.push_back(Py_NewRef(mode.ptr()));
    ++override_state.mode_depth;
  });
  m.def("_pop_torch_function_stack", pop_mode);
  m.def("_get_function_stack_at", mode_at);
  // A function for the extension modules that share no code with this one.
  bool (*has_modes)() = [] { return modes_active(); };
  m.attr("_has_function_modes") = py::capsule(
      reinterpret_cast<void*>(has_modes), "taeda.has_function_modes");
  m.def("_len_torch_function_stack", [] { return mode_stack.size(); });
}

}  // namespace taeda::python
