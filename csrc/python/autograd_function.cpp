// autograd.Function: nodes whose forward and backward are written in Python.
#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/inplace.h>
#include <taeda/csrc/autograd/record.h>
#include <taeda/csrc/python/autograd_common.h>
#include <taeda/gen/ops/zeros.h>

#include <structmember.h>
#include <cstddef>

namespace taeda::python {

PyTypeObject* function_type = nullptr;

namespace {
// Note [ctx]
// The Python object that forward and backward call `ctx` is also what
// `grad_fn` shows. The node owns it; it knows the node weakly. A call whose
// result needs no gradient makes a ctx and no node.
struct PyFunction {
  PyObject_HEAD WeakPtr<Node> node;
  PyObject* dict;
  PyObject* weakrefs;
  PyObject* to_save;             // tuple, until the call is recorded
  PyObject* dirty_tensors;       // tuple
  PyObject* non_differentiable;  // tuple
  PyObject* needs_input_grad;    // tuple of bool
  bool materialize_grads;
  bool has_state;  // whether the members above are constructed
};

PyFunction* as_function(PyObject* o) {
  return reinterpret_cast<PyFunction*>(o);
}

struct Names {
  PyObject* backward = PyUnicode_InternFromString("backward");
  PyObject* vjp = PyUnicode_InternFromString("vjp");
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
  std::vector<bool> saved_none;
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
  Ref out = checked(PyTuple_New(1 + static_cast<Py_ssize_t>(grads.size())));
  PyTuple_SET_ITEM(out.get(), 0, Py_NewRef(context()));
  for (size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined() && fill && i < results.size() && results[i].known) {
      const autograd::OutputInfo& r = results[i];
      grads[i] =
          ops::zeros(r.sizes, r.dtype, Layout::Strided, r.device, std::nullopt);
    }
    PyObject* item = wrap(std::move(grads[i]));
    if (item == nullptr) throw PythonError();
    PyTuple_SET_ITEM(out.get(), static_cast<Py_ssize_t>(i) + 1, item);
  }
  return out;
}

// What backward returned, one per tensor argument.
Tensors FunctionNode::spread(PyObject* returned) const {
  Ref values = as_tuple(returned);
  auto count = static_cast<size_t>(PyTuple_GET_SIZE(values.get()));
  auto item = [&](size_t i) {
    return PyTuple_GET_ITEM(values.get(), static_cast<Py_ssize_t>(i));
  };
  size_t expected = tensor_inputs.size();
  bool extra_none = count > expected;
  for (size_t i = expected; i < count; ++i) extra_none &= item(i) == Py_None;
  TAEDA_CHECK(count == expected || extra_none,
              "function ",
              name(),
              " returned an incorrect number of gradients (expected ",
              expected,
              ", got ",
              count,
              ")");
  Tensors out;
  for (size_t i = 0; i < expected; ++i) {
    PyObject* o = item(i);
    if (tensor_inputs[i]) {
      if (o != Py_None && !is_tensor(o)) {
        raise(PyExc_RuntimeError,
              str_cat(
                  "expected Variable or None (got ", Py_TYPE(o)->tp_name, ")"));
      }
      out.push_back(o == Py_None ? TensorBase() : unwrap(o));
    } else {
      TAEDA_CHECK(o == Py_None,
                  "function ",
                  name(),
                  " returned a gradient different from None at position ",
                  i + 1,
                  ", but the corresponding forward input was not a Variable");
    }
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
  Py_VISIT(self->to_save);
  Py_VISIT(self->dirty_tensors);
  Py_VISIT(self->non_differentiable);
  Py_VISIT(self->needs_input_grad);
  return 0;
}

int function_clear(PyObject* o) {
  PyFunction* self = as_function(o);
  Py_CLEAR(self->dict);
  Py_CLEAR(self->to_save);
  Py_CLEAR(self->dirty_tensors);
  Py_CLEAR(self->non_differentiable);
  Py_CLEAR(self->needs_input_grad);
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

FunctionNode* live(const IntrusivePtr<Node>& node) {
  return static_cast<FunctionNode*>(node.get());
}

PyObject* saved_tensors(PyObject* o, void*) {
  return guarded([&]() -> PyObject* {
    PyFunction* self = as_function(o);
    IntrusivePtr<Node> held = self->node.lock();
    if (!held) {
      if (self->to_save != nullptr) return Py_NewRef(self->to_save);
      raise(PyExc_RuntimeError,
            "Attribute 'saved_tensors' is invalid for this instance of "
            "_C._FunctionBase: its node in the graph is gone; keep the result "
            "of apply for as long as its grad_fn is used");
    }
    FunctionNode* node = live(held);
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
    Ref out = checked(PyTuple_New(static_cast<Py_ssize_t>(found.size())));
    for (size_t i = 0; i < found.size(); ++i) {
      PyTuple_SET_ITEM(
          out.get(), static_cast<Py_ssize_t>(i), wrap(std::move(found[i])));
    }
    return out.release();
  });
}

PyObject* save_for_backward(PyObject* o, PyObject* args) {
  Py_XSETREF(as_function(o)->to_save, Py_NewRef(args));
  Py_RETURN_NONE;
}
PyObject* mark_dirty(PyObject* o, PyObject* args) {
  Py_XSETREF(as_function(o)->dirty_tensors, Py_NewRef(args));
  Py_RETURN_NONE;
}
PyObject* mark_non_differentiable(PyObject* o, PyObject* args) {
  Py_XSETREF(as_function(o)->non_differentiable, Py_NewRef(args));
  Py_RETURN_NONE;
}
PyObject* set_materialize_grads(PyObject* o, PyObject* value) {
  int on = PyObject_IsTrue(value);
  if (on < 0) return nullptr;
  as_function(o)->materialize_grads = on != 0;
  Py_RETURN_NONE;
}

PyMemberDef function_members[] = {
    {"__dictoffset__",
     T_PYSSIZET,
     offsetof(PyFunction, dict),
     READONLY,
     nullptr},
    {"__weaklistoffset__",
     T_PYSSIZET,
     offsetof(PyFunction, weakrefs),
     READONLY,
     nullptr},
    {"to_save", T_OBJECT, offsetof(PyFunction, to_save), 0, nullptr},
    {"dirty_tensors",
     T_OBJECT,
     offsetof(PyFunction, dirty_tensors),
     0,
     nullptr},
    {"non_differentiable",
     T_OBJECT,
     offsetof(PyFunction, non_differentiable),
     0,
     nullptr},
    {"needs_input_grad",
     T_OBJECT,
     offsetof(PyFunction, needs_input_grad),
     0,
     nullptr},
    {"materialize_grads",
     T_BOOL,
     offsetof(PyFunction, materialize_grads),
     0,
     nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef function_getset[] = {
    {"saved_tensors", saved_tensors, nullptr, nullptr, nullptr},
    {"saved_variables", saved_tensors, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

// apply ----------------------------------------------------------------------

bool contains(PyObject* tuple, PyObject* o) {
  if (tuple == nullptr || !PyTuple_Check(tuple)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); ++i) {
    if (PyTuple_GET_ITEM(tuple, i) == o) return true;
  }
  return false;
}

// One call of Function.apply.
class Application {
 public:
  Application(PyObject* cls, PyObject* const* args, Py_ssize_t count)
      : cls_(cls), args_(args), count_(count) {}
  PyObject* run();

 private:
  void inspect_inputs();
  Ref call_forward();
  PyObject* record(PyObject* output, size_t total);
  void check_dirty(PyObject* outputs) const;
  void record_dirty(const TensorBase& t);
  TensorBase alias(const TensorBase& t) const;
  Ref record_all(Ref outputs);
  void save();
  bool is_input(PyObject* o) const {
    for (Py_ssize_t i = 0; i < count_; ++i) {
      if (args_[i] == o) return true;
    }
    return false;
  }
  PyFunction* state() const { return as_function(context_.get()); }

  PyObject* cls_;
  PyObject* const* args_;
  Py_ssize_t count_;
  Ref context_;
  IntrusivePtr<FunctionNode> node_;
};

void Application::inspect_inputs() {
  bool any = false;
  Ref needs = checked(PyTuple_New(count_));
  for (Py_ssize_t i = 0; i < count_; ++i) {
    bool on = is_tensor(args_[i]) && unwrap(args_[i]).defined() &&
              unwrap(args_[i]).requires_grad();
    any |= on;
    PyTuple_SET_ITEM(needs.get(), i, boolean(on));
  }
  state()->needs_input_grad = needs.release();
  if (!any || !grad_enabled()) return;
  node_ = make_intrusive<FunctionNode>(context_.get());
  node_->tensor_inputs.reserve(static_cast<size_t>(count_));
  for (Py_ssize_t i = 0; i < count_; ++i) {
    bool tensor = is_tensor(args_[i]);
    node_->tensor_inputs.push_back(tensor);
    if (tensor) {
      node_->add_next_edge(autograd::gradient_edge(unwrap(args_[i])));
    }
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
    for (Py_ssize_t i = 0; i < count_; ++i) all.push_back(args_[i]);
    return checked(PyObject_Vectorcall(
        forward.get(),
        all.data() + 1,
        static_cast<size_t>(count_ + 1) | PY_VECTORCALL_ARGUMENTS_OFFSET,
        nullptr));
  }
  Ref out = checked(PyObject_Vectorcall(
      forward.get(), args_, static_cast<size_t>(count_), nullptr));
  Ref inputs = checked(PyTuple_New(count_));
  for (Py_ssize_t i = 0; i < count_; ++i) {
    PyTuple_SET_ITEM(inputs.get(), i, Py_NewRef(args_[i]));
  }
  Ref setup = checked(PyObject_GetAttr(cls_, names().setup_context));
  checked(PyObject_CallFunctionObjArgs(
      setup.get(), context_.get(), inputs.get(), out.get(), nullptr));
  return out;
}

// A tensor over the same memory, for an input that is returned as it came.
TensorBase Application::alias(const TensorBase& t) const {
  TensorBase view = make_view(t, t.sizes(), t.strides(), t.storage_offset());
  view.impl()->set_view_creation(ViewCreation::CustomFunction);
  return view;
}

void Application::record_dirty(const TensorBase& t) {
  autograd::check_inplace(t, true);
  autograd::rebase_history(t, node_);
}

// What forward changes in place must be among its results (one or a tuple).
void Application::check_dirty(PyObject* outputs) const {
  PyObject* dirty = state()->dirty_tensors;
  if (!node_ || dirty == nullptr || !PyTuple_Check(dirty)) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(dirty); ++i) {
    PyObject* o = PyTuple_GET_ITEM(dirty, i);
    TAEDA_CHECK(o == outputs || contains(outputs, o),
                reinterpret_cast<PyTypeObject*>(cls_)->tp_name,
                ".forward: the tensor marked dirty at position ",
                static_cast<int64_t>(i),
                " is not returned; inputs that are modified in-place must all "
                "be outputs of the Function");
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
  bool dirty = contains(state()->dirty_tensors, o);
  bool through = is_input(o) && !dirty;
  if (contains(state()->non_differentiable, o) ||
      !autograd::is_differentiable(t.dtype())) {
    TAEDA_CHECK(!dirty,
                "a tensor that is marked dirty cannot be non-differentiable");
    node_->add_undefined_output();
    return through ? wrap(autograd::detach(t)) : Py_NewRef(o);
  }
  if (dirty) {
    record_dirty(t);
    return Py_NewRef(o);
  }
  if (through) {
    TensorBase view = alias(t);
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
  if (!PyTuple_Check(output.get())) {
    if (!is_tensor(output.get()) && !PyList_Check(output.get())) {
      if (output.get() == Py_None) return output;
    }
    if (!PyList_Check(output.get())) {
      check_dirty(output.get());
      return Ref(record(output.get(), 1));
    }
    output = checked(PyList_AsTuple(output.get()));
  }
  check_dirty(output.get());
  Py_ssize_t total = PyTuple_GET_SIZE(output.get());
  Ref out = checked(PyTuple_New(total));
  for (Py_ssize_t i = 0; i < total; ++i) {
    PyTuple_SET_ITEM(
        out.get(),
        i,
        record(PyTuple_GET_ITEM(output.get(), i), static_cast<size_t>(total)));
  }
  return out;
}

// After the results have their history, so that they can be told from inputs.
void Application::save() {
  Ref to_save(std::exchange(state()->to_save, nullptr));
  if (!to_save) return;
  if (!PyTuple_Check(to_save.get())) {
    raise(PyExc_TypeError,
          str_cat("saved_tensors must be a tuple, got ",
                  Py_TYPE(to_save.get())->tp_name));
  }
  Py_ssize_t count = PyTuple_GET_SIZE(to_save.get());
  node_->saved.reserve(static_cast<size_t>(count));
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* o = PyTuple_GET_ITEM(to_save.get(), i);
    autograd::SavedVariable& slot = node_->saved.emplace_back();
    if (o == Py_None) continue;
    if (!is_tensor(o)) {
      raise(PyExc_TypeError,
            str_cat("save_for_backward can only save variables, but argument ",
                    i,
                    " is of type ",
                    Py_TYPE(o)->tp_name));
    }
    const TensorBase& t = unwrap(o);
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
      if (two.get() != Py_True) return Application(cls, args, count).run();
    }
    // Keyword arguments and defaults become positions, for backward's sake.
    Ref bind = checked(PyObject_GetAttr(cls, names().bind));
    Ref all = checked(PyObject_Vectorcall(
        bind.get(), args, static_cast<size_t>(count), keywords));
    return Application(cls,
                       &PyTuple_GET_ITEM(all.get(), 0),
                       PyTuple_GET_SIZE(all.get()))
        .run();
  });
}

// (message, tensors): aliases that raise when a gradient reaches them.
PyObject* delayed_error(PyObject*, PyObject* args) {
  const char* message;
  PyObject* tensors;
  if (!PyArg_ParseTuple(args, "sO!", &message, &PyTuple_Type, &tensors)) {
    return nullptr;
  }
  return guarded([&] {
    auto node = make_intrusive<autograd::ErrorNode>(message);
    Py_ssize_t count = PyTuple_GET_SIZE(tensors);
    Ref out = checked(PyTuple_New(count));
    for (Py_ssize_t i = 0; i < count; ++i) {
      PyObject* o = PyTuple_GET_ITEM(tensors, i);
      if (!is_tensor(o)) {
        PyTuple_SET_ITEM(out.get(), i, Py_NewRef(o));
        continue;
      }
      TensorBase t = autograd::detach(unwrap(o));
      autograd::set_history(t, node);
      PyTuple_SET_ITEM(out.get(), i, wrap(std::move(t)));
    }
    return out.release();
  });
}

PyMethodDef function_methods[] = {
    {"apply",
     (PyCFunction)(void (*)(void))function_apply,
     METH_FASTCALL | METH_KEYWORDS | METH_CLASS,
     "apply(*args)\n\nRuns forward and records backward."},
    {"save_for_backward",
     save_for_backward,
     METH_VARARGS,
     "save_for_backward(*tensors)\n\nKeeps inputs or outputs of forward; "
     "backward reads them as ctx.saved_tensors."},
    {"mark_dirty",
     mark_dirty,
     METH_VARARGS,
     "mark_dirty(*args)\n\nNames the inputs that forward changes in place."},
    {"mark_non_differentiable",
     mark_non_differentiable,
     METH_VARARGS,
     "mark_non_differentiable(*args)\n\nNames outputs without gradient."},
    {"set_materialize_grads",
     set_materialize_grads,
     METH_O,
     "set_materialize_grads(value)\n\nWhether backward gets zeros instead of "
     "None for outputs that were not used."},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef module_functions[] = {
    {"_delayed_error", delayed_error, METH_VARARGS, nullptr},
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
  for (PyGetSetDef* d = node_getset; d->name != nullptr; ++d) {
    Ref getter = checked(PyDescr_NewGetSet(function_type, d));
    check_status(
        PyDict_SetItemString(function_type->tp_dict, d->name, getter.get()));
  }
  for (PyMethodDef* d = node_methods; d->ml_name != nullptr; ++d) {
    Ref method = checked(PyDescr_NewMethod(function_type, d));
    check_status(
        PyDict_SetItemString(function_type->tp_dict, d->ml_name, method.get()));
  }
  PyType_Modified(function_type);
  check_status(PyModule_AddFunctions(module, module_functions));
}

}  // namespace taeda::python
