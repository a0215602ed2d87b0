// autograd.Function: nodes whose forward and backward are written in Python.
#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/inplace.h>
#include <taeda/csrc/autograd/record.h>
#include <taeda/csrc/python/autograd_common.h>
#include <taeda/csrc/python/init.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>

namespace taeda::python {

PyTypeObject* function_type = nullptr;

namespace {
// Note [ctx]
// The Python object that forward and backward call `ctx` is also what
// `grad_fn` shows. The node owns it; it knows the node weakly. A call whose
// result needs no gradient makes a ctx and no node.
enum Slot { kToSave, kDirty, kNonDifferentiable, kNeedsGrad, kSlots };
struct PyFunction {
  PyObject_HEAD WeakPtr<Node> node;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* slots[kSlots];  // tuples; kToSave until the call is recorded
  bool materialize_grads;
  bool has_state;  // whether the members above are constructed
};

PyFunction* as_function(PyObject* o) {
  return reinterpret_cast<PyFunction*>(o);
}

struct Names {
  PyObject* backward = PyUnicode_InternFromString("backward");
  PyObject* forward = PyUnicode_InternFromString("forward");
  PyObject* setup_context = PyUnicode_InternFromString("setup_context");
  PyObject* context_class = PyUnicode_InternFromString("_backward_cls");
  PyObject* forward_class = PyUnicode_InternFromString("_forward_cls");
  PyObject* two_steps = PyUnicode_InternFromString("_has_setup_context");
  PyObject* bind = PyUnicode_InternFromString("_bind_arguments");
};
const Names& names() {
  static const Names* found = new Names;
  return *found;
}

class FunctionNode final : public Node {
 public:
  explicit FunctionNode(PyObject* ctx)
      : context_(ctx), class_name_(Py_TYPE(ctx)->tp_name) {}
  std::string name() const override {
    size_t dot = class_name_.rfind('.');
    return dot == std::string::npos ? class_name_ : class_name_.substr(dot + 1);
  }
  Tensors apply(Tensors&& grads) override;
  void release_variables() override {
    auto guard = lock();
    autograd::release_list(saved);
    released = true;
  }
  PyObject* context() const { return context_.get(); }

  autograd::SavedList saved;
  bool released = false;
  // For each argument of forward, whether it is a tensor.
  std::vector<bool> tensor_inputs;
  // Of tensor results, differentiable or not: what zeros look like.
  std::vector<autograd::OutputInfo> results;

 private:
  void release_resources() override {
    saved.clear();
    context_.reset();
    Node::release_resources();
  }
  Ref gather(Tensors grads) const;
  Tensors spread(PyObject* returned) const;
  Held context_;
  std::string class_name_;
};

// The gradients as Python sees them, with zeros where that is asked for.
Ref FunctionNode::gather(Tensors grads) const {
  bool fill = as_function(context())->materialize_grads;
  return new_tuple(1 + grads.size(), [&](size_t place) {
    if (place == 0) return Py_NewRef(context());
    size_t i = place - 1;
    if (!grads[i].defined() && fill && i < results.size() && results[i].known) {
      const autograd::OutputInfo& r = results[i];
      grads[i] =
          ops::zeros(r.sizes, r.dtype, Layout::Strided, r.device, std::nullopt);
    }
    return wrap(std::move(grads[i]));
  });
}

// What backward returned, one per tensor argument.
Tensors FunctionNode::spread(PyObject* returned) const {
  Ref values = as_tuple(returned);
  ArrayRef<PyObject*> items = items_of(values.get());
  size_t expected = tensor_inputs.size();
  bool extra_none = items.size() > expected;
  for (size_t i = expected; i < items.size(); ++i) {
    extra_none &= items[i] == Py_None;
  }
  TAEDA_CHECK(items.size() == expected || extra_none,
              message("function {} returned an incorrect number of gradients "
                      "(expected {}, got {})",
                      name(),
                      expected,
                      items.size()));
  Tensors out;
  for (size_t i = 0; i < expected; ++i) {
    PyObject* o = items[i];
    TAEDA_CHECK(tensor_inputs[i] || o == Py_None,
                message("function {} returned a gradient different from None "
                        "at position {}, but the corresponding forward input "
                        "was not a Variable",
                        name(),
                        i + 1));
    if (o != Py_None && !is_tensor(o)) {
      raise(PyExc_RuntimeError,
            "expected Variable or None (got {})",
            type_name_of(o));
    }
    if (tensor_inputs[i])
      out.push_back(o == Py_None ? TensorBase() : unwrap(o));
  }
  return out;
}

Tensors FunctionNode::apply(Tensors&& grads) {
  GilAcquire gil;
  PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(context()));
  Ref forward = checked(PyObject_GetAttr(type, names().forward_class));
  Ref backward = checked(PyObject_GetAttr(forward.get(), names().backward));
  Ref args = gather(std::move(grads));
  Ref returned = checked(PyObject_CallObject(backward.get(), args.get()));
  return spread(returned.get());
}

// The ctx object -----------------------------------------------------------

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o == nullptr) return nullptr;
  PyFunction* self = as_function(o);
  new (&self->node) WeakPtr<Node>();
  self->materialize_grads = true;
  self->has_state = true;
  return o;
}

int function_traverse(PyObject* o, visitproc visit, void* arg) {
  PyFunction* self = as_function(o);
  Py_VISIT(Py_TYPE(o));
  Py_VISIT(self->dict);
  for (PyObject* slot : self->slots) Py_VISIT(slot);
  return 0;
}

int function_clear(PyObject* o) {
  PyFunction* self = as_function(o);
  Py_CLEAR(self->dict);
  for (PyObject*& slot : self->slots) Py_CLEAR(slot);
  return 0;
}

void function_dealloc(PyObject* o) {
  PyFunction* self = as_function(o);
  PyObject_GC_UnTrack(o);
  if (self->weakrefs != nullptr) PyObject_ClearWeakRefs(o);
  function_clear(o);
  if (self->has_state) self->node.~WeakPtr<Node>();
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* saved_tensors(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    PyFunction* self = as_function(o);
    IntrusivePtr<Node> held = self->node.lock();
    if (!held) {
      if (PyObject* given = self->slots[kToSave]) return Py_NewRef(given);
      raise(PyExc_RuntimeError,
            "Attribute 'saved_tensors' is invalid for this instance of "
            "_C._FunctionBase: its node in the graph is gone; keep the result "
            "of apply for as long as its grad_fn is used");
    }
    auto* node = static_cast<FunctionNode*>(held.get());
    std::vector<TensorBase> found;
    bool released;
    {
      // Another thread may hold the lock while it waits for the GIL.
      GilRelease no_gil(true);
      auto guard = node->lock();
      released = node->released;
      if (!released || node->saved.empty()) {
        found = autograd::unpack_list(node->saved, *node);
      }
    }
    if (released && !node->saved.empty()) autograd::backward_twice();
    return wrap(std::move(found));
  });
}

// save_for_backward and its like: keep the tuple of arguments.
template <Slot S>
PyObject* keep(PyObject* o, PyObject* args) {
  Py_XSETREF(as_function(o)->slots[S], Py_NewRef(args));
  Py_RETURN_NONE;
}
PyObject* set_materialize_grads(PyObject* o, PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  as_function(o)->materialize_grads = on != 0;
  Py_RETURN_NONE;
}

constexpr PyMemberDef slot_member(const char* name, Slot s) {
  auto offset = offsetof(PyFunction, slots) + s * sizeof(PyObject*);
  return {name, T_OBJECT, static_cast<Py_ssize_t>(offset), 0, nullptr};
}
constexpr Py_ssize_t kMaterialize = offsetof(PyFunction, materialize_grads);
PyMemberDef function_members[] = {
    offset_member("__dictoffset__", offsetof(PyFunction, dict)),
    offset_member("__weaklistoffset__", offsetof(PyFunction, weakrefs)),
    slot_member("to_save", kToSave),
    slot_member("dirty_tensors", kDirty),
    slot_member("non_differentiable", kNonDifferentiable),
    slot_member("needs_input_grad", kNeedsGrad),
    {"materialize_grads", T_BOOL, kMaterialize, 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef function_getset[] = {
    {"saved_tensors", saved_tensors, nullptr, nullptr, nullptr},
    {"saved_variables", saved_tensors, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// apply ----------------------------------------------------------------------

bool contains(ArrayRef<PyObject*> objects, PyObject* o) {
  return std::find(objects.begin(), objects.end(), o) != objects.end();
}

// One call of Function.apply.
class Application {
 public:
  Application(PyObject* cls, ArrayRef<PyObject*> args)
      : cls_(cls), args_(args) {}
  PyObject* run();

 private:
  void inspect_inputs();
  Ref call_forward();
  PyObject* record(PyObject* output, size_t total);
  void check_dirty(PyObject* outputs) const;
  Ref record_all(Ref outputs);
  void save();
  PyFunction* state() const { return as_function(context_.get()); }
  // What mark_dirty or its like were given.
  ArrayRef<PyObject*> marked(Slot s) const {
    PyObject* tuple = state()->slots[s];
    if (tuple == nullptr || !PyTuple_Check(tuple)) return {};
    return items_of(tuple);
  }

  PyObject* cls_;
  ArrayRef<PyObject*> args_;
  Ref context_;
  IntrusivePtr<FunctionNode> node_;
};

void Application::inspect_inputs() {
  bool any = false;
  Ref needs = new_tuple(args_.size(), [&](size_t i) {
    bool on = is_tensor(args_[i]) && unwrap(args_[i]).defined() &&
              unwrap(args_[i]).requires_grad();
    any |= on;
    return boolean(on);
  });
  state()->slots[kNeedsGrad] = needs.release();
  if (!any || !grad_enabled()) return;
  node_ = make_intrusive<FunctionNode>(context_.get());
  node_->tensor_inputs.reserve(args_.size());
  for (PyObject* o : args_) {
    node_->tensor_inputs.push_back(is_tensor(o));
    if (is_tensor(o)) node_->add_next_edge(autograd::gradient_edge(unwrap(o)));
  }
}

// With setup_context, forward has no ctx and the outputs are shown to it later.
Ref Application::call_forward() {
  Ref two = checked(PyObject_GetAttr(cls_, names().two_steps));
  Ref forward = checked(PyObject_GetAttr(cls_, names().forward));
  GradModeGuard off(false);
  if (two.get() != Py_True) {
    SmallVector<PyObject*, 8> all;
    all.push_back(nullptr);  // room for a bound self
    all.push_back(context_.get());
    for (PyObject* o : args_) all.push_back(o);
    return checked(
        PyObject_Vectorcall(forward.get(),
                            all.data() + 1,
                            (args_.size() + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
                            nullptr));
  }
  Ref out = checked(
      PyObject_Vectorcall(forward.get(), args_.data(), args_.size(), nullptr));
  Ref inputs =
      new_tuple(args_.size(), [&](size_t i) { return Py_NewRef(args_[i]); });
  Ref setup = checked(PyObject_GetAttr(cls_, names().setup_context));
  checked(PyObject_CallFunctionObjArgs(
      setup.get(), context_.get(), inputs.get(), out.get(), nullptr));
  return out;
}

// What forward changes in place must be among its results (one or a tuple).
void Application::check_dirty(PyObject* outputs) const {
  if (!node_) return;
  ArrayRef<PyObject*> dirty = marked(kDirty);
  for (size_t i = 0; i < dirty.size(); ++i) {
    bool returned =
        dirty[i] == outputs ||
        (PyTuple_Check(outputs) && contains(items_of(outputs), dirty[i]));
    TAEDA_CHECK(returned,
                message("{}.forward: the tensor marked dirty at position {} is "
                        "not returned; inputs that are modified in-place must "
                        "all be outputs of the Function",
                        reinterpret_cast<PyTypeObject*>(cls_)->tp_name,
                        i));
  }
}

// The result as the caller gets it: a new reference.
PyObject* Application::record(PyObject* o, size_t total) {
  if (!is_tensor(o)) {
    if (node_) node_->results.emplace_back();
    if (node_) node_->add_undefined_output();
    return Py_NewRef(o);
  }
  const TensorBase& t = unwrap(o);
  if (!node_) {
    // An input that passes through must not pass for a result of this call.
    return Py_NewRef(o);
  }
  node_->results.emplace_back(t);
  bool dirty = contains(marked(kDirty), o);
  bool through = contains(args_, o) && !dirty;
  if (contains(marked(kNonDifferentiable), o) ||
      !autograd::is_differentiable(t.dtype())) {
    TAEDA_CHECK(!dirty,
                "a tensor that is marked dirty cannot be non-differentiable");
    node_->add_undefined_output();
    return through ? wrap(autograd::detach(t)) : Py_NewRef(o);
  }
  if (dirty) {
    autograd::check_inplace(t, true);
    autograd::rebase_history(t, node_);
    return Py_NewRef(o);
  }
  if (through) {
    // A tensor over the same memory, for an input that is returned as it came.
    TensorBase view = make_view(t, t.sizes(), t.strides(), t.storage_offset());
    view.impl()->set_view_creation(ViewCreation::CustomFunction);
    autograd::set_history(view, node_);
    return wrap(std::move(view));
  }
  if (t.is_view()) {
    t.impl()->set_view_creation(total > 1 ? ViewCreation::MultiOutput
                                          : ViewCreation::CustomFunction);
  }
  autograd::set_history(t, node_);
  return Py_NewRef(o);
}

Ref Application::record_all(Ref output) {
  PyObject* o = output.get();
  if (o == Py_None) return output;
  if (PyList_Check(o)) output = checked(PyList_AsTuple(o));
  o = output.get();
  check_dirty(o);
  if (!PyTuple_Check(o)) return Ref(record(o, 1));
  ArrayRef<PyObject*> items = items_of(o);
  return new_tuple(items.size(),
                   [&](size_t i) { return record(items[i], items.size()); });
}

// After the results have their history, so that they can be told from inputs.
void Application::save() {
  Ref to_save(std::exchange(state()->slots[kToSave], nullptr));
  if (!to_save) return;
  if (!PyTuple_Check(to_save.get())) {
    raise(PyExc_TypeError,
          "saved_tensors must be a tuple, got {}",
          type_name_of(to_save.get()));
  }
  ArrayRef<PyObject*> items = items_of(to_save.get());
  node_->saved.reserve(items.size());
  for (size_t i = 0; i < items.size(); ++i) {
    autograd::SavedVariable& slot = node_->saved.emplace_back();
    if (items[i] == Py_None) continue;
    if (!is_tensor(items[i])) {
      raise(PyExc_TypeError,
            "save_for_backward can only save variables, but argument {} is of "
            "type {}",
            i,
            type_name_of(items[i]));
    }
    const TensorBase& t = unwrap(items[i]);
    autograd::AutogradMeta* meta = autograd::meta_or_null(t);
    bool is_output = meta != nullptr && meta->grad_fn.get() == node_.get();
    slot.save(t, is_output);
  }
}

PyObject* Application::run() {
  Ref context_class = checked(PyObject_GetAttr(cls_, names().context_class));
  auto* type = reinterpret_cast<PyTypeObject*>(context_class.get());
  context_ = checked(function_new(type, nullptr, nullptr));
  inspect_inputs();
  Ref out = record_all(call_forward());
  if (node_) {
    state()->node = WeakPtr<Node>(node_.get());
    save();
  }
  return out.release();
}

PyObject* function_apply(PyObject* cls,
                         PyObject* const* args,
                         Py_ssize_t count,
                         PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    bool named = keywords != nullptr && PyTuple_GET_SIZE(keywords) > 0;
    if (!named) {
      Ref two = checked(PyObject_GetAttr(cls, names().two_steps));
      if (two.get() != Py_True) {
        return Application(cls, {args, static_cast<size_t>(count)}).run();
      }
    }
    // Keyword arguments and defaults become positions, for backward's sake.
    Ref bind = checked(PyObject_GetAttr(cls, names().bind));
    Ref all = checked(PyObject_Vectorcall(
        bind.get(), args, static_cast<size_t>(count), keywords));
    return Application(cls, items_of(all.get())).run();
  });
}

PyMethodDef function_methods[] = {
    {"apply",
     (PyCFunction)(void (*)(void))function_apply,
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "apply(*args)\n\nRuns forward and records backward."},
    {"save_for_backward",
     keep<kToSave>,
     METH_VARARGS,
     "save_for_backward(*tensors)\n\nKeeps inputs or outputs of forward; "
     "backward reads them as ctx.saved_tensors."},
    {"mark_dirty",
     keep<kDirty>,
     METH_VARARGS,
     "mark_dirty(*args)\n\nNames the inputs that forward changes in place."},
    {"mark_non_differentiable",
     keep<kNonDifferentiable>,
     METH_VARARGS,
     "mark_non_differentiable(*args)\n\nNames outputs without gradient."},
    {"set_materialize_grads",
     set_materialize_grads,
     METH_O,
     "set_materialize_grads(value)\n\nWhether backward gets zeros instead of "
     "None for outputs that were not used."},
    {nullptr, nullptr, 0, nullptr},
};
}  // namespace

IntrusivePtr<Node> node_of_context(PyObject* o) {
  return as_function(o)->node.lock();
}

PyObject* context_of_node(Node* node) {
  auto* function = dynamic_cast<FunctionNode*>(node);
  return function == nullptr ? nullptr : function->context();
}

void init_autograd_function(PyObject* module) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(function_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(function_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(function_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(function_clear)},
      {Py_tp_members, function_members},
      {Py_tp_getset, function_getset},
      {Py_tp_methods, function_methods},
      {0, nullptr},
  };
  PyType_Spec spec = {
      "taeda._C._FunctionBase",
      sizeof(PyFunction),
      0,
      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC,
      slots};
  function_type = add_type(module, spec);
  add_members(function_type, node_methods, node_getset);
}

}  // namespace taeda::python
