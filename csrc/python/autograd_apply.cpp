// Function.apply: one call of a function written in Python.
#include <taeda/aten/core/level.h>
#include <taeda/csrc/autograd/function.h>
#include <taeda/csrc/python/autograd_function.h>

namespace taeda::python {

namespace {
bool contains(ArrayRef<PyObject*> objects, PyObject* o) {
  return std::find(objects.begin(), objects.end(), o) != objects.end();
}

// One call of Function.apply.
class Application {
 public:
  // `forward` is called in place of the class's own if it is not null.
  Application(PyObject* cls,
              ArrayRef<PyObject*> args,
              bool two_steps,
              PyObject* forward = nullptr)
      : cls_(cls), args_(args), two_steps_(two_steps), forward_(forward) {}
  PyObject* run();
  PyObject* context() const { return context_.get(); }

 private:
  void inspect_inputs();
  Ref call_forward();
  PyObject* record(PyObject* output, bool alone);
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
  bool two_steps_;  // forward, then setup_context
  PyObject* forward_;
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
  Ref forward =
      forward_ == nullptr ? attribute<"forward">(cls_) : Ref::borrow(forward_);
  GradModeGuard off(false);
  if (!two_steps_) {
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
  Ref setup = attribute<"setup_context">(cls_);
  checked(PyObject_CallFunctionObjArgs(
      setup.get(), context_.get(), inputs.get(), out.get(), nullptr));
  return out;
}

// What forward changes in place must be arguments, and among its results (one
// or a tuple).
void Application::check_dirty(PyObject* outputs) const {
  if (!node_) return;
  const char* name = reinterpret_cast<PyTypeObject*>(cls_)->tp_name;
  ArrayRef<PyObject*> dirty = marked(kDirty);
  for (size_t i = 0; i < dirty.size(); ++i) {
    TAEDA_CHECK(is_tensor(dirty[i]),
                message("{}.forward: mark_dirty can only accept variables, but "
                        "argument {} is of type {}",
                        name,
                        i,
                        type_name_of(dirty[i])));
    bool returned =
        dirty[i] == outputs ||
        (PyTuple_Check(outputs) && contains(items_of(outputs), dirty[i]));
    TAEDA_CHECK(returned,
                message("{}.forward: Some elements marked as dirty during the "
                        "forward method were not returned as output: the one "
                        "at position {}. Inputs that are modified in place "
                        "must all be outputs of the Function.",
                        name,
                        i));
    if (contains(args_, dirty[i])) continue;
    std::string text = message(
        "{}.forward: ctx.mark_dirty() received a tensor that was not an input. "
        "It is for inputs that forward has changed in place; position {} holds "
        "another tensor.",
        name,
        i);
    TAEDA_CHECK(!unwrap(dirty[i]).is_view(), text);
    check_status(PyErr_WarnEx(PyExc_UserWarning, text.c_str(), 1));
  }
}

// The result as the caller gets it: a new reference.
PyObject* Application::record(PyObject* o, bool alone) {
  TensorBase t = is_tensor(o) ? unwrap(o) : TensorBase();
  if (!node_) {
    bool made =
        t.defined() && t.is_view() && !contains(args_, o) && grad_enabled();
    if (made) autograd::mark_function_view(t, alone);
    return Py_NewRef(o);
  }
  node_->results.push_back(t.defined() ? autograd::OutputInfo(t)
                                       : autograd::OutputInfo());
  bool dirty = contains(marked(kDirty), o);
  bool through = !dirty && contains(args_, o);
  bool fixed = contains(marked(kNonDifferentiable), o);
  autograd::record_result(node_, t, {dirty, through, fixed, alone});
  return t.defined() ? wrap(std::move(t)) : Py_NewRef(o);
}

Ref Application::record_all(Ref output) {
  PyObject* o = output.get();
  if (o == Py_None) return output;
  if (PyList_Check(o)) output = checked(PyList_AsTuple(o));
  o = output.get();
  check_dirty(o);
  if (!PyTuple_Check(o)) return Ref(record(o, true));
  ArrayRef<PyObject*> items = items_of(o);
  return new_tuple(items.size(), [&](size_t i) {
    return record(items[i], items.size() == 1);
  });
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
    // A view that was changed in place has the node behind its own.
    bool is_output = (meta != nullptr && meta->grad_fn.get() == node_.get()) ||
                     contains(marked(kDirty), items[i]);
    slot.save(t, is_output);
  }
}

PyObject* Application::run() {
  Ref context_class = attribute<"_backward_cls">(cls_);
  auto* type = reinterpret_cast<PyTypeObject*>(context_class.get());
  context_ = checked(function_new(type, nullptr, nullptr));
  inspect_inputs();
  Ref out = record_all(call_forward());
  if (node_) {
    state()->node = WeakPtr<Node>(node_.get());
    save();
    // Results lead to the node, which holds the context.
    Py_CLEAR(state()->slots[kDirty]);
  }
  return out.release();
}

// The innermost level of the thread answers.
PyObject* apply_in_levels(PyObject* cls,
                          PyObject* const* args,
                          size_t count,
                          PyObject* keywords) {
  Ref bind = attribute<"_bind_arguments">(cls);
  Ref all = checked(PyObject_Vectorcall(bind.get(), args, count, keywords));
  Ref call = imported("taeda._functorch.custom_function", "call");
  return PyObject_CallFunctionObjArgs(call.get(), cls, all.get(), nullptr);
}
}  // namespace

PyObject* apply_function(PyObject* cls, PyObject* args, PyObject* forward) {
  bool two_steps = attribute<"_has_setup_context">(cls).get() == Py_True;
  PyObject* given = forward == Py_None ? nullptr : forward;
  Application application(cls, items_of(args), two_steps, given);
  Ref out = checked(application.run());
  return PyTuple_Pack(2, application.context(), out.get());
}

PyObject* function_apply(PyObject* cls,
                         PyObject* const* args,
                         Py_ssize_t count,
                         PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    auto n = static_cast<size_t>(count);
    bool named = keywords != nullptr && PyTuple_GET_SIZE(keywords) > 0;
    bool two_steps = attribute<"_has_setup_context">(cls).get() == Py_True;
    if (TAEDA_UNLIKELY(!levels().empty())) {
      return apply_in_levels(cls, args, n, keywords);
    }
    if (!named && !two_steps) return Application(cls, {args, n}, false).run();
    // Keyword arguments and defaults become positions, for backward's sake.
    Ref bind = attribute<"_bind_arguments">(cls);
    Ref all = checked(PyObject_Vectorcall(bind.get(), args, n, keywords));
    return Application(cls, items_of(all.get()), two_steps).run();
  });
}

}  // namespace taeda::python
