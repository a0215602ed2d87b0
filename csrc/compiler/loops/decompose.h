// Kernels as the calls that their record says they mean.
#pragma once

#include <taeda/csrc/compiler/loops/calls.h>

namespace taeda::compiler::loops {

// One call of the graph, as the calls that are lowered for it.
struct Item {
  std::vector<Node> nodes;
  std::vector<Call> calls;
  bool fusible = false;
  // Over memory, of the kernels that the call runs by itself; two where a loop
  // is better than its kernel without neighbours, too.
  size_t passes = 1;
};

// The item of a node. A kernel with a definition is written out; the values in
// between are added to the graph, those of its results stay.
Item item_of(Graph& graph, const Node& node);

}  // namespace taeda::compiler::loops
