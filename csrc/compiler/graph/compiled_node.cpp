#include <taeda/csrc/compiler/graph/compiled_node.h>

#include <taeda/csrc/autograd/engine.h>
#include <taeda/csrc/autograd/variable.h>
#include <taeda/csrc/compiler/graph/replay.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>

namespace taeda::compiler {

namespace {

constexpr const char* kTwice =
    "torch.compile with aot_autograd does not currently support double "
    "backward";

// Results of a backward pass that was to be recorded raise in a second one.
void refuse_double_backward(autograd::Tensors& grads,
                            std::span<const TensorBase> inputs) {
  auto node = make_intrusive<autograd::ErrorNode>(kTwice);
  bool recorded = false;
  for (const TensorBase& t : inputs) {
    if (!t.defined() || !t.requires_grad()) continue;
    node->add_next_edge(autograd::gradient_edge(t));
    recorded = true;
  }
  if (!recorded) return;
  for (TensorBase& g : grads) {
    if (!g.defined() || !autograd::is_differentiable(g.dtype())) continue;
    if (g.requires_grad()) g = autograd::detach(g);
    autograd::set_history(g, node);
  }
}

}  // namespace

DimVector CompiledNode::numbers() const {
  DimVector out;
  for (const SymInt& v : symbols_) out.push_back(v.guard());
  return out;
}

void CompiledNode::release_variables() {
  auto guard = lock();
  autograd::release_list(saved_);
}

// What the pass will not need again is let go while it runs.
std::vector<TensorBase> CompiledNode::take_saved(
    const std::vector<bool>& reads) {
  auto guard = lock();
  std::vector<TensorBase> values;
  values.reserve(saved_.size() + program_->tangents_.size());
  for (size_t i = 0; i < saved_.size(); ++i) {
    bool read = reads[i] || saved_[i].released();
    try {
      values.push_back(saved_[i].unpack(*this));
    } catch (const Error&) {
      // Changed since: that matters only to a gradient that is asked for.
      if (read) throw;
      values.push_back(unread(i));
    }
  }
  if (!autograd::task_keeps_graph()) autograd::release_list(saved_);
  return values;
}

// In the place of a saved value that only meets zeros, or nothing.
TensorBase CompiledNode::unread(size_t saved) const {
  const Graph& graph = program_->backward_->graph();
  const Value& v = graph[graph.inputs[saved]];
  Executor::Layout layout =
      program_->backward_->layout_of_input(saved, numbers());
  GradModeGuard off(false);
  TensorBase ones = ops::full(layout.sizes,
                              Scalar(is_integral(v.dtype, true) ? 0 : 1),
                              v.dtype,
                              std::nullopt,
                              v.device);
  return wrapped_or_null(ones) != nullptr
             ? laid_out_by(ones, as_symbolic(layout.strides).vec())
             : laid_out(ones, layout.strides);
}

TensorBase CompiledNode::tangent(size_t output, const TensorBase& grad) const {
  const Graph& graph = program_->backward_->graph();
  auto place = static_cast<size_t>(program_->tangents_[output]);
  size_t input = program_->saved_.size() + place;
  const Value& v = graph[graph.inputs[input]];
  if (wrapped_or_null(grad) != nullptr) {
    SizesOf sizes(graph, symbols_);
    std::vector<SymInt> strides;
    for (const SymInt& s : v.strides) strides.push_back(sizes(s));
    return laid_out_by(grad, strides);
  }
  Executor::Layout layout =
      program_->backward_->layout_of_input(input, numbers());
  if (grad.defined()) return laid_out(grad, layout.strides);
  TensorBase zeros = ops::zeros(layout.sizes, v.dtype, std::nullopt, v.device);
  return wrapped_or_null(zeros) != nullptr ? zeros
                                           : laid_out(zeros, layout.strides);
}

// Which saved values the graph of all tangents uses with those that arrived.
std::vector<bool> CompiledNode::readers(const TangentSet& arrived) const {
  const std::vector<TangentSet>& readers = program_->readers_;
  std::vector<bool> out(readers.size());
  for (size_t i = 0; i < out.size(); ++i) out[i] = meets(readers[i], arrived);
  return out;
}

autograd::Tensors CompiledNode::apply(autograd::Tensors&& grads) {
  size_t count = next_edges().size();
  autograd::Tensors out(count);
  TangentSet arrived(grads.size());
  size_t missing = 0;
  for (size_t i = 0; i < grads.size(); ++i) {
    arrived[i] = grads[i].defined();
    missing += arrived[i] ? 0 : 1;
  }
  if (missing == arrived.size()) return out;
  const Backwards::Pass* pass = missing == 0 || !program_->others_
                                    ? nullptr
                                    : program_->others_->of(arrived);
  std::vector<TensorBase> inputs =
      missing == 0      ? take_saved(program_->all_readers_)
      : pass != nullptr ? take_saved(pass->reads)
                        : take_saved(readers(arrived));
  std::vector<TensorBase> watched;
  if (grad_enabled()) {
    watched.assign(inputs.begin(), inputs.end());
    watched.insert(watched.end(), grads.begin(), grads.end());
  }
  {
    GradModeGuard off(false);
    size_t next = 0;
    for (size_t i = 0; i < program_->tangents_.size(); ++i) {
      if (program_->tangents_[i] < 0) continue;
      bool unread = pass != nullptr && !arrived[next];
      inputs.push_back(unread ? TensorBase() : tangent(i, grads[next]));
      grads[next++].reset();
    }
  }
  const Executor& executor =
      pass != nullptr ? *pass->executor : *program_->backward_;
  // Stand-ins of another trace, which the graph's calls become part of.
  bool traced =
      std::any_of(inputs.begin(), inputs.end(), [](const TensorBase& t) {
        return wrapped_or_null(t) != nullptr;
      });
  std::vector<TensorBase> found =
      traced ? replay(executor.graph(), std::move(inputs), symbols_)
             : executor.run(std::move(inputs), numbers());
  for (size_t i = 0; i < count; ++i) {
    if (!should_compute(i)) continue;
    bool reached = pass != nullptr || meets(program_->causes_[i], arrived);
    if (reached) out[i] = std::move(found[i]);
  }
  if (!watched.empty()) refuse_double_backward(out, watched);
  return out;
}

}  // namespace taeda::compiler
