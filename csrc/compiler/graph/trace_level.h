// The level that notes calls; see Note [Tracing].
#pragma once

#include <taeda/csrc/autograd/engine.h>
#include <taeda/csrc/compiler/graph/graph.h>

#include <unordered_map>

namespace taeda::compiler {

class TraceLevel final : public Level {
 public:
  void call(const OperatorEntry& op, Stack& stack) override;
  bool is_transform() const override { return false; }
  const char* kind() const override { return "compile"; }

  // A new input of the graph with the geometry and dtype of `like`.
  TensorBase add_input(const TensorBase& like, Device device);
  // The value that a wrapper stands for; of other tensors, a constant.
  ValueId id_of(const TensorBase& t);
  Graph& graph() { return graph_; }

 private:
  ValueId add_value(const TensorBase& meta, Device device);
  TensorBase wrap(ValueId id, const TensorBase& meta);
  void take_arguments(std::span<IValue> args, Node& node);
  bool folds(const OperatorEntry& op, std::span<IValue> args) const;
  ValueId argument_like(const TensorBase& meta, const Node& node) const;
  ValueId root_of(const TensorBase& meta, const Node& node) const;
  void add_results(const OperatorEntry& op, Node node, Stack& results);
  Device device_for(const OperatorEntry& op, const Node& node) const;

  // The pass that this trace is made in, if any: others are the program's.
  uint64_t outer_pass_ = autograd::current_task_id();
  Graph graph_;
  std::vector<TensorBase> metas_;  // by value; alive, so that none is reused
  std::unordered_map<const TensorImpl*, ValueId> constants_;
};

}  // namespace taeda::compiler
