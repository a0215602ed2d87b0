// The ctx of functions whose forward and backward are written in Python, and
// their nodes.
#pragma once

#include <taeda/csrc/autograd/graph.h>
#include <taeda/csrc/python/autograd_common.h>

namespace taeda::python {

// Note [ctx]
// The Python object that forward and backward call `ctx` is also what
// `grad_fn` shows. The node owns it; it knows the node weakly. A call whose
// result needs no gradient makes a ctx and no node.
enum Slot { kToSave, kDirty, kNonDifferentiable, kNeedsGrad, kSlots };
struct PyFunction {
  PyObject_HEAD WeakPtr<Node> node;
  PyObject* slots[kSlots];  // tuples; kToSave until the call is recorded
  bool materialize_grads;
  bool materialize_fixed;  // those of results without a derivative too
};

inline PyFunction* as_function(PyObject* o) {
  return reinterpret_cast<PyFunction*>(o);
}
// A new ctx of its class.
PyObject* function_new(PyTypeObject* type, PyObject*, PyObject*);
// Function.apply, a class method.
PyObject* function_apply(PyObject* cls,
                         PyObject* const* args,
                         Py_ssize_t count,
                         PyObject* keywords);

// One call within the innermost level, whose forward is `forward` unless that
// is None: a tuple (ctx, what apply returns).
PyObject* apply_function(PyObject* cls, PyObject* args, PyObject* forward);

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
  bool cleared = false;  // by the one reading that the function allows
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
  Ref gather(Tensors grads, bool boxed) const;
  Tensors spread(PyObject* returned) const;
  Held context_;
  std::string class_name_;
};

}  // namespace taeda::python
