// A joint graph as a forward and a backward graph.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>

#include <optional>

namespace taeda::compiler {

struct PartitionOptions {
  // Whether cheap calls (pointwise ones and copies) may be made again in the
  // backward pass. Without it only views are.
  bool recompute = true;
  // The share of the bytes that would be saved without recomputing which may
  // be saved; below 1, calls that are not cheap are made again too.
  double budget = 1.0;
};

struct Split {
  // Outputs: those of the joint graph's forward part, then saved values that
  // are no inputs. Inputs: those of the joint graph without tangents.
  Graph forward;
  // Inputs: saved values, then tangents. Outputs: gradients.
  Graph backward;
  // Where the backward graph's first inputs come from: an input of the forward
  // graph, or an output.
  struct Saved {
    bool input = false;
    size_t index = 0;
  };
  std::vector<Saved> saved;
  std::vector<ValueId> saved_values;  // the same, in the joint graph
};

// `inputs` and `outputs` of the joint graph belong to the forward part;
// `written` says which of these inputs are written to afterwards.
Split partition(const Graph& joint,
                size_t inputs,
                size_t outputs,
                const std::vector<bool>& written,
                const PartitionOptions& options);

// The same graph, whose cheap calls are made again behind its own backward
// passes where that leaves less to be kept for them: Note [Saved values]. What
// is made behind them is fused among itself, lest it be made too early.
Graph made_again(const Graph& graph, const PartitionOptions& options);

// The backward graph of another pass over the same forward graph, which stands
// at the beginning of `joint`: computed from what was saved. Nothing where that
// does not do, or where random numbers would be drawn.
std::optional<Graph> backward_from(const Graph& joint,
                                   size_t inputs,
                                   const std::vector<ValueId>& saved);

}  // namespace taeda::compiler
