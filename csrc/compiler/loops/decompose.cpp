#include <taeda/aten/iter/symbolic.h>
#include <taeda/csrc/compiler/graph/trace.h>
#include <taeda/csrc/compiler/loops/decompose.h>

#include <algorithm>

namespace taeda::compiler::loops {

namespace {

bool has_plain_geometry(const Graph& graph, const Node& node) {
  auto plain = [&](ValueId v) {
    return v == kNoValue ||
           (all_plain(graph[v].sizes) && all_plain(graph[v].strides) &&
            graph[v].device.is_cpu());
  };
  auto used = [&](const Use& u) { return u.element < 0 && plain(u.value); };
  return std::all_of(node.uses.begin(), node.uses.end(), used) &&
         std::all_of(node.results.begin(), node.results.end(), plain);
}

std::vector<TensorBase> meta_inputs(const Graph& graph, const Node& node) {
  std::vector<TensorBase> inputs;
  for (const Use& u : node.uses) {
    const Value& v = graph[u.value];
    inputs.push_back(make_tensor_strided("compile",
                                         as_plain(v.sizes),
                                         as_plain(v.strides),
                                         v.dtype,
                                         DeviceType::Meta));
  }
  return inputs;
}

// The definition as a graph over the call's tensors. Nothing where it cannot be
// traced, which is no fault: the call stays.
std::optional<Traced> traced_means(const Graph& graph, const Node& node) {
  auto program = [&](std::span<const TensorBase> inputs) {
    Stack stack(node.arguments.begin(), node.arguments.end());
    for (size_t i = 0; i < inputs.size(); ++i) {
      stack[node.uses[i].argument] = inputs[i];
    }
    run_means(*node.op, stack);
    std::vector<TensorBase> results;
    for (IValue& v : stack) {
      bool tensor = v.is<TensorBase>();
      results.push_back(tensor ? v.get<TensorBase>() : TensorBase());
    }
    return results;
  };
  try {
    return trace(program, meta_inputs(graph, node), /*joint=*/false);
  } catch (const Error&) {
    return std::nullopt;
  }
}

// What a value of the definition's graph is in the graph itself.
class Splice {
 public:
  Splice(Graph& graph, const Node& node, const Traced& traced)
      : graph_(graph), node_(node), inner_(traced.graph) {
    ids_.assign(inner_.values.size(), kNoValue);
    for (size_t i = 0; i < node.uses.size(); ++i) {
      ids_[static_cast<size_t>(inner_.inputs[i])] = node.uses[i].value;
    }
  }

  // False where a result is not what the kernel gives.
  bool bind_results(const Traced& traced) {
    for (size_t i = 0; i < node_.results.size(); ++i) {
      ValueId own = node_.results[i];
      if (own == kNoValue) continue;
      if (traced.results[i].kind != Result::Output) return false;
      ValueId made = inner_.outputs[traced.results[i].index];
      if (made == kNoValue || ids_[static_cast<size_t>(made)] != kNoValue) {
        return false;
      }
      const Value &a = graph_[own], &b = inner_[made];
      if (a.dtype != b.dtype || a.sizes != b.sizes || b.base != kNoValue) {
        return false;
      }
      ids_[static_cast<size_t>(made)] = own;
    }
    return true;
  }

  Node moved(const Node& node) {
    Node out = node;
    for (Use& use : out.uses) use.value = id(use.value);
    for (ValueId& result : out.results) {
      if (result != kNoValue) result = id(result);
    }
    return out;
  }

 private:
  ValueId id(ValueId inner) {
    ValueId& own = ids_[static_cast<size_t>(inner)];
    if (own != kNoValue) return own;
    Value value = inner_[inner];
    value.device = Device(DeviceType::CPU);
    if (value.base != kNoValue) value.base = id(value.base);
    own = static_cast<ValueId>(graph_.values.size());
    graph_.values.push_back(std::move(value));
    return own;
  }

  Graph& graph_;
  const Node& node_;
  const Graph& inner_;
  std::vector<ValueId> ids_;
};

}  // namespace

Item item_of(Graph& graph, const Node& node) {
  Item item;
  Call call = describe(graph, node);
  if (call.kind != CallKind::Opaque) {
    item.nodes.push_back(node);
    item.calls.push_back(std::move(call));
    item.fusible = true;
    return item;
  }
  bool defined = node.op != nullptr && node.op->info->record->means != nullptr;
  if (!defined || !has_plain_geometry(graph, node)) return item;
  std::optional<Traced> traced = traced_means(graph, node);
  if (!traced) return item;
  size_t values = graph.values.size();
  Splice splice(graph, node, *traced);
  item.fusible = splice.bind_results(*traced);
  for (const Node& inner : traced->graph.nodes) {
    if (!item.fusible) break;
    item.nodes.push_back(splice.moved(inner));
    item.calls.push_back(describe(graph, item.nodes.back()));
    item.fusible = item.calls.back().kind != CallKind::Opaque;
  }
  if (!item.fusible) {
    graph.values.resize(values);
    return {};
  }
  return item;
}

}  // namespace taeda::compiler::loops
