// What autograd keeps with a tensor, and the functions that read and change it.
#pragma once

#include <taeda/csrc/autograd/node.h>

#include <vector>

namespace taeda::autograd {

// Runs when a leaf's grad has been added to.
struct TAEDA_API AccumulateHook {
  virtual ~AccumulateHook() = default;
  virtual void call(const Tensor& variable) = 0;
};

struct LeafHooks {
  std::vector<std::shared_ptr<TensorHook>> before;
  std::shared_ptr<AccumulateHook> after;
};

class TAEDA_API AutogradMeta final : public AutogradMetaBase {
 public:
  ~AutogradMeta() override;

  Tensor grad;
  // Null for leaves. Read it through grad_fn(), which keeps views up to date.
  IntrusivePtr<Node> grad_fn;
  uint32_t output_nr = 0;
  // Of a view: the version that grad_fn belongs to.
  uint32_t view_version = 0;
  bool retains_grad = false;
  WeakPtr<Node> accumulator;
  std::unique_ptr<LeafHooks> leaf_hooks;
  // The hook that stands for the Python object's dict of hooks, if there is
  // one.
  std::shared_ptr<TensorHook> python_hooks;
};

inline AutogradMeta* meta_or_null(const Tensor& t) {
  return static_cast<AutogradMeta*>(t.impl()->autograd_meta());
}
TAEDA_API AutogradMeta& meta_of(const Tensor& t);

inline bool is_differentiable(ScalarType t) {
  return is_floating(t) || is_complex(t);
}

TAEDA_API const Tensor& grad_of(const Tensor& t);
// Checks dtype, shape and device against the variable (undefined: no grad).
TAEDA_API void set_grad(const Tensor& t, Tensor grad);
// The node that made t; null for leaves.
TAEDA_API IntrusivePtr<Node> grad_fn(const Tensor& t);
inline bool is_leaf(const Tensor& t) {
  return !t.requires_grad() || !grad_fn(t);
}
TAEDA_API uint32_t output_nr(const Tensor& t);
TAEDA_API void set_requires_grad(const Tensor& t, bool on);
// The AccumulateGrad node of a leaf, one per tensor while anybody holds it.
TAEDA_API IntrusivePtr<Node> grad_accumulator(const Tensor& t);
TAEDA_API IntrusivePtr<Node> grad_accumulator_or_null(const Tensor& t);
// Where a gradient with respect to t goes.
TAEDA_API Edge gradient_edge(const Tensor& t);
// Makes t an output of edge.node; a retained grad stays retained.
TAEDA_API void set_gradient_edge(const Tensor& t, Edge edge);
// Adds t to the outputs of `node`; tensors of integer dtype stay outside.
TAEDA_API void set_history(const Tensor& t, const IntrusivePtr<Node>& node);

// Hooks. The tensor must require grad.
TAEDA_API void register_hook(const Tensor& t, std::shared_ptr<TensorHook> h);
// Takes a hook of a leaf away again.
TAEDA_API void remove_leaf_hook(const Tensor& t, const TensorHook* hook);
TAEDA_API void set_accumulate_hook(const Tensor& t,
                                   std::shared_ptr<AccumulateHook> h);
TAEDA_API void retain_grad(const Tensor& t);
TAEDA_API bool retains_grad(const Tensor& t);

// The same storage without history; in-place changes are seen by both.
TAEDA_API Tensor detach(const Tensor& t);
TAEDA_API void detach_inplace(const Tensor& t);
// `t.data`: the same storage with a version count of its own.
TAEDA_API Tensor variable_data(const Tensor& t);
// `t.data = value`.
TAEDA_API void set_data(const Tensor& t, const Tensor& value);

}  // namespace taeda::autograd
