#include <taeda/csrc/compiler/graph/passes.h>

#include <taeda/aten/iter/symbolic.h>
#include <taeda/c10/core/symbolic_geometry.h>

#include <bit>
#include <unordered_map>

namespace taeda::compiler {

namespace {

template <class T>
bool same_value(const T& a, const T& b) {
  if constexpr (std::is_same_v<T, double>) {
    // 0.0 and -0.0 are not the same here, and a NaN is itself.
    return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
  } else if constexpr (std::is_same_v<T, SymInt>) {
    return compiler::same(a, b);
  } else if constexpr (std::is_same_v<T, std::vector<SymInt>> ||
                       std::is_same_v<T, std::vector<double>>) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) {
      if (!same_value(a[i], b[i])) return false;
    }
    return true;
  } else if constexpr (std::is_same_v<T, std::vector<TensorBase>> ||
                       std::is_same_v<T, std::vector<OptionalTensor>>) {
    return a.size() == b.size();  // which tensors is said by the uses
  } else if constexpr (std::is_same_v<T, TensorBase> ||
                       std::is_same_v<T, std::monostate>) {
    return true;
  } else if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, int64_t> ||
                       std::is_same_v<T, std::string> ||
                       std::is_same_v<T, std::vector<int64_t>> ||
                       std::is_same_v<T, std::vector<bool>> ||
                       std::is_same_v<T, Device>) {
    return a == b;
  } else {
    return false;
  }
}

bool same_values(const IValue& a, const IValue& b) {
  if (a.value().index() != b.value().index()) return false;
  return std::visit(
      [&](const auto& x) {
        using T = std::decay_t<decltype(x)>;
        return same_value<T>(x, std::get<T>(b.value()));
      },
      a.value());
}

bool same_calls(const Node& a, const Node& b) {
  if (a.op != b.op || a.uses.size() != b.uses.size()) return false;
  for (size_t i = 0; i < a.uses.size(); ++i) {
    const Use &x = a.uses[i], &y = b.uses[i];
    if (x.value != y.value || x.argument != y.argument ||
        x.element != y.element) {
      return false;
    }
  }
  for (size_t i = 0; i < a.arguments.size(); ++i) {
    if (!same_values(a.arguments[i], b.arguments[i])) return false;
  }
  return true;
}

size_t hash_of(const Node& node) {
  size_t h = std::hash<const void*>()(node.op);
  for (const Use& u : node.uses) {
    h = h * 1000003 + static_cast<size_t>(u.value) * 31 + u.argument;
  }
  return h;
}

bool may_merge(const Node& node) {
  return node.op != nullptr && !is_random(node) && !node.results.empty() &&
         node.op->info->record->family != Family::User;
}

}  // namespace

bool is_random(const Node& node) {
  if (node.op != nullptr) {
    return node.op->info->has(OpTag::NondeterministicSeeded);
  }
  for (const Node& inner : node.region->body.nodes) {
    if (is_random(inner)) return true;
  }
  return false;
}

void renumber(Graph& graph) {
  for (Value& v : graph.values) v.node = -1;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    for (ValueId id : graph.nodes[i].results) {
      if (id != kNoValue) graph[id].node = static_cast<int32_t>(i);
    }
  }
}

bool remove_dead(Graph& graph) {
  std::vector<bool> read(graph.values.size());
  auto mark = [&](ValueId id) {
    if (id != kNoValue) read[static_cast<size_t>(id)] = true;
  };
  for (ValueId id : graph.outputs) mark(id);
  std::vector<Node> kept;
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    Node& node = graph.nodes[i];
    // A call without results is made for what it does.
    bool needed = is_random(node) || node.results.empty();
    for (ValueId id : node.results) {
      needed = needed || (id != kNoValue && read[static_cast<size_t>(id)]);
    }
    if (!needed) continue;
    for (const Use& u : node.uses) mark(u.value);
    kept.push_back(std::move(node));
  }
  bool changed = kept.size() != graph.nodes.size();
  graph.nodes.assign(std::make_move_iterator(kept.rbegin()),
                     std::make_move_iterator(kept.rend()));
  if (changed) renumber(graph);
  return changed;
}

namespace {

// By value: whether the program gets its memory.
std::vector<bool> shown(const Graph& graph, std::span<const ValueId> results) {
  std::vector<bool> out(graph.values.size());
  for (ValueId id : results) {
    if (id == kNoValue) continue;
    ValueId root = graph[id].base == kNoValue ? id : graph[id].base;
    out[static_cast<size_t>(root)] = true;
  }
  return out;
}

}  // namespace

void merge_equal(Graph& graph, std::span<const ValueId> results) {
  const std::vector<bool> of_program = shown(graph, results);
  auto is_shown = [&](const Node& node) {
    return std::ranges::any_of(node.results, [&](ValueId id) {
      if (id == kNoValue) return false;
      ValueId root = graph[id].base == kNoValue ? id : graph[id].base;
      return bool(of_program[static_cast<size_t>(root)]);
    });
  };
  std::vector<ValueId> now(graph.values.size());
  for (size_t i = 0; i < now.size(); ++i) now[i] = static_cast<ValueId>(i);
  std::unordered_multimap<size_t, size_t> known;
  std::vector<Node> kept;
  kept.reserve(graph.nodes.size());
  for (Node& node : graph.nodes) {
    for (Use& u : node.uses) u.value = now[static_cast<size_t>(u.value)];
    for (ValueId id : node.results) {
      if (id == kNoValue || graph[id].base == kNoValue) continue;
      graph[id].base = now[static_cast<size_t>(graph[id].base)];
    }
    bool merged = false;
    size_t hash = hash_of(node);
    bool may = may_merge(node) && !is_shown(node);
    if (may) {
      auto [first, last] = known.equal_range(hash);
      for (; first != last && !merged; ++first) {
        const Node& other = kept[first->second];
        if (!same_calls(node, other)) continue;
        for (size_t i = 0; i < node.results.size(); ++i) {
          if (node.results[i] == kNoValue) continue;
          now[static_cast<size_t>(node.results[i])] = other.results[i];
        }
        merged = true;
      }
    }
    if (merged) continue;
    if (may) known.emplace(hash, kept.size());
    kept.push_back(std::move(node));
  }
  graph.nodes = std::move(kept);
  for (ValueId& id : graph.outputs) {
    if (id != kNoValue) id = now[static_cast<size_t>(id)];
  }
  renumber(graph);
}

ValueId append_copy(Graph& graph, ValueId value) {
  static const OperatorEntry* const clone = Dispatcher::get().find("clone", "");
  Value copy = graph[value];
  copy.constant = {};
  copy.base = kNoValue;
  copy.offset = 0;
  copy.node = static_cast<int32_t>(graph.nodes.size());
  copy.result = 0;
  copy.lazy = false;
  TensorBase meta =
      all_plain(copy.sizes) && all_plain(copy.strides)
          ? make_tensor_strided("compile",
                                as_plain(copy.sizes),
                                as_plain(copy.strides),
                                copy.dtype,
                                DeviceType::Meta)
          : make_symbolic_tensor(copy.sizes, copy.strides, copy.dtype);
  Stack stack{meta, IValue()};
  call_operator(*clone, stack);
  copy.strides = sym_strides(*stack[0].get<TensorBase>().impl()).vec();
  Node node;
  node.op = clone;
  node.arguments = {TensorBase(), IValue()};
  node.uses = {{0, -1, value}};
  auto id = static_cast<ValueId>(graph.values.size());
  node.results = {id};
  graph.values.push_back(std::move(copy));
  graph.nodes.push_back(std::move(node));
  return id;
}

}  // namespace taeda::compiler
