#include <taeda/csrc/compiler/graph/overwrite.h>

#include <taeda/csrc/compiler/graph/passes.h>

#include <algorithm>

namespace taeda::compiler {

namespace {

size_t slot(ValueId id) { return static_cast<size_t>(id); }

ValueId root_of(const Graph& graph, ValueId id) {
  ValueId base = graph[id].base;
  return base == kNoValue ? id : base;
}

bool lie_alike(const Value& a, const Value& b) {
  if (a.dtype != b.dtype || !(a.device == b.device)) return false;
  if (a.lazy || b.lazy || !same(a.sizes, b.sizes)) return false;
  for (size_t d = 0; d < a.sizes.size(); ++d) {
    bool counts = !same(a.sizes[d], 1);
    if (counts && !same(a.strides[d], b.strides[d])) return false;
  }
  return true;
}

bool is_output_once(const Graph& graph, ValueId id) {
  return std::count_if(
             graph.outputs.begin(), graph.outputs.end(), [&](ValueId o) {
               return o != kNoValue && root_of(graph, o) == id;
             }) == 1;
}

// The region of the result and the input agree, as far as these two know.
bool is_candidate(const Graph& graph, const Overwrite& w) {
  const Value& made = graph[w.output];
  if (made.node < 0 || made.base != kNoValue) return false;
  const Node& node = graph.nodes[static_cast<size_t>(made.node)];
  if (!node.region || !lie_alike(made, graph[w.input])) return false;
  if (!is_output_once(graph, w.output)) return false;
  auto result = std::find(node.results.begin(), node.results.end(), w.output);
  auto output = static_cast<size_t>(result - node.results.begin());
  for (size_t i = 0; i < node.uses.size(); ++i) {
    ValueId used = node.uses[i].value;
    if (root_of(graph, used) != w.input) continue;
    if (used != w.input || !node.region->may_overwrite(output, i)) return false;
  }
  return true;
}

bool is_view(const Graph& graph, const Node& node) {
  return node.op != nullptr && node.results.size() == 1 &&
         node.results[0] != kNoValue && graph[node.results[0]].base != kNoValue;
}

// Nodes that need what these nodes make, and these; by node.
std::vector<bool> dependents(const Graph& graph, std::vector<bool> found) {
  std::vector<bool> made(graph.values.size());
  for (size_t n = 0; n < graph.nodes.size(); ++n) {
    const Node& node = graph.nodes[n];
    for (const Use& u : node.uses) {
      if (made[slot(u.value)]) found[n] = true;
    }
    if (!found[n]) continue;
    for (ValueId id : node.results) {
      if (id != kNoValue) made[slot(id)] = true;
    }
  }
  return found;
}

bool leads_to_a_call(const Graph& graph, const Overwrite& w) {
  std::vector<bool> first(graph.nodes.size());
  first[static_cast<size_t>(graph[w.output].node)] = true;
  std::vector<bool> found = dependents(graph, std::move(first));
  for (size_t n = 0; n < found.size(); ++n) {
    const Node& node = graph.nodes[n];
    if (found[n] && !node.region && !is_view(graph, node)) return true;
  }
  return false;
}

bool is_read_later(const Graph& graph, const Overwrite& w) {
  for (auto n = static_cast<size_t>(graph[w.output].node) + 1;
       n < graph.nodes.size();
       ++n) {
    for (const Use& u : graph.nodes[n].uses) {
      if (root_of(graph, u.value) == w.input) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<ValueId> overwrite_inputs(Graph& graph,
                                      std::span<const Overwrite> writes) {
  std::vector<ValueId> into(graph.values.size(), kNoValue);
  std::vector<Overwrite> chosen;
  std::vector<bool> last(graph.nodes.size());
  for (const Overwrite& w : writes) {
    if (!is_candidate(graph, w) || leads_to_a_call(graph, w)) continue;
    chosen.push_back(w);
    last[static_cast<size_t>(graph[w.output].node)] = true;
  }
  if (chosen.empty()) return into;
  last = dependents(graph, std::move(last));
  std::vector<Node> ordered;
  ordered.reserve(graph.nodes.size());
  for (bool turn : {false, true}) {
    for (size_t n = 0; n < last.size(); ++n) {
      if (last[n] == turn) ordered.push_back(std::move(graph.nodes[n]));
    }
  }
  graph.nodes = std::move(ordered);
  renumber(graph);
  for (const Overwrite& w : chosen) {
    if (!is_read_later(graph, w)) into[slot(w.output)] = w.input;
  }
  return into;
}

}  // namespace taeda::compiler
