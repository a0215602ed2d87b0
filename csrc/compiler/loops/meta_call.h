// A call of a graph on tensors of meta.
#pragma once

#include <taeda/aten/core/level.h>
#include <taeda/csrc/compiler/graph/graph.h>

namespace taeda::compiler::loops {

class MetaCall {
 public:
  // Expressions become those of `env`; without one they stay as they are.
  MetaCall(const Graph& graph, const Node& node, ShapeEnv* env = nullptr);

  // What the operator is called with, `given` for the tensors of the graph.
  Stack stack(std::span<const TensorBase> given) const;
  const std::vector<TensorBase>& inputs() const { return inputs_; }

 private:
  SymInt moved(const SymInt& v) const;
  std::vector<SymInt> moved(const std::vector<SymInt>& list) const;
  TensorBase meta(const Value& v) const;

  ShapeEnv* env_;
  const Node& node_;
  std::vector<IValue> arguments_;
  std::vector<TensorBase> inputs_;
};

// Whether no size, stride or argument of the call is an expression.
bool has_plain_sizes(const Graph& graph, const Node& node);

}  // namespace taeda::compiler::loops
