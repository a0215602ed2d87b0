#include <taeda/aten/native/formula_support.h>
#include <taeda/csrc/compiler/graph/passes.h>
#include <taeda/csrc/compiler/graph/trace.h>
#include <taeda/csrc/compiler/loops/decompose.h>
#include <taeda/csrc/compiler/loops/formula.h>
#include <taeda/csrc/compiler/loops/meta_call.h>
#include <taeda/csrc/compiler/loops/schedule.h>

#include <algorithm>
#include <unordered_set>

namespace taeda::compiler::loops {

namespace {

bool is_on_cpu(const Graph& graph, const Node& node) {
  auto fits = [&](ValueId v) {
    return v == kNoValue || graph[v].device.is_cpu();
  };
  auto used = [&](const Use& u) { return u.element < 0 && fits(u.value); };
  return std::all_of(node.uses.begin(), node.uses.end(), used) &&
         std::all_of(node.results.begin(), node.results.end(), fits);
}

bool is_loss(const Node& node) {
  return node.op->info->form == Form::Functional && reduction_of(node) >= 0;
}

bool has_definition(const Node& node) {
  if (node.op == nullptr) return false;
  return node.op->info->record->means != nullptr || is_loss(node);
}

// What a kernel means; of a loss its elements, and then their mean or sum.
void run_definition(const Node& node, Stack& stack) {
  if (!is_loss(node)) {
    run_means(*node.op, stack);
    return;
  }
  IValue& reduction = stack[static_cast<size_t>(reduction_of(node))];
  int64_t wanted = reduction.to_int();
  reduction = int64_t{0};
  call_operator(*node.op, stack);
  stack[0] = native::reduced_loss(stack[0].get<TensorBase>(), wanted);
}

// What makes only results that the graph does not read.
void drop_unread_results(const Node& node, Traced& traced) {
  for (size_t i = 0; i < node.results.size(); ++i) {
    bool unread = node.results[i] == kNoValue;
    if (!unread || traced.results[i].kind != Result::Output) continue;
    traced.graph.outputs[traced.results[i].index] = kNoValue;
  }
  remove_dead(traced.graph);
}

// What a definition reads of its operand in parts, a window's element each.
struct Windows {
  size_t count = 0;
  bool framed = false;  // by a map: some parts lie outside of the operand
};

Windows windows_of(const Graph& inner) {
  Windows found;
  std::vector<ValueId> bases = inner.inputs;
  std::unordered_set<ValueId> parts;
  for (const Node& node : inner.nodes) {
    ValueId made = node.results[0];
    if (made == kNoValue) continue;
    auto is_base = [&](ValueId v) {
      return std::find(bases.begin(), bases.end(), v) != bases.end();
    };
    if (inner[made].base != kNoValue) {
      if (is_base(inner[made].base)) parts.insert(made);
      continue;
    }
    for (const Use& use : node.uses) found.count += parts.erase(use.value);
    bool maps = node.op != nullptr &&
                node.op->info->record->family == Family::Map &&
                !node.uses.empty();
    if (maps) bases.push_back(made);
    found.framed |= maps;
  }
  return found;
}

// Measured (docs/design/compiler.md, "Windows"): where the kernel is quicker.
// Places of elements are integers of twice a float's size, which tests of a
// frame keep from vector code, and rows shorter than a vector leave it the
// more, the more elements a window has.
bool suits_loops(const Windows& windows, const Node& node, const Value& out) {
  constexpr size_t kFew = 4, kSome = 9;
  auto read = std::count_if(node.results.begin(),
                            node.results.end(),
                            [](ValueId v) { return v != kNoValue; });
  if (read > 1) return !windows.framed && windows.count <= kFew;
  return windows.count <= kSome || hint(out.sizes.back()) >= kVector;
}

// The definition as a graph over the call's tensors. Nothing where it cannot be
// traced, which is no fault: the call stays.
std::optional<Traced> traced_means(const Graph& graph,
                                   const Node& node,
                                   ShapeEnv* env = nullptr) {
  MetaCall call(graph, node, env);
  auto program = [&](std::span<const TensorBase> inputs) {
    Stack stack = call.stack(inputs);
    run_definition(node, stack);
    std::vector<TensorBase> results;
    for (IValue& v : stack) {
      bool tensor = v.is<TensorBase>();
      results.push_back(tensor ? v.get<TensorBase>() : TensorBase());
    }
    return results;
  };
  try {
    Traced traced = trace(program, call.inputs(), /*joint=*/false);
    drop_unread_results(node, traced);
    return traced;
  } catch (const Error&) {
    return std::nullopt;
  }
}

// Whether tracing the definition decides something about symbols: a call is not
// worth that, so it is tried on a copy of the env.
bool decides(const Graph& graph, const Node& node) {
  auto symbol = std::find_if(graph.symbols.begin(),
                             graph.symbols.end(),
                             [](const SymInt& v) { return v.is_symbolic(); });
  if (symbol == graph.symbols.end()) return false;
  auto env = symbol->node()->env->with_hints({});
  return !traced_means(graph, node, env.get()) || !env->guards().empty();
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
      if (a.dtype != b.dtype || !same(a.sizes, b.sizes) || b.base != kNoValue) {
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
    if (call.parts) item.passes = 2;
    item.calls.push_back(std::move(call));
    item.fusible = true;
    return item;
  }
  if (!has_definition(node) || !is_on_cpu(graph, node) ||
      decides(graph, node)) {
    return item;
  }
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
  Windows windows = windows_of(traced->graph);
  if (is_loss(node) || windows.count > 1) item.passes = 2;
  if (windows.count > 1) {
    item.fusible &= suits_loops(windows, node, graph[node.results[0]]);
  }
  if (!item.fusible) {
    graph.values.resize(values);
    return {};
  }
  return item;
}

}  // namespace taeda::compiler::loops
