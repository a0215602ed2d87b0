// The class of ctx, and the backward side of its node.
#include <taeda/csrc/python/autograd_function.h>
#include <taeda/csrc/python/init.h>
#include <taeda/gen/ops/zeros.h>
#include <taeda/gen/sym/new_zeros.h>

#include <algorithm>

namespace taeda::python {

PyTypeObject* function_type = nullptr;

// The arguments of backward: ctx and the gradients as Python sees them, with
// zeros where that is asked for; boxed in a list that backward may empty.
Ref FunctionNode::gather(Tensors grads, bool boxed) const {
  bool fill = as_function(context())->materialize_grads;
  bool fixed = as_function(context())->materialize_fixed;
  auto is_filled = [&](size_t i) {
    return fill && i < results.size() && results[i].known &&
           (fixed || output(i).known);
  };
  auto gradient = [&](size_t i) {
    if (!grads[i].defined() && is_filled(i)) {
      const autograd::OutputInfo& r = results[i];
      auto given = std::find_if(grads.begin(),
                                grads.end(),
                                [](const Tensor& g) { return g.defined(); });
      // Of symbols: in the classes and modes of the gradient that arrived.
      bool beside = given != grads.end() && !r.symbols.empty();
      grads[i] =
          beside
              ? sym::new_zeros(*given, r.symbolic_sizes(), r.dtype)
              : ops::zeros(
                    r.sizes, r.dtype, Layout::Strided, r.device, std::nullopt);
    }
    return wrap(std::move(grads[i]));
  };
  if (boxed) {
    Ref list = new_list(grads.size(), gradient);
    return Ref(PyTuple_Pack(2, context(), list.get()));
  }
  return new_tuple(1 + grads.size(), [&](size_t place) {
    return place == 0 ? Py_NewRef(context()) : gradient(place - 1);
  });
}

namespace {
// A setting of the Function whose call the ctx belongs to.
template <FixedName Name>
bool has_setting(PyObject* context) {
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(context));
  Ref forward_class = attribute<"_forward_cls">(type);
  int on = PyObject_IsTrue(attribute<Name>(forward_class.get()).get());
  if (on < 0) throw PythonError();
  return on != 0;
}
}  // namespace

// What backward returned, one per tensor argument.
Tensors FunctionNode::spread(PyObject* returned) const {
  Ref values = as_tuple(returned);
  ArrayRef<PyObject*> items = items_of(values.get());
  size_t expected = tensor_inputs.size();
  bool fits = items.size() >= expected;
  for (size_t i = expected; i < items.size(); ++i) fits &= items[i] == Py_None;
  TAEDA_CHECK(fits,
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
  auto* type = reinterpret_cast<PyObject*>(Py_TYPE(context()));
  Ref forward_class = attribute<"_forward_cls">(type);
  Ref backward = attribute<"backward">(forward_class.get());
  bool boxed = has_setting<"boxed_grads_call">(context());
  Ref args = gather(std::move(grads), boxed);
  Ref returned = checked(PyObject_CallObject(backward.get(), args.get()));
  return spread(returned.get());
}

// The ctx object -----------------------------------------------------------

PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o == nullptr) return nullptr;
  new (&as_function(o)->node) WeakPtr<Node>();
  as_function(o)->materialize_grads = true;
  as_function(o)->materialize_fixed = true;
  return o;
}

namespace {
int function_traverse(PyObject* o, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(o));
  for (PyObject* slot : as_function(o)->slots) Py_VISIT(slot);
  return 0;
}

int function_clear(PyObject* o) {
  for (PyObject*& slot : as_function(o)->slots) Py_CLEAR(slot);
  return 0;
}

void function_dealloc(PyObject* o) {
  PyObject_GC_UnTrack(o);
  function_clear(o);
  as_function(o)->node.~WeakPtr<Node>();
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
    TAEDA_CHECK(!node->cleared,
                "saved_tensors can only be accessed once when "
                "clear_saved_tensors_on_access=True is set on the "
                "autograd.Function ",
                node->name());
    bool once =
        !node->saved.empty() && has_setting<"clear_saved_tensors_on_access">(o);
    std::vector<TensorBase> found;
    {
      // Another thread may hold the lock while it waits for the GIL.
      GilRelease no_gil(true);
      auto guard = node->lock();
      if (node->released && !node->saved.empty()) autograd::backward_twice();
      found = autograd::unpack_list(node->saved, *node);
      if (once) autograd::release_list(node->saved);
      node->cleared = once;
    }
    return wrap(std::move(found));
  });
}

PyObject* saved_variables(PyObject* o, void*) {
  int status = PyErr_WarnEx(PyExc_DeprecationWarning,
                            "ctx.saved_variables is deprecated: its name is "
                            "ctx.saved_tensors now",
                            1);
  return status < 0 ? nullptr : saved_tensors(o, nullptr);
}

// For programs that have their saved tensors by another way.
PyObject* clear_saved_tensors(PyObject* o, PyObject*) {
  return guarded([&]() -> PyObject* {
    IntrusivePtr<Node> held = as_function(o)->node.lock();
    if (held && has_setting<"clear_saved_tensors_on_access">(o)) {
      auto* node = static_cast<FunctionNode*>(held.get());
      GilRelease no_gil(true);
      auto guard = node->lock();
      autograd::release_list(node->saved);
      node->cleared = !node->saved.empty();
    }
    Py_RETURN_NONE;
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
constexpr Py_ssize_t kFixed = offsetof(PyFunction, materialize_fixed);
PyMemberDef function_members[] = {
    slot_member("to_save", kToSave),
    slot_member("dirty_tensors", kDirty),
    slot_member("non_differentiable", kNonDifferentiable),
    slot_member("needs_input_grad", kNeedsGrad),
    {"materialize_grads", T_BOOL, kMaterialize, 0, nullptr},
    {"_materialize_non_diff_grads", T_BOOL, kFixed, 0, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyGetSetDef function_getset[] = {
    {"saved_tensors", saved_tensors, nullptr, nullptr, nullptr},
    {"saved_variables", saved_variables, nullptr, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

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
    {"maybe_clear_saved_tensors",
     clear_saved_tensors,
     METH_NOARGS,
     "maybe_clear_saved_tensors()\n\nLets go of what was saved, where the "
     "function says clear_saved_tensors_on_access."},
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
  function_type = add_type(module,
                           "taeda._C._FunctionBase",
                           sizeof(PyFunction),
                           {slot(Py_tp_new, function_new),
                            slot(Py_tp_dealloc, function_dealloc),
                            slot(Py_tp_traverse, function_traverse),
                            slot(Py_tp_clear, function_clear),
                            {Py_tp_members, function_members},
                            {Py_tp_getset, function_getset},
                            {Py_tp_methods, function_methods}},
                           Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC);
  add_members(function_type, node_methods, node_getset);
}

}  // namespace taeda::python
