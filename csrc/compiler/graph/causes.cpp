#include <taeda/csrc/compiler/graph/causes.h>

namespace taeda::compiler {

namespace {

void add(TangentSet& to, const TangentSet& from) {
  if (from.empty()) return;
  to.resize(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i]) to[i] = true;
  }
}

// By value, from the inputs on.
std::vector<TangentSet> spread(const Graph& graph, size_t first) {
  size_t count = graph.inputs.size() - first;
  std::vector<TangentSet> of(graph.values.size());
  for (size_t i = 0; i < count; ++i) {
    TangentSet& set = of[static_cast<size_t>(graph.inputs[first + i])];
    set.resize(count);
    set[i] = true;
  }
  for (const Node& node : graph.nodes) {
    TangentSet all;
    for (const Use& u : node.uses) add(all, of[static_cast<size_t>(u.value)]);
    for (ValueId id : node.results) {
      if (id != kNoValue) of[static_cast<size_t>(id)] = all;
    }
  }
  return of;
}

}  // namespace

std::vector<TangentSet> causes_of_gradients(const Graph& joint,
                                            size_t inputs,
                                            size_t outputs) {
  std::vector<TangentSet> of = spread(joint, inputs), out;
  for (size_t i = outputs; i < joint.outputs.size(); ++i) {
    ValueId id = joint.outputs[i];
    out.push_back(id == kNoValue ? TangentSet() : of[static_cast<size_t>(id)]);
  }
  return out;
}

std::vector<TangentSet> readers_of_saved(const Graph& backward, size_t saved) {
  std::vector<TangentSet> made = spread(backward, saved);
  std::vector<TangentSet> read(backward.values.size());
  for (size_t n = backward.nodes.size(); n-- > 0;) {
    const Node& node = backward.nodes[n];
    TangentSet all;
    for (ValueId id : node.results) {
      if (id == kNoValue) continue;
      // Behind the first call with a tangent all is linear in tangents.
      const TangentSet& own = made[static_cast<size_t>(id)];
      add(all, own.empty() ? read[static_cast<size_t>(id)] : own);
    }
    for (const Use& u : node.uses) add(read[static_cast<size_t>(u.value)], all);
  }
  std::vector<TangentSet> out;
  for (size_t i = 0; i < saved; ++i) {
    out.push_back(read[static_cast<size_t>(backward.inputs[i])]);
  }
  return out;
}

bool meets(const TangentSet& set, const TangentSet& arrived) {
  if (set.empty()) return true;
  for (size_t i = 0; i < set.size(); ++i) {
    if (set[i] && arrived[i]) return true;
  }
  return false;
}

}  // namespace taeda::compiler
