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

// A copy of `grad` with the strides that a grad of `variable` should have: the
// variable's own if it is dense, else row-major. Recorded in grad mode.
TAEDA_API Tensor clone_for_grad(const Tensor& grad, const Tensor& variable);
// a + b, into a's memory when nobody else can see it.
TAEDA_API Tensor sum_of(Tensor a, const Tensor& b);

}  // namespace taeda::autograd
