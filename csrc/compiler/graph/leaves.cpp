#include <taeda/csrc/compiler/graph/leaves.h>

#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/functorch/functional_level.h>
#include <taeda/gen/ops/add.h>

namespace taeda::compiler {

namespace {

using autograd::Tensors;

// As AccumulateGrad, of wrappers, whose memory is a matter of their level.
class Collector final : public autograd::Node {
 public:
  explicit Collector(const TensorBase& leaf) : Node(UINT64_MAX), leaf_(leaf) {
    add_output(autograd::OutputInfo(leaf));
  }
  std::string name() const override { return "AccumulateGrad"; }
  TensorImpl* accumulated_variable() const override { return leaf_.impl(); }
  Tensors apply(Tensors&& grads) override {
    TensorBase grad = std::move(grads[0]);
    if (!grad.defined()) return {};
    TAEDA_CHECK_AS(NotImplemented,
                   !grad_enabled(),
                   "compile: a backward pass that is recorded itself");
    TensorBase& known = autograd::meta_of(leaf_).grad;
    if (known.defined()) {
      ops::add_(known, grad);
    } else {
      known = is_own(grad) ? std::move(grad)
                           : autograd::clone_for_grad(grad, leaf_);
    }
    return {};
  }

 private:
  void release_resources() override {
    leaf_.reset();
    Node::release_resources();
  }
  // Whether nobody else may write to it, and it lies as a grad does.
  bool is_own(const TensorBase& grad) const {
    if (grad.impl()->use_count() != 1) return false;
    if (!autograd::has_wanted_strides(grad, leaf_)) return false;
    const auto& value = functorch::functional_value(grad);
    return value.memory->use_count() == 1 && value.steps.empty();
  }

  TensorBase leaf_;
};

class ReleasedNode final : public autograd::Node {
 public:
  explicit ReleasedNode(std::string message) : message_(std::move(message)) {}
  std::string name() const override { return "CompiledFunctionBackward"; }
  Tensors apply(Tensors&&) override {
    throw_error(ErrorKind::Runtime, message_);
  }

 private:
  std::string message_;
};

}  // namespace

IntrusivePtr<autograd::Node> collect_at(const TensorBase& leaf) {
  IntrusivePtr<autograd::Node> node = make_intrusive<Collector>(leaf);
  autograd::meta_of(leaf).accumulator = WeakPtr<autograd::Node>(node.get());
  return node;
}

IntrusivePtr<autograd::Node> released_node(std::string message) {
  return make_intrusive<ReleasedNode>(std::move(message));
}

std::vector<TensorBase> with_grads(std::span<const TensorBase> inputs,
                                   std::vector<size_t>& which) {
  std::vector<TensorBase> all(inputs.begin(), inputs.end());
  which.clear();
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad()) continue;
    const TensorBase& grad = autograd::grad_of(inputs[i]);
    if (!grad.defined()) continue;
    which.push_back(i);
    all.push_back(grad);
  }
  return all;
}

}  // namespace taeda::compiler
