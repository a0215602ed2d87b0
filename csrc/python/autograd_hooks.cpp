// Hooks written in Python, and the autograd methods of tensors.
#include <taeda/csrc/python/autograd_common.h>
#include <taeda/csrc/python/tensor_entry.h>

namespace taeda::python {

namespace {
// Hooks live in an ordered dict that handles remove them from; C++ holds the
// dict. A hook may add or remove hooks, so the values are copied first.
Ref hooks_of(PyObject* dict) {
  Ref values = checked(PyMapping_Values(dict));
  return values;
}

struct PyTensorHook final : autograd::TensorHook {
  explicit PyTensorHook(PyObject* dict) : hooks(dict) {}
  void call(TensorBase& grad) override {
    GilAcquire gil;
    Ref values = hooks_of(hooks.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      Ref given(wrap(grad));
      Ref out = checked(
          PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), given.get()));
      if (out.get() == Py_None) continue;
      if (!is_tensor(out.get())) {
        raise(PyExc_TypeError,
              str_cat("hook '",
                      "' has changed the type of value (was Tensor, got ",
                      Py_TYPE(out.get())->tp_name,
                      ")"));
      }
      const TensorBase& changed = unwrap(out.get());
      TAEDA_CHECK(changed.sizes() == grad.sizes(),
                  "hook has changed the size of value: expected ",
                  grad.sizes(),
                  ", got ",
                  changed.sizes());
      grad = changed;
    }
  }
  Held hooks;
};

struct PyAccumulateHook final : autograd::AccumulateHook {
  explicit PyAccumulateHook(PyObject* dict) : hooks(dict) {}
  void call(const TensorBase& variable) override {
    GilAcquire gil;
    Ref values = hooks_of(hooks.get());
    Ref given(wrap(variable));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      Ref out = checked(
          PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), given.get()));
      if (out.get() != Py_None) {
        raise(PyExc_RuntimeError,
              "Tensor post accumulate grad hooks should return None.");
      }
    }
  }
  Held hooks;
};

// A tuple as long as `like`, or a single tensor for a single one, into place.
void take_grads(PyObject* result, Tensors& like, const char* what) {
  if (result == Py_None) return;
  Ref values = as_tuple(result);
  auto count = static_cast<size_t>(PyTuple_GET_SIZE(values.get()));
  TAEDA_CHECK(count == like.size(),
              what,
              " has returned an incorrect number of values (got ",
              count,
              ", but expected ",
              like.size(),
              ")");
  for (size_t i = 0; i < count; ++i) {
    like[i] = optional_tensor(
        PyTuple_GET_ITEM(values.get(), static_cast<Py_ssize_t>(i)), what);
  }
}

struct PyNodePreHook final : autograd::NodePreHook {
  explicit PyNodePreHook(PyObject* dict) : hooks(dict) {}
  void call(Tensors& grads) override {
    GilAcquire gil;
    Ref values = hooks_of(hooks.get());
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      Ref given = tensors_tuple(grads);
      Ref out = checked(
          PyObject_CallOneArg(PyList_GET_ITEM(values.get(), i), given.get()));
      take_grads(out.get(), grads, "backward pre-hook");
    }
  }
  Held hooks;
};

struct PyNodePostHook final : autograd::NodePostHook {
  explicit PyNodePostHook(PyObject* dict) : hooks(dict) {}
  void call(Tensors& inputs, const Tensors& outputs) override {
    GilAcquire gil;
    Ref values = hooks_of(hooks.get());
    Ref second = tensors_tuple(outputs);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(values.get()); ++i) {
      Ref first = tensors_tuple(inputs);
      Ref out =
          checked(PyObject_CallFunctionObjArgs(PyList_GET_ITEM(values.get(), i),
                                               first.get(),
                                               second.get(),
                                               nullptr));
      take_grads(out.get(), inputs, "backward hook");
    }
  }
  Held hooks;
};

PyObject* bad_call(const char* text) {
  PyErr_SetString(PyExc_TypeError, text);
  return nullptr;
}

// (node, dict, before): C++ reads the dict from now on.
PyObject* add_node_hooks(PyObject*, PyObject* args) {
  PyObject *o, *dict;
  int before;
  if (!PyArg_ParseTuple(args, "OOp", &o, &dict, &before)) return nullptr;
  return guarded([&]() -> PyObject* {
    IntrusivePtr<Node> node = node_of(o);
    if (!node) return bad_call("register_hook: expected a node of a graph");
    if (before) {
      node->extra().pre_hooks.push_back(std::make_shared<PyNodePreHook>(dict));
    } else {
      node->extra().post_hooks.push_back(
          std::make_shared<PyNodePostHook>(dict));
    }
    return none();
  });
}

// Saved tensors --------------------------------------------------------------

struct PyPacked final : autograd::PackedTensor {
  PyPacked(PyObject* packed, PyObject* unpack) : value(packed), hook(unpack) {}
  TensorBase unpack() override {
    GilAcquire gil;
    Ref out = checked(PyObject_CallOneArg(hook.get(), value.get()));
    if (!is_tensor(out.get())) {
      raise(PyExc_TypeError,
            str_cat("Output of saved tensor unpack_hook expected to be a "
                    "Tensor but got result of type ",
                    Py_TYPE(out.get())->tp_name));
    }
    return unwrap(out.get());
  }
  Held value;
  Held hook;
};

struct PySavedHooks final : autograd::SavedTensorHooks {
  PySavedHooks(PyObject* p, PyObject* u) : pack_hook(p), unpack_hook(u) {}
  std::unique_ptr<autograd::PackedTensor> pack(const TensorBase& t) override {
    GilAcquire gil;
    Ref given(wrap(t));
    Ref out = checked(PyObject_CallOneArg(pack_hook.get(), given.get()));
    return std::make_unique<PyPacked>(out.get(), unpack_hook.get());
  }
  Held pack_hook;
  Held unpack_hook;
};

PyObject* push_saved(PyObject*, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
  return guarded([&] {
    autograd::push_saved_hooks(std::make_shared<PySavedHooks>(pack, unpack));
    return none();
  });
}
PyObject* pop_saved(PyObject*, PyObject*) {
  return guarded([&] {
    autograd::pop_saved_hooks();
    return none();
  });
}
PyObject* disable_saved(PyObject*, PyObject* message) {
  return guarded([&] {
    std::string& text = autograd::saved_hooks().disabled;
    PyObject* before = text.empty() ? none() : new_text(text).release();
    text = message == Py_None ? std::string() : std::string(utf8(message));
    return before;
  });
}

PyObject* bump_version(PyObject*, PyObject* t) {
  return guarded([&] {
    unwrap_checked(t, "increment_version").impl()->bump_version();
    return none();
  });
}

PyMethodDef functions[] = {
    {"_bump_version", bump_version, METH_O, nullptr},
    {"_add_node_hooks", add_node_hooks, METH_VARARGS, nullptr},
    {"_push_saved_tensors_hooks", push_saved, METH_VARARGS, nullptr},
    {"_pop_saved_tensors_hooks", pop_saved, METH_NOARGS, nullptr},
    {"_disable_saved_tensors_hooks", disable_saved, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

// Tensor methods
// ---------------------------------------------------------------

PyObject* grad_fn(const TensorBase& t) {
  return wrap_node(autograd::grad_fn(t));
}
PyObject* detach(const TensorBase& t) { return wrap(autograd::detach(t)); }
PyObject* retain_grad(const TensorBase& t) {
  autograd::retain_grad(t);
  return none();
}

PyObject* detach_inplace(PyObject* self, PyObject*) {
  if (TAEDA_UNLIKELY(overrides(self))) return override_method(self, "detach_");
  return guarded([&] {
    autograd::detach_inplace(unwrap(self));
    return Py_NewRef(self);
  });
}

// The dict of hooks that Python sees as `_backward_hooks`.
PyObject* backward_hooks(const TensorBase& t) {
  autograd::AutogradMeta* meta = autograd::meta_or_null(t);
  if (meta == nullptr || !meta->python_hooks) return none();
  auto* hook = static_cast<PyTensorHook*>(meta->python_hooks.get());
  return Py_NewRef(hook->hooks.get());
}
void set_backward_hooks(const TensorBase& t, PyObject* dict) {
  if (dict == nullptr) dict = Py_None;
  if (autograd::AutogradMeta* meta = autograd::meta_or_null(t)) {
    if (meta->python_hooks) {
      autograd::remove_leaf_hook(t, meta->python_hooks.get());
    }
    meta->python_hooks.reset();
  }
  if (dict == Py_None) return;
  auto hook = std::make_shared<PyTensorHook>(dict);
  autograd::register_hook(t, hook);
  autograd::meta_of(t).python_hooks = std::move(hook);
}
PyObject* accumulate_hooks(const TensorBase& t) {
  autograd::AutogradMeta* meta = autograd::meta_or_null(t);
  if (meta == nullptr || !meta->leaf_hooks || !meta->leaf_hooks->after) {
    return none();
  }
  auto* hook = dynamic_cast<PyAccumulateHook*>(meta->leaf_hooks->after.get());
  return hook == nullptr ? none() : Py_NewRef(hook->hooks.get());
}
void set_accumulate_hooks(const TensorBase& t, PyObject* dict) {
  bool none_given = dict == nullptr || dict == Py_None;
  if (none_given && autograd::meta_or_null(t) == nullptr) return;
  autograd::set_accumulate_hook(
      t, none_given ? nullptr : std::make_shared<PyAccumulateHook>(dict));
}

// Registration itself is written in Python.
PyObject* call_helper(PyObject* self, const char* name, PyObject* hook) {
  return guarded([&]() -> PyObject* {
    Ref module = checked(PyImport_ImportModule("taeda.autograd._tensor_hooks"));
    return PyObject_CallMethod(module.get(), name, "OO", self, hook);
  });
}
PyObject* register_hook(PyObject* self, PyObject* hook) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_method(self, "register_hook", &hook, 1);
  }
  return call_helper(self, "register_hook", hook);
}
PyObject* register_accumulate_hook(PyObject* self, PyObject* hook) {
  if (TAEDA_UNLIKELY(overrides(self))) {
    return override_method(
        self, "register_post_accumulate_grad_hook", &hook, 1);
  }
  return call_helper(self, "register_post_accumulate_grad_hook", hook);
}

PyMethodDef tensor_autograd_methods[] = {
    {"register_hook",
     register_hook,
     METH_O,
     "register_hook(hook) -> RemovableHandle\n\nCalls hook(grad) when the "
     "gradient is computed; what it returns, if anything, takes its place."},
    {"register_post_accumulate_grad_hook",
     register_accumulate_hook,
     METH_O,
     "register_post_accumulate_grad_hook(hook) -> RemovableHandle\n\nCalls "
     "hook(tensor) when a leaf's grad has been added to."},
    TAEDA_QUERY("detach", detach),
    TAEDA_QUERY("retain_grad", retain_grad),
    {"detach_", detach_inplace, METH_NOARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef tensor_autograd_getset[] = {
    TAEDA_GETTER("grad_fn", grad_fn),
    TAEDA_PROPERTY("_backward_hooks", backward_hooks, set_backward_hooks),
    TAEDA_PROPERTY(
        "_post_accumulate_grad_hooks", accumulate_hooks, set_accumulate_hooks),
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
}  // namespace

void init_autograd_hooks(PyObject* module) {
  check_status(PyModule_AddFunctions(module, functions));
  PyObject* dict = tensor_base_type->tp_dict;
  for (PyMethodDef* d = tensor_autograd_methods; d->ml_name; ++d) {
    Ref method = checked(PyDescr_NewMethod(tensor_base_type, d));
    check_status(PyDict_SetItemString(dict, d->ml_name, method.get()));
  }
  for (PyGetSetDef* d = tensor_autograd_getset; d->name; ++d) {
    Ref getter = checked(PyDescr_NewGetSet(tensor_base_type, d));
    check_status(PyDict_SetItemString(dict, d->name, getter.get()));
  }
  PyType_Modified(tensor_base_type);
}

}  // namespace taeda::python
