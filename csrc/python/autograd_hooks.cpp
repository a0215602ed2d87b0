// Hooks written in Python, and the autograd methods of tensors.
#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/python/autograd_common.h>
#include <taeda/csrc/python/init.h>
#include <taeda/csrc/python/tensor_entry.h>

#include <taeda/aten/core/level.h>
#include <taeda/gen/ops/detach.h>

namespace taeda::python {

namespace {
// Hooks live in an ordered dict that handles remove them from; C++ holds the
// dict.
template <class Base>
struct HookDict : Base {
  explicit HookDict(PyObject* dict) : hooks(dict) {}
  Held hooks;
};
// A hook may add or remove hooks, so the values are copied first. Each is
// called with a new tuple of arguments; use() gets what it returned, if
// anything.
template <class Arguments, class Use>
void call_hooks(const Held& hooks, Arguments&& arguments, Use&& use) {
  GilAcquire gil;
  Ref values = checked(PyMapping_Values(hooks.get()));
  for (PyObject* hook : items_of(values.get())) {
    Ref args = arguments();
    Ref out = checked(PyObject_CallObject(hook, args.get()));
    if (out.get() != Py_None) use(out.get());
  }
}
Ref only(const TensorBase& t) {
  return new_tuple(1, [&](size_t) { return wrap(t); });
}

struct PyTensorHook final : HookDict<autograd::TensorHook> {
  using HookDict::HookDict;
  void call(TensorBase& grad) override {
    auto take = [&](PyObject* out) {
      if (!is_tensor(out)) {
        raise(PyExc_TypeError,
              "hook '' has changed the type of value (was Tensor, got {})",
              type_name_of(out));
      }
      const TensorBase& changed = unwrap(out);
      TAEDA_CHECK(
          !grad.defined() || changed.sizes() == grad.sizes(),
          message("hook has changed the size of value: expected {}, got {}",
                  grad.sizes(),
                  changed.sizes()));
      grad = changed;
    };
    call_hooks(hooks, [&] { return only(grad); }, take);
  }
};

struct PyAccumulateHook final : HookDict<autograd::AccumulateHook> {
  using HookDict::HookDict;
  void call(const TensorBase& variable) override {
    auto refuse = [](PyObject*) {
      raise(PyExc_RuntimeError,
            "Tensor post accumulate grad hooks should return None.");
    };
    call_hooks(hooks, [&] { return only(variable); }, refuse);
  }
};

// A tuple as long as `like`, or a single tensor for a single one, into place.
void take_grads(PyObject* result, Tensors& like, const char* what) {
  Ref values = as_tuple(result);
  ArrayRef<PyObject*> items = items_of(values.get());
  TAEDA_CHECK(items.size() == like.size(),
              message("{} has returned an incorrect number of values (got {}, "
                      "but expected {})",
                      what,
                      items.size(),
                      like.size()));
  for (size_t i = 0; i < items.size(); ++i) {
    like[i] = optional_tensor(items[i], what);
  }
}

struct PyNodePreHook final : HookDict<autograd::NodePreHook> {
  using HookDict::HookDict;
  void call(Tensors& grads) override {
    auto arguments = [&] {
      return new_tuple(1,
                       [&](size_t) { return tensors_tuple(grads).release(); });
    };
    call_hooks(hooks, arguments, [&](PyObject* out) {
      take_grads(out, grads, "backward pre-hook");
    });
  }
};

struct PyNodePostHook final : HookDict<autograd::NodePostHook> {
  using HookDict::HookDict;
  void call(Tensors& inputs, const Tensors& outputs) override {
    auto arguments = [&] {
      return new_tuple(2, [&](size_t i) {
        return tensors_tuple(i == 0 ? inputs : outputs).release();
      });
    };
    call_hooks(hooks, arguments, [&](PyObject* out) {
      take_grads(out, inputs, "backward hook");
    });
  }
};

// Saved tensors --------------------------------------------------------------

struct PyPacked final : autograd::PackedTensor {
  PyPacked(PyObject* packed, PyObject* unpack) : value(packed), hook(unpack) {}
  TensorBase unpack() override {
    GilAcquire gil;
    Ref out = checked(PyObject_CallOneArg(hook.get(), value.get()));
    if (!is_tensor(out.get())) {
      raise(PyExc_TypeError,
            "Output of saved tensor unpack_hook expected to be a Tensor but "
            "got result of type {}",
            type_name_of(out.get()));
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

// Tensor methods
// ---------------------------------------------------------------

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
// A pickled parameter that takes no gradient has a dict of hooks too; it waits
// there until the tensor takes one.
void hold_hook(const TensorBase& t, std::shared_ptr<PyTensorHook> hook) {
  if (t.requires_grad()) return autograd::register_hook(t, std::move(hook));
  autograd::AutogradMeta& meta = autograd::meta_of(t);
  if (!meta.leaf_hooks) {
    meta.leaf_hooks = std::make_unique<autograd::LeafHooks>();
  }
  meta.leaf_hooks->before.push_back(std::move(hook));
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
  hold_hook(t, hook);
  autograd::meta_of(t).python_hooks = std::move(hook);
}
PyObject* accumulate_hooks(const TensorBase& t) {
  auto found = autograd::accumulate_hook(t);
  auto* hook = dynamic_cast<PyAccumulateHook*>(found.get());
  return hook == nullptr ? none() : Py_NewRef(hook->hooks.get());
}
void set_accumulate_hooks(const TensorBase& t, PyObject* dict) {
  bool none_given = dict == nullptr || dict == Py_None;
  if (none_given && autograd::meta_or_null(t) == nullptr) return;
  autograd::set_accumulate_hook(
      t, none_given ? nullptr : std::make_shared<PyAccumulateHook>(dict));
}

// A wrapper's value may have a history or tangents in the levels around it,
// which the operator ends too.
TensorBase detached(const TensorBase& t) {
  if (wrapped_or_null(t) != nullptr) return ops::detach(t);
  return autograd::detach(t);
}

PyMethodDef tensor_autograd_methods[] = {
    TAEDA_QUERY("detach", detached(t)),
    TAEDA_QUERY("retain_grad", retain_grad(t)),
    {"detach_", detach_inplace, METH_NOARGS, tensor_doc("detach_")},
    {nullptr, nullptr, 0, nullptr},
};
PyGetSetDef tensor_autograd_getset[] = {
    TAEDA_GETTER("grad_fn", wrap_node(autograd::grad_fn(t))),
    TAEDA_PROPERTY("_backward_hooks", set_backward_hooks, backward_hooks(t)),
    TAEDA_PROPERTY("_post_accumulate_grad_hooks",
                   set_accumulate_hooks,
                   accumulate_hooks(t)),
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};
}  // namespace

namespace {
// Null unless nothing but its Python object holds the tensor.
autograd::AutogradMeta* lone_meta(const TensorBase& t) {
  if (!t.defined() || t.impl()->use_count() != 1) return nullptr;
  return autograd::meta_or_null(t);
}

template <class Hook, class List>
int visit_dicts(const List& list, visitproc visit, void* arg) {
  for (const auto& hook : list) {
    if (auto* known = dynamic_cast<Hook*>(hook.get())) {
      Py_VISIT(known->hooks.get());
    }
  }
  return 0;
}
}  // namespace

int visit_node_hooks(const Node& node, visitproc visit, void* arg) {
  autograd::NodeExtra* extra = node.extra_or_null();
  if (extra == nullptr) return 0;
  for (const auto& entry : extra->tensor_hooks) {
    if (auto* known = dynamic_cast<PyTensorHook*>(entry.hook.get())) {
      Py_VISIT(known->hooks.get());
    }
  }
  if (extra->metadata) {
    Py_VISIT(static_cast<Held*>(extra->metadata.get())->get());
  }
  int status = visit_dicts<PyNodePreHook>(extra->pre_hooks, visit, arg);
  if (status != 0) return status;
  return visit_dicts<PyNodePostHook>(extra->post_hooks, visit, arg);
}

void clear_node_hooks(Node& node) {
  autograd::NodeExtra* extra = node.extra_or_null();
  if (extra == nullptr) return;
  auto of_tensors = std::exchange(extra->tensor_hooks, {});
  auto before = std::exchange(extra->pre_hooks, {});
  auto after = std::exchange(extra->post_hooks, {});
  auto metadata = std::exchange(extra->metadata, nullptr);
}

int visit_hooks(const TensorBase& t, visitproc visit, void* arg) {
  autograd::AutogradMeta* meta = lone_meta(t);
  if (meta == nullptr) return 0;
  if (meta->grad_fn) {
    bool alone = meta->grad_fn->use_count() == 1;
    return alone ? visit_node_hooks(*meta->grad_fn, visit, arg) : 0;
  }
  if (meta->python_hooks) {
    auto* hook = static_cast<PyTensorHook*>(meta->python_hooks.get());
    Py_VISIT(hook->hooks.get());
  }
  auto after = autograd::accumulate_hook(t);
  if (auto* hook = dynamic_cast<PyAccumulateHook*>(after.get())) {
    Py_VISIT(hook->hooks.get());
  }
  return 0;
}

void clear_hooks(const TensorBase& t) {
  autograd::AutogradMeta* meta = lone_meta(t);
  if (meta == nullptr) return;
  if (meta->grad_fn) {
    if (meta->grad_fn->use_count() == 1) clear_node_hooks(*meta->grad_fn);
    return;
  }
  if (!meta->leaf_hooks) return;
  auto hooks = std::move(meta->leaf_hooks);  // what they free may look at t
  auto own = std::move(meta->python_hooks);
}

namespace {
// The hooks of Python in a list of a node's: one dict, so that a hook which is
// removed while the others run is called this once more.
template <class Hook, class List>
PyObject* dict_of(List& list) {
  for (const auto& hook : list) {
    auto* known = dynamic_cast<Hook*>(hook.get());
    if (known != nullptr) return Py_NewRef(known->hooks.get());
  }
  Ref type = imported("collections", "OrderedDict");
  Ref dict = checked(PyObject_CallNoArgs(type.get()));
  list.push_back(std::make_shared<Hook>(dict.get()));
  return dict.release();
}
}  // namespace

PyObject* node_hooks(PyObject* o, bool before) {
  IntrusivePtr<Node> node = node_of(o);
  TAEDA_CHECK_AS(Type, node, "register_hook: expected a node of a graph");
  autograd::NodeExtra& extra = node->extra();
  return before ? dict_of<PyNodePreHook>(extra.pre_hooks)
                : dict_of<PyNodePostHook>(extra.post_hooks);
}

void push_saved_hooks(PyObject* pack, PyObject* unpack) {
  autograd::push_saved_hooks(std::make_shared<PySavedHooks>(pack, unpack));
}

void init_autograd_hooks(PyObject*) {
  add_members(
      tensor_base_type, tensor_autograd_methods, tensor_autograd_getset);
}

}  // namespace taeda::python
