// A graph's calls, made again one by one through the dispatcher.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>

#include <span>

namespace taeda::compiler {

// Sizes of a graph where its symbols are other sizes, which may be symbols of
// another env.
class SizesOf {
 public:
  SizesOf(const Graph& graph, SymIntArrayRef symbols);
  SymInt operator()(const SymInt& v) const;

 private:
  SymInt built(const symbolic::Expressions& e, symbolic::Id id) const;
  std::unordered_map<symbolic::Id, SymInt> values_;
};

// What the graph's outputs are for these inputs, which may be wrappers of a
// level: it then sees each call, those of fused regions too. `symbols`: what
// the graph's stand for.
std::vector<TensorBase> replay(const Graph& graph,
                               std::vector<TensorBase> inputs,
                               SymIntArrayRef symbols);

// A wrapper with these strides: itself, or a copy.
TensorBase laid_out_by(const TensorBase& t, const std::vector<SymInt>& strides);

}  // namespace taeda::compiler
