#include <taeda/csrc/python/torch_function.h>

namespace taeda::python {

thread_local OverrideState override_state;

namespace {
PyObject* protocol_name = nullptr;  // "__torch_function__"
PyObject* disabled_impl = nullptr;
// The modes of this thread, innermost last; owned references.
thread_local std::vector<PyObject*> mode_stack;

bool is_common_type(PyTypeObject* t) {
  return t == &PyFloat_Type || t == &PyLong_Type || t == &PyBool_Type ||
         t == &PyTuple_Type || t == &PyList_Type || t == &PyUnicode_Type ||
         t == &PySlice_Type || t == Py_TYPE(Py_None) || t == &PyComplex_Type ||
         t == Py_TYPE(Py_Ellipsis) || t == &PyDict_Type;
}
}  // namespace

bool has_override(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  if (!override_state.subclasses_enabled || is_common_type(type)) return false;
  // _PyType_Lookup would not see a metaclass's attribute, as is right for a
  // special method; it neither allocates nor sets an error.
  PyObject* found = _PyType_Lookup(type, protocol_name);
  return found != nullptr && found != disabled_impl;
}

namespace {
// The arguments that override, subclasses before their bases, else in order.
class Overriders {
 public:
  void add(PyObject* o) {
    if (is_plain_tensor(o) || !has_override(o)) return;
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
    if (!PyTuple_Check(o) && !PyList_Check(o)) return;
    for (Py_ssize_t i = 0; i < Py_SIZE(o); ++i) {
      add(PySequence_Fast_ITEMS(o)[i]);
    }
  }
  const std::vector<PyObject*>& objects() const { return objects_; }
  Ref types() const {
    Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(objects_.size())));
    for (size_t i = 0; i < objects_.size(); ++i) {
      PyTuple_SET_ITEM(
          out.get(),
          static_cast<Py_ssize_t>(i),
          Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(objects_[i]))));
    }
    return out;
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
  Ref method = checked(PyObject_GetAttr(owner, protocol_name));
  return checked(PyObject_CallFunctionObjArgs(
      method.get(), function, types, args, kwargs, nullptr));
}

PyObject* run_override(PyObject* function,
                       const Overriders& overriders,
                       PyObject* args,
                       PyObject* kwargs) {
  Ref types = overriders.types();
  Ref no_keywords;
  if (kwargs == nullptr) {
    no_keywords = checked(PyDict_New());
    kwargs = no_keywords.get();
  }
  if (modes_active()) {
    ModeAside aside;
    Ref out = call_protocol(aside.mode(), function, types.get(), args, kwargs);
    if (out.get() != Py_NotImplemented) return out.release();
  }
  for (PyObject* o : overriders.objects()) {
    Ref out = call_protocol(o, function, types.get(), args, kwargs);
    if (out.get() != Py_NotImplemented) return out.release();
  }
  Ref name(PyObject_GetAttrString(function, "__qualname__"));
  if (!name) PyErr_Clear();
  Ref shown = name ? std::move(name) : checked(PyObject_Repr(function));
  Ref list = checked(PySequence_List(types.get()));
  PyErr_Format(PyExc_TypeError,
               "no implementation found for '%s.%S' on types that implement "
               "__torch_function__: %R",
               library_name(),
               shown.get(),
               list.get());
  throw PythonError();
}

Ref pack(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  Py_ssize_t offset = self != nullptr ? 1 : 0;
  Ref tuple = checked(PyTuple_New(count + offset));
  if (self != nullptr) PyTuple_SET_ITEM(tuple.get(), 0, Py_NewRef(self));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyTuple_SET_ITEM(tuple.get(), i + offset, Py_NewRef(args[i]));
  }
  return tuple;
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
  return checked(
      PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_class), name));
}

Ref function_object(const Call& call) {
  const Function& f = *call.function;
  if (call.self != nullptr) return tensor_attribute(f.name);
  Ref module = checked(PyImport_ImportModule("taeda._C"));
  std::string space = std::string("_") + f.module;
  if (f.module[0] == '\0') space = "_VariableFunctions";
  Ref holder = checked(PyObject_GetAttrString(module.get(), space.c_str()));
  return checked(PyObject_GetAttrString(holder.get(), f.name));
}
}  // namespace

PyObject* call_overridden(const Call& call) {
  Overriders overriders;
  if (call.self != nullptr) overriders.add(call.self);
  for (Py_ssize_t i = 0; i < call.count + call.keywords(); ++i) {
    overriders.add_with_items(call.args[i]);
  }
  Ref function = function_object(call);
  Ref args = pack(call.self, call.args, call.count);
  Ref kwargs = pack_keywords(call.args + call.count, call.names);
  return run_override(function.get(), overriders, args.get(), kwargs.get());
}

PyObject* call_override(PyObject* function, PyObject* args, PyObject* kwargs) {
  Overriders overriders;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    overriders.add_with_items(PyTuple_GET_ITEM(args, i));
  }
  PyObject *key, *value;
  Py_ssize_t at = 0;
  while (kwargs != nullptr && PyDict_Next(kwargs, &at, &key, &value)) {
    overriders.add_with_items(value);
  }
  return run_override(function, overriders, args, kwargs);
}

PyObject* override_method(PyObject* self,
                          const char* name,
                          PyObject* const* args,
                          Py_ssize_t count,
                          PyObject* names) {
  return guarded([&] {
    Ref function = tensor_attribute(name);
    Ref packed = pack(self, args, count);
    Ref kwargs = pack_keywords(args + count, names);
    return call_override(function.get(), packed.get(), kwargs.get());
  });
}

PyObject* override_function(const char* name,
                            PyObject* args,
                            PyObject* kwargs) {
  Ref module = checked(PyImport_ImportModule("taeda._C"));
  Ref function = checked(PyObject_GetAttrString(module.get(), name));
  return call_override(function.get(), args, kwargs);
}

PyObject* override_getter(PyObject* self, const char* name) {
  return guarded([&] {
    Ref property = tensor_attribute(name);
    Ref get = checked(PyObject_GetAttrString(property.get(), "__get__"));
    Ref args = pack(self, nullptr, 0);
    return call_override(get.get(), args.get(), nullptr);
  });
}

int override_setter(PyObject* self, const char* name, PyObject* value) {
  return guarded_status([&] {
    Ref property = tensor_attribute(name);
    const char* which = value == nullptr ? "__delete__" : "__set__";
    Ref set = checked(PyObject_GetAttrString(property.get(), which));
    Ref args = pack(self, &value, value == nullptr ? 0 : 1);
    checked(call_override(set.get(), args.get(), nullptr));
  });
}

namespace {
PyObject* has_one(PyObject*, PyObject* o) { return boolean(overrides(o)); }
PyObject* has_any(PyObject*, PyObject* const* args, Py_ssize_t n) {
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
PyObject* disabled(PyObject*, PyObject* args, PyObject* kwargs) {
  PyObject *function, *types, *call_args = nullptr, *call_kwargs = nullptr;
  const char* names[] = {"func", "types", "args", "kwargs", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args,
                                   kwargs,
                                   "OO|OO",
                                   const_cast<char**>(names),
                                   &function,
                                   &types,
                                   &call_args,
                                   &call_kwargs)) {
    return nullptr;
  }
  bool before = override_state.subclasses_enabled;
  override_state.subclasses_enabled = false;
  Ref packed(call_args != nullptr ? PySequence_Tuple(call_args)
                                  : PyTuple_New(0));
  PyObject* keywords = call_kwargs == Py_None ? nullptr : call_kwargs;
  PyObject* out =
      packed ? PyObject_Call(function, packed.get(), keywords) : nullptr;
  override_state.subclasses_enabled = before;
  return out;
}
PyObject* is_enabled(PyObject*, PyObject*) {
  return boolean(override_state.subclasses_enabled);
}
PyObject* all_disabled(PyObject*, PyObject*) {
  return boolean(!override_state.subclasses_enabled &&
                 !override_state.modes_enabled);
}
// (subclasses, modes) -> the state before, for the context managers.
PyObject* set_enabled(PyObject*, PyObject* args) {
  int subclasses, modes;
  if (!PyArg_ParseTuple(args, "pp", &subclasses, &modes)) return nullptr;
  OverrideState before = override_state;
  override_state.subclasses_enabled = subclasses != 0;
  override_state.modes_enabled = modes != 0;
  return Py_BuildValue("(ii)", before.subclasses_enabled, before.modes_enabled);
}
PyObject* push_mode(PyObject*, PyObject* mode) {
  mode_stack.push_back(Py_NewRef(mode));
  ++override_state.mode_depth;
  Py_RETURN_NONE;
}
PyObject* pop_mode(PyObject*, PyObject*) {
  if (mode_stack.empty()) {
    PyErr_SetString(PyExc_RuntimeError, "the stack of modes is empty");
    return nullptr;
  }
  PyObject* mode = mode_stack.back();
  mode_stack.pop_back();
  --override_state.mode_depth;
  return mode;
}
PyObject* mode_at(PyObject*, PyObject* index) {
  size_t i = PyLong_AsSize_t(index);
  if (PyErr_Occurred()) return nullptr;
  if (i >= mode_stack.size()) {
    PyErr_SetString(PyExc_IndexError, "no mode at that place of the stack");
    return nullptr;
  }
  return Py_NewRef(mode_stack[i]);
}
PyObject* mode_count(PyObject*, PyObject*) {
  return PyLong_FromSize_t(mode_stack.size());
}

// (public_api, relevant_args, *args, **kwargs)
PyObject* handle(PyObject*, PyObject* args, PyObject* kwargs) {
  return guarded([&] {
    if (PyTuple_GET_SIZE(args) < 2) {
      raise(PyExc_TypeError,
            "handle_torch_function() needs public_api and relevant_args");
    }
    Overriders overriders;
    Ref relevant = checked(PySequence_Tuple(PyTuple_GET_ITEM(args, 1)));
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(relevant.get()); ++i) {
      overriders.add(PyTuple_GET_ITEM(relevant.get(), i));
    }
    Ref rest = checked(PyTuple_GetSlice(args, 2, PyTuple_GET_SIZE(args)));
    PyObject* function = PyTuple_GET_ITEM(args, 0);
    return run_override(function, overriders, rest.get(), kwargs);
  });
}

PyMethodDef disabled_definition = {
    "_disabled_torch_function_impl",
    (PyCFunction)(void (*)(void))disabled,
    METH_VARARGS | METH_KEYWORDS,
    "Assigned as __torch_function__, it makes a subclass override nothing."};
PyMethodDef functions[] = {
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
    {"_handle_torch_function",
     (PyCFunction)(void (*)(void))handle,
     METH_VARARGS | METH_KEYWORDS,
     nullptr},
    {"_is_torch_function_enabled", is_enabled, METH_NOARGS, nullptr},
    {"_is_torch_function_all_disabled", all_disabled, METH_NOARGS, nullptr},
    {"_set_torch_function_enabled", set_enabled, METH_VARARGS, nullptr},
    {"_push_on_torch_function_stack", push_mode, METH_O, nullptr},
    {"_pop_torch_function_stack", pop_mode, METH_NOARGS, nullptr},
    {"_get_function_stack_at", mode_at, METH_O, nullptr},
    {"_len_torch_function_stack", mode_count, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
}  // namespace

void init_torch_function(PyObject* module) {
  protocol_name = PyUnicode_InternFromString("__torch_function__");
  disabled_impl =
      checked(PyCFunction_New(&disabled_definition, nullptr)).release();
  add_object(module, disabled_definition.ml_name, disabled_impl);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
