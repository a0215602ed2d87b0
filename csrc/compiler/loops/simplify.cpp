#include <taeda/aten/expr/simplify.h>
#include <taeda/csrc/compiler/graph/passes.h>
#include <taeda/csrc/compiler/loops/calls.h>
#include <taeda/csrc/compiler/loops/formula.h>
#include <taeda/csrc/compiler/loops/simplify.h>

#include <algorithm>

namespace taeda::compiler::loops {

namespace {

bool lies_alike(const Value& a, const Value& b) {
  return a.dtype == b.dtype && same(a.sizes, b.sizes) &&
         same(a.strides, b.strides);
}

// A view of its tensor as it is, which the graph does not give out.
bool shows_all(const Graph& graph, const Node& node) {
  ValueId from = node.uses[0].value, view = node.results[0];
  const Value &a = graph[from], &b = graph[view];
  bool given_out =
      std::ranges::find(graph.outputs, view) != graph.outputs.end();
  bool one_memory = b.base == (a.base == kNoValue ? from : a.base);
  return !given_out && one_memory && lies_alike(a, b) &&
         same(a.offset, b.offset);
}

// Formulas are simplified as if numbers were finite, so one that names another
// tensor besides (which then comes in with a factor of 0) stays.
bool is_identity(const Graph& graph, const Node& node) {
  Call call = describe(graph, node);
  if (call.kind == CallKind::View) return shows_all(graph, node);
  if (call.kind != CallKind::Pointwise || call.copies) return false;
  if (call.operands.size() != 1) return false;
  auto [argument, value] = call.operands[0];
  if (!lies_alike(graph[value], graph[node.results[0]])) return false;
  expr::Graph g;
  CallFormulas formulas(graph, node, g);
  expr::Kind kind = kind_of(call.computes);
  expr::Id id = *formulas.find(expr::Role::Forward, kind);
  std::unordered_map<std::string, expr::Id> numbers;
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    auto number = number_in(node.arguments[i], kind);
    if (number)
      numbers[std::string(argument_name(node, i))] = g.literal(*number);
  }
  id = simplify(g, g.substitute(id, numbers));
  return g[id].type == expr::Word::Name &&
         g.name_of(id) == argument_name(node, argument);
}

// Values whose memory a result of the graph shows.
std::vector<bool> shown_outside(const Graph& graph) {
  std::vector<bool> shown(graph.values.size());
  for (ValueId id : graph.outputs) {
    if (id == kNoValue) continue;
    ValueId base = graph[id].base;
    shown[static_cast<size_t>(base == kNoValue ? id : base)] = true;
  }
  return shown;
}

}  // namespace

void drop_identities(Graph& graph) {
  std::vector<bool> shown = shown_outside(graph);
  std::vector<ValueId> stands_for(graph.values.size(), kNoValue);
  std::vector<Node> kept;
  for (Node& node : graph.nodes) {
    for (Use& use : node.uses) {
      ValueId other = stands_for[static_cast<size_t>(use.value)];
      if (other != kNoValue) use.value = other;
    }
    bool output = std::ranges::any_of(node.results, [&](ValueId v) {
      return v != kNoValue && shown[static_cast<size_t>(v)];
    });
    if (!output && is_identity(graph, node)) {
      stands_for[static_cast<size_t>(node.results[0])] = node.uses[0].value;
      continue;
    }
    kept.push_back(std::move(node));
  }
  if (kept.size() == graph.nodes.size()) {
    graph.nodes = std::move(kept);
    return;
  }
  graph.nodes = std::move(kept);
  for (Value& v : graph.values) {
    if (v.base == kNoValue) continue;
    ValueId other = stands_for[static_cast<size_t>(v.base)];
    if (other == kNoValue) continue;
    // A view of a view is a view of what that one shows.
    const Value& shown = graph[other];
    v.offset = v.offset + shown.offset;
    v.base = shown.base == kNoValue ? other : shown.base;
  }
  renumber(graph);
}

}  // namespace taeda::compiler::loops
