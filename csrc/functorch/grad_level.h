// Reverse mode as a level: func.grad, vjp, jacrev and their nesting.
#pragma once

#include <taeda/aten/core/level.h>

namespace taeda::functorch {

// Values of the level are wrappers, which autograd records like any tensor;
// what comes from outside is wrapped when it meets them, and so is a constant.
// Below autograd the call goes on with the values inside, and there with the
// levels outside: each level has its own graph. Once the level has ended, a
// wrapper stands for the value inside.
class TAEDA_API GradLevel final : public Level {
 public:
  GradLevel() : outer_grad_mode_(grad_enabled()) {}
  void call(const OperatorEntry& op, Stack& stack) override;
  void call_below_autograd(const OperatorEntry& op, Stack& stack) override;
  bool may_outlive() const override { return true; }
  const char* kind() const override { return "grad"; }

  TensorBase wrap(const TensorBase& t);
  // The value inside a wrapper of this level; others as they are.
  TensorBase unwrap(const TensorBase& t) const;
  bool outer_grad_mode() const { return outer_grad_mode_; }

 private:
  bool outer_grad_mode_;  // no_grad inside the level is the level's own affair
};

}  // namespace taeda::functorch
