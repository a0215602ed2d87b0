// Gradients in C++: backward(), grad(), and functions with a derivative of
// one's own. Names and calls are those of PyTorch's C++ front end.
#pragma once

#include <taeda/csrc/autograd/function.h>
#include <taeda/csrc/autograd/graph.h>
#include <taeda/gen/tensor.h>

#include <concepts>
#include <typeinfo>

namespace taeda {
namespace autograd {

using Variable = ::taeda::Tensor;
using variable_list = std::vector<Variable>;
using tensor_list = variable_list;

namespace detail {
inline std::vector<TensorBase> plain(const variable_list& list) {
  return {list.begin(), list.end()};
}
inline variable_list full(const std::vector<TensorBase>& list) {
  return {list.begin(), list.end()};
}
}  // namespace detail

// What a Function's forward and backward get.
class AutogradContext final : public FunctionContext {
 public:
  void save_for_backward(const variable_list& list) {
    to_save_ = detail::plain(list);
  }
  variable_list get_saved_variables() const { return detail::full(saved()); }
  void mark_dirty(const variable_list& list) { dirty_ = detail::plain(list); }
  void mark_non_differentiable(const variable_list& list) {
    non_differentiable_ = detail::plain(list);
  }
};

// A differentiable function: derive `struct F : Function<F>` and give it
//   static Tensor (or variable_list) forward(AutogradContext*, arguments...)
//   static variable_list backward(AutogradContext*, variable_list grads)
// where backward returns one gradient per argument of forward, undefined for
// those that are no tensors. F::apply(arguments...) calls it.
template <class T>
class Function {
 public:
  template <class... A>
  static auto apply(A&&... arguments) {
    auto context = std::make_unique<AutogradContext>();
    AutogradContext* ctx = context.get();
    auto node = make_intrusive<FunctionNode>(
        class_name(typeid(T).name()), std::move(context), &call_backward);
    (add(*node, arguments), ...);
    auto results = [&] {
      GradModeGuard off(false);
      return T::forward(ctx, std::forward<A>(arguments)...);
    }();
    record(*node, results);
    return results;
  }

 private:
  template <class A>
  static void add(FunctionNode& node, const A& argument) {
    if constexpr (std::is_base_of_v<TensorBase, A>) {
      node.add_argument(static_cast<const TensorBase&>(argument));
    } else if constexpr (std::convertible_to<A, OptionalTensor>) {
      node.add_argument(OptionalTensor(argument));
    } else {
      node.add_other_argument();
    }
  }
  static void record(FunctionNode& node, Variable& result) {
    TensorBase* one[] = {&result};
    node.record(one);
  }
  static void record(FunctionNode& node, variable_list& results) {
    SmallVector<TensorBase*, 4> all;
    for (Variable& t : results) all.push_back(&t);
    node.record(all);
  }
  static std::vector<TensorBase> call_backward(FunctionContext& context,
                                               std::vector<TensorBase> grads) {
    auto* ctx = static_cast<AutogradContext*>(&context);
    return detail::plain(T::backward(ctx, detail::full(grads)));
  }
};

}  // namespace autograd

inline void Tensor::backward(const TensorBase& gradient,
                             bool retain_graph,
                             bool create_graph) const {
  const TensorBase grads[] = {gradient};
  autograd::backward(
      {*this},
      gradient.defined() ? TensorBaseList(grads) : TensorBaseList(),
      retain_graph,
      create_graph);
}
inline Tensor Tensor::grad() const { return autograd::grad_of(*this); }
inline const Tensor& Tensor::set_requires_grad(bool on) const {
  autograd::set_requires_grad(*this, on);
  return *this;
}
inline const Tensor& Tensor::requires_grad_(bool on) const {
  return set_requires_grad(on);
}
inline Tensor made_with(const TensorOptions& options, Tensor made) {
  if (options.requires_grad()) autograd::set_requires_grad(made, true);
  return made;
}

}  // namespace taeda
