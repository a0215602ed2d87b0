#include <taeda/csrc/compiler/graph/graph.h>

namespace taeda::compiler {

namespace {

bool is_tensor_argument(const Node& node, const Use& use) {
  if (node.region) return true;
  if (use.argument >= node.arguments.size()) return false;
  const IValue& v = node.arguments[use.argument];
  if (use.element < 0) return v.is<TensorBase>();
  auto element = static_cast<size_t>(use.element);
  if (v.is<std::vector<TensorBase>>()) {
    return element < v.get<std::vector<TensorBase>>().size();
  }
  return v.is<std::vector<OptionalTensor>>() &&
         element < v.get<std::vector<OptionalTensor>>().size();
}

void append_value(std::string& out, const Graph& graph, ValueId id) {
  if (id == kNoValue) {
    out += "none";
    return;
  }
  const Value& v = graph[id];
  out += str_cat(v.constant.defined() ? "c" : "%", id);
}

void append_type(std::string& out, const Value& v) {
  out += str_cat(": ", dtype_name(v.dtype), " ");
  append_to(out, SymIntArrayRef(v.sizes));
  if (v.base != kNoValue) out += str_cat(" of %", v.base);
}

void append_plain(std::string& out, const IValue& v) {
  std::visit(
      [&](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          out += "None";
        } else if constexpr (std::is_same_v<T, std::vector<int64_t>>) {
          append_to(out, ArrayRef<int64_t>(held));
        } else if constexpr (std::is_same_v<T, SymInt>) {
          append_to(out, held);
        } else if constexpr (std::is_same_v<T, std::vector<SymInt>>) {
          append_to(out, SymIntArrayRef(held));
        } else if constexpr (std::is_arithmetic_v<T> ||
                             std::is_same_v<T, std::string>) {
          append_to(out, held);
        } else {
          out += "...";
        }
      },
      v.value());
}

void append_arguments(std::string& out, const Graph& graph, const Node& node) {
  size_t next = 0;
  if (node.region) {
    for (; next < node.uses.size(); ++next) {
      if (next > 0) out += ", ";
      append_value(out, graph, node.uses[next].value);
    }
    return;
  }
  for (size_t i = 0; i < node.arguments.size(); ++i) {
    if (i > 0) out += ", ";
    bool list = next < node.uses.size() && node.uses[next].argument == i &&
                node.uses[next].element >= 0;
    bool tensor = next < node.uses.size() && node.uses[next].argument == i;
    if (list) out += "[";
    bool first = true;
    while (next < node.uses.size() && node.uses[next].argument == i) {
      if (!first) out += ", ";
      first = false;
      append_value(out, graph, node.uses[next++].value);
    }
    if (list) out += "]";
    if (!tensor) append_plain(out, node.arguments[i]);
  }
}

}  // namespace

void put_use(std::span<IValue> arguments, const Use& use, TensorBase value) {
  IValue& argument = arguments[use.argument];
  auto element = static_cast<size_t>(use.element);
  if (use.element < 0) {
    argument.get<TensorBase>() = std::move(value);
  } else if (argument.is<std::vector<TensorBase>>()) {
    argument.get<std::vector<TensorBase>>()[element] = std::move(value);
  } else {
    argument.get<std::vector<OptionalTensor>>()[element] = std::move(value);
  }
}

void check(const Graph& graph) {
  std::vector<bool> made(graph.values.size());
  auto make = [&](ValueId id, const char* where) {
    TAEDA_CHECK(id >= 0 && static_cast<size_t>(id) < made.size(),
                "graph: ",
                where,
                " names value ",
                id,
                " of ",
                made.size());
    TAEDA_CHECK(!made[static_cast<size_t>(id)],
                "graph: value ",
                id,
                " is made twice, the second time by ",
                where);
    made[static_cast<size_t>(id)] = true;
  };
  auto use = [&](ValueId id, const char* where) {
    bool known = id >= 0 && static_cast<size_t>(id) < made.size();
    TAEDA_CHECK(known && (made[static_cast<size_t>(id)] ||
                          graph[id].constant.defined()),
                "graph: ",
                where,
                " uses value ",
                id,
                " before it is made");
  };
  for (ValueId id : graph.inputs) make(id, "an input");
  for (const Node& node : graph.nodes) {
    const char* name = node.op == nullptr ? "a region" : node.op->name;
    TAEDA_CHECK((node.op == nullptr) == static_cast<bool>(node.region),
                "graph: a node is either a call or a region");
    for (const Use& u : node.uses) {
      use(u.value, name);
      TAEDA_CHECK(is_tensor_argument(node, u),
                  "graph: argument ",
                  u.argument,
                  " of ",
                  name,
                  " is no tensor");
    }
    for (ValueId id : node.results) {
      if (id != kNoValue) make(id, name);
    }
    if (node.region) check(node.region->body);
  }
  for (ValueId id : graph.outputs) {
    if (id != kNoValue) use(id, "an output");
  }
}

std::string text_of(const Graph& graph) {
  std::string out = "graph(";
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    if (i > 0) out += ", ";
    append_value(out, graph, graph.inputs[i]);
    append_type(out, graph[graph.inputs[i]]);
  }
  out += "):\n";
  for (const Node& node : graph.nodes) {
    out += "  ";
    for (size_t i = 0; i < node.results.size(); ++i) {
      if (i > 0) out += ", ";
      append_value(out, graph, node.results[i]);
      if (node.results[i] != kNoValue) append_type(out, graph[node.results[i]]);
    }
    out += node.region ? " = region(" : " = ";
    if (!node.region) out += node.op->qualified_name() + "(";
    append_arguments(out, graph, node);
    out += ")\n";
    if (!node.region) continue;
    for (const Node& inner : node.region->body.nodes) {
      out += "    | ";
      out += inner.region ? "region" : inner.op->qualified_name();
      out += "\n";
    }
  }
  out += "  return ";
  for (size_t i = 0; i < graph.outputs.size(); ++i) {
    if (i > 0) out += ", ";
    append_value(out, graph, graph.outputs[i]);
  }
  out += "\n";
  return out;
}

}  // namespace taeda::compiler
