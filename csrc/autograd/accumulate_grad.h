// Leaves of the graph: adds what arrives to the variable's grad.
#pragma once

#include <taeda/csrc/autograd/variable.h>

namespace taeda::autograd {

class TAEDA_API AccumulateGrad final : public Node {
 public:
  explicit AccumulateGrad(const Tensor& variable);
  std::string name() const override { return "AccumulateGrad"; }
  Tensors apply(Tensors&& grads) override;
  TensorImpl* accumulated_variable() const override { return variable_.impl(); }
  const Tensor& variable() const { return variable_; }

 private:
  void release_resources() override {
    variable_.reset();
    Node::release_resources();
  }
  Tensor variable_;
};

// The hook that set_accumulate_hook has set, if there is one.
TAEDA_API std::shared_ptr<AccumulateHook> accumulate_hook(const Tensor& t);
// Hooks of C++ beside that one, and after it. They are called whenever a pass
// has come to the leaf, also where nothing was added to its grad.
TAEDA_API void add_leaf_end_hook(const Tensor& t,
                                 std::shared_ptr<AccumulateHook> hook);
TAEDA_API void remove_leaf_end_hook(const Tensor& t,
                                    const AccumulateHook* hook);

// What a leaf has in place of its one hook when there are others beside it, or
// when its gradient is to have a dtype of its own.
struct AccumulateHooks final : AccumulateHook {
  void call(const Tensor& variable) override;
  void call_others(const Tensor& variable);
  std::shared_ptr<AccumulateHook> first;
  std::vector<std::shared_ptr<AccumulateHook>> others;
  // Undefined where gradients keep the dtype that they come in; absent where
  // they have the tensor's.
  std::optional<ScalarType> grad_dtype;
};

// The next graph makes another accumulator. Defined in variable.cpp.
void forget_accumulator(const Tensor& leaf);
// The dtype of a leaf's grad, to which gradients are cast; Undefined for any.
TAEDA_API ScalarType grad_dtype(const Tensor& leaf);
// Refused where there is a grad of another dtype.
TAEDA_API void set_grad_dtype(const Tensor& leaf, ScalarType dtype);

// A leaf at which nothing happens but that gradients are added to its grad.
TAEDA_API bool is_plain_leaf(const Tensor& t);
// Whether `grad` lies as a grad of `variable` does.
TAEDA_API bool has_wanted_strides(const Tensor& grad, const Tensor& variable);
// A copy of `grad` with the strides that a grad of `variable` should have: the
// variable's own if it is dense, else row-major. Recorded in grad mode.
TAEDA_API Tensor clone_for_grad(const Tensor& grad, const Tensor& variable);
// a + b, into a's memory when nobody else can see it.
TAEDA_API Tensor sum_of(Tensor a, const Tensor& b);

}  // namespace taeda::autograd
