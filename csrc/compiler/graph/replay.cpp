#include <taeda/csrc/compiler/graph/replay.h>

#include <taeda/aten/core/op_types.h>
#include <taeda/c10/core/symbolic_geometry.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/permute.h>

#include <algorithm>
#include <numeric>

namespace taeda::compiler {

namespace {

class Replay {
 public:
  Replay(const Graph& graph, SymIntArrayRef symbols)
      : graph_(graph), symbols_(symbols), sizes_(graph, symbols) {
    values_.resize(graph.values.size());
    for (size_t i = 0; i < graph.values.size(); ++i) {
      if (graph.values[i].constant.defined()) {
        values_[i] = graph.values[i].constant;
      }
    }
  }
  std::vector<TensorBase> run(std::vector<TensorBase> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      at(graph_.inputs[i]) = std::move(inputs[i]);
    }
    for (const Node& node : graph_.nodes) {
      node.region ? enter(node) : call(node);
    }
    std::vector<TensorBase> out;
    for (ValueId id : graph_.outputs) {
      out.push_back(id == kNoValue ? TensorBase() : at(id));
    }
    return out;
  }

 private:
  TensorBase& at(ValueId id) { return values_[static_cast<size_t>(id)]; }
  void enter(const Node& node) {
    std::vector<TensorBase> inputs;
    for (const Use& u : node.uses) inputs.push_back(at(u.value));
    std::vector<TensorBase> found =
        replay(node.region->body, std::move(inputs), symbols_);
    for (size_t i = 0; i < found.size(); ++i) {
      if (node.results[i] != kNoValue) at(node.results[i]) = found[i];
    }
  }

  void resize(std::vector<IValue>& arguments) const {
    bool symbolic = false;
    auto resized = [&](SymInt& v) {
      v = sizes_(v);
      symbolic = symbolic || v.is_symbolic();
    };
    for (IValue& v : arguments) {
      if (v.is<SymInt>()) resized(v.get<SymInt>());
      if (!v.is<std::vector<SymInt>>()) continue;
      for (SymInt& each : v.get<std::vector<SymInt>>()) resized(each);
    }
    if (!symbolic) fix_symbols(arguments);
  }

  void call(const Node& node) {
    std::vector<IValue> arguments = node.arguments;
    resize(arguments);
    for (const Use& u : node.uses) put_use(arguments, u, at(u.value));
    Stack results = call_with(*node.op, arguments);
    size_t next = 0;
    for (IValue& v : results) {
      bool undefined =
          v.is_none() || (v.is<TensorBase>() && !v.get<TensorBase>().defined());
      if (undefined) ++next;
      if (undefined) continue;
      each_tensor(v, [&](TensorBase& t) {
        ValueId id = node.results[next++];
        if (id != kNoValue) at(id) = std::move(t);
      });
    }
  }

  const Graph& graph_;
  SymIntArrayRef symbols_;
  SizesOf sizes_;
  std::vector<TensorBase> values_;
};

}  // namespace

SizesOf::SizesOf(const Graph& graph, SymIntArrayRef symbols) {
  for (size_t i = 0; i < symbols.size(); ++i) {
    const SymInt& own = graph.symbols[i];
    if (own.is_symbolic()) values_.emplace(own.node()->id, symbols[i]);
  }
}

SymInt SizesOf::operator()(const SymInt& v) const {
  if (!v.is_symbolic()) return v;
  return built(v.node()->env->expressions(), v.node()->id);
}

SymInt SizesOf::built(const symbolic::Expressions& e, symbolic::Id id) const {
  using symbolic::Type;
  auto known = values_.find(id);
  if (known != values_.end()) return known->second;
  const symbolic::Expression& node = e[id];
  auto argument = [&](size_t i) { return built(e, node.args[i]); };
  SymInt out = node.value;
  switch (node.type) {
    case Type::Integer:
      return out;
    case Type::Product:
      out = 1;
      for (size_t i = 0; i < node.args.size(); ++i) out *= argument(i);
      return out;
    case Type::Sum:
      for (size_t i = 0; i < node.args.size(); ++i) {
        out += argument(i) * node.coefficients[i];
      }
      return out;
    case Type::FloorDiv:
      return argument(0) / argument(1);
    case Type::Mod:
      return argument(0) % argument(1);
    case Type::Min:
      return sym_min(argument(0), argument(1));
    case Type::Max:
      return sym_max(argument(0), argument(1));
    default:
      break;
  }
  TAEDA_CHECK(false, "compile: no size: ", e.text(id));
}

std::vector<TensorBase> replay(const Graph& graph,
                               std::vector<TensorBase> inputs,
                               SymIntArrayRef symbols) {
  return Replay(graph, symbols).run(std::move(inputs));
}

TensorBase laid_out_by(const TensorBase& t,
                       const std::vector<SymInt>& strides) {
  SymIntArrayRef sizes = sym_sizes(*t.impl()), own = sym_strides(*t.impl());
  bool fits = true;
  for (size_t d = 0; d < strides.size(); ++d) {
    fits = fits && (same(sizes[d], 1) || same(own[d], strides[d]));
  }
  if (fits) return t;
  DimVector order(strides.size()), back(strides.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return hint(strides[static_cast<size_t>(a)]) >
           hint(strides[static_cast<size_t>(b)]);
  });
  for (size_t k = 0; k < order.size(); ++k) {
    back[static_cast<size_t>(order[k])] = static_cast<int64_t>(k);
  }
  TensorBase rows =
      ops::clone(ops::permute(t, order), MemoryFormat::Contiguous);
  return ops::permute(rows, back);
}

}  // namespace taeda::compiler
