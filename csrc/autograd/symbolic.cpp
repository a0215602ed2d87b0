// Recording calls on tensors whose sizes are symbols.
#include <taeda/csrc/autograd/graph.h>
#include <taeda/csrc/autograd/inplace.h>
#include <taeda/csrc/autograd/record.h>

#include <taeda/aten/iter/symbolic.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/detach.h>

namespace taeda::autograd {

namespace {

// Note [Recording symbolic calls]
// Generated wrappers keep sizes as integers. The key SymbolicGrad lies above
// Autograd and is in the keys of symbolic tensors, so that these calls come
// here instead: the node keeps the arguments themselves. Its backward makes the
// call again below this key, by the wrapper of the record, whose formula reads
// integers: there, symbols that it reads are fixed to their hints.
constexpr DispatchKeySet kSymbolicGrad{DispatchKey::SymbolicGrad};
constexpr DispatchKeySet kBothGrads{DispatchKey::SymbolicGrad,
                                    DispatchKey::Autograd};

bool has_written(const OperatorEntry& op, size_t i) {
  return op.info->values[i].has(ArgInfo::kWritten);
}

// The value alone: the edges keep its history. By the operator, which gives
// tensors of Python's classes as such.
TensorBase without_history(const TensorBase& t) {
  ExcludeKeysGuard below(kBothGrads);
  return ops::detach(t);
}

class CallNode final : public Node {
 public:
  CallNode(const OperatorEntry& op, std::span<IValue> arguments)
      : op_(&op), arguments_(arguments.begin(), arguments.end()) {
    each_tensor(std::span(arguments_), [&](TensorBase& t) {
      add_edges(*this, t);
      if (t.requires_grad()) t = without_history(t);
    });
  }
  std::string name() const override {
    std::string text;
    bool starts = true;
    for (char c : std::string_view(op_->name)) {
      if (c != '_') text += starts && c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c;
      starts = c == '_';
    }
    return text + "Backward0";
  }
  Tensors apply(Tensors&& grads) override;
  void release_variables() override {
    auto guard = lock();
    arguments_.clear();
    released_ = true;
  }

 private:
  const OperatorEntry* op_;
  Stack arguments_;
  bool released_ = false;
};

Tensors CallNode::apply(Tensors&& grads) {
  TAEDA_CHECK(!released_,
              "Trying to backward through the graph a second time (or directly "
              "access saved tensors after they have already been freed).");
  ExcludeKeysGuard below(kSymbolicGrad);
  GradModeGuard record(true);
  Stack stack(arguments_);
  std::vector<Tensor> inputs;
  std::vector<size_t> places;
  size_t edge = 0;
  for (size_t i = 0; i < stack.size(); ++i) {
    each_tensor(stack[i], [&](TensorBase& t) {
      size_t at = edge++;
      if (!should_compute(at)) return;
      t = without_history(t);
      set_requires_grad(t, true);
      inputs.push_back(t);
      places.push_back(at);
      if (has_written(*op_, i)) t = ops::clone(t);
    });
  }
  call_operator(*op_, stack);
  std::vector<Tensor> outputs, arriving;
  size_t k = 0;
  each_tensor(std::span(stack), [&](TensorBase& t) {
    size_t at = k++;
    if (at >= grads.size() || !grads[at].defined() || !t.requires_grad())
      return;
    outputs.push_back(t);
    arriving.push_back(grads[at]);
  });
  Tensors out(next_edges().size());
  std::vector<Tensor> found = grad(outputs,
                                   inputs,
                                   arriving,
                                   /*keep_graph=*/false,
                                   /*create_graph=*/false,
                                   /*allow_unused=*/true);
  for (size_t i = 0; i < found.size(); ++i) out[places[i]] = found[i];
  return out;
}

bool wants_grad(const OperatorEntry& op, std::span<IValue> arguments) {
  if (!grad_enabled() || op.info->form == Form::Out) return false;
  bool wanted = false;
  each_tensor(arguments, [&](TensorBase& t) { wanted |= t.requires_grad(); });
  return wanted && op.info->record->differentiable;
}

struct SymbolicGradKernel final : BoxedKernel {
  void call(const OperatorEntry& op, DispatchKeySet, Stack& stack) override {
    if (is_transparent(op)) {
      run_composite(op, stack);
      return;
    }
    std::span<IValue> arguments = arguments_on(op, stack);
    bool wanted = wants_grad(op, arguments);
    IntrusivePtr<Node> node;
    if (op.info->form == Form::InPlace &&
        arguments[op.written_first].is<TensorBase>()) {
      check_inplace(arguments[op.written_first].get<TensorBase>(), wanted);
    }
    if (wanted) node = make_intrusive<CallNode>(op, arguments);
    {
      ExcludeKeysGuard below(kBothGrads);
      call_operator(op, stack);
    }
    if (!node) return;
    size_t base = stack.size() - op.info->results;
    std::span<IValue> results(stack.data() + base, op.info->results);
    for (IValue& v : results) record_result(op, v, node);
  }

  static void record_result(const OperatorEntry& op,
                            IValue& v,
                            const IntrusivePtr<Node>& node) {
    bool inplace = op.info->form == Form::InPlace;
    each_tensor(v, [&](TensorBase& t) {
      if (inplace) {
        rebase_history(t, node);
      } else if (is_floating(t.dtype()) || is_complex(t.dtype())) {
        set_result_history(t, node);
      } else {
        node->add_undefined_output();
      }
    });
    bool several = v.is<std::vector<TensorBase>>();
    if (several && viewed_argument(*op.info, 0) >= 0) {
      mark_multi_output_views(v.get<std::vector<TensorBase>>());
    }
  }
};

}  // namespace
}  // namespace taeda::autograd

namespace taeda {

void register_symbolic_grad_kernel(Dispatcher& dispatcher);
void register_symbolic_grad_kernel(Dispatcher& dispatcher) {
  static autograd::SymbolicGradKernel kernel;
  dispatcher.set_fallback(DispatchKey::SymbolicGrad, &kernel);
}

}  // namespace taeda
