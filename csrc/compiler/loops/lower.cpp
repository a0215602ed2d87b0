// Calls of a group as instructions of a loop program.
#include <taeda/csrc/compiler/loops/calls.h>
#include <taeda/csrc/compiler/loops/formula.h>

#include <algorithm>

namespace taeda::compiler::loops {

Lowering::Lowering(const Graph& graph, const Spaces& spaces)
    : graph_(graph), spaces_(spaces) {
  Spaces::Axes reduced = spaces.reduced();
  for (int axis : spaces.all()) {
    bool gone =
        std::find(reduced.begin(), reduced.end(), axis) != reduced.end();
    axes_[axis] = program_.axis(spaces.size(axis), gone);
  }
}

// Where an element lies, by the strides of the value; `dims` may be those of a
// result with more dims in front.
Place Lowering::place_of(ValueId value, const Spaces::Dims& dims) const {
  const Value& v = graph_[value];
  Place place{0, std::vector<SymInt>(program_.sizes().size(), 0)};
  size_t shift = dims.size() - v.sizes.size();
  for (size_t d = 0; d < v.sizes.size(); ++d) {
    if (same(v.sizes[d], 1)) continue;
    SymInt stride = v.strides[d];
    const Spaces::Axes& axes = dims[d + shift];
    for (size_t i = axes.size(); i-- > 0;) {
      place.strides[axes_.at(axes[i])] += stride;
      stride *= spaces_.size(axes[i]);
    }
  }
  return place;
}

Var Lowering::operand(ValueId value, const Spaces::Dims& result) {
  if (auto made = vars_.find(value); made != vars_.end()) return made->second;
  bool window = windows_.contains(value);
  ValueId memory = window ? graph_[value].base : value;
  auto [buffer, fresh] = buffers_.try_emplace(memory, 0);
  if (fresh) {
    buffer->second = program_.buffer(graph_[memory].dtype, /*written=*/false);
    inputs_.push_back(memory);
  }
  bool known = spaces_.has(value);
  const Spaces::Dims dims = known ? spaces_.dims(value) : result;
  Place place = place_of(value, dims);
  if (window) place.offset = graph_[value].offset;
  return program_.load(buffer->second, std::move(place));
}

// The expression over variables and numbers in place of the arguments' names.
// Numbers that are expressions are variables that join those it uses.
expr::Id Lowering::bind(const Node& node,
                        expr::Id id,
                        Compute computes,
                        const std::unordered_map<std::string, expr::Id>& names,
                        std::vector<Var>* used) {
  std::unordered_map<std::string, expr::Id> values = names;
  expr::Graph& g = program_.expressions;
  for (const std::string& name : g.names(id)) {
    int argument = argument_named(node, name);
    if (values.contains(name) || argument < 0) continue;
    const IValue& given = node.arguments[static_cast<size_t>(argument)];
    if (given.is<SymInt>() && used != nullptr) {
      used->push_back(program_.number(given.get<SymInt>(), computes));
      values[name] = g.name(Program::name_of(used->back()));
      continue;
    }
    auto number = number_in(given, kind_of(computes));
    TAEDA_INTERNAL_ASSERT(number, "loops: ", name, " is not a number");
    values[name] = g.literal(*number);
  }
  return g.substitute(id, values);
}

// Where a small step decides (an integer, a comparison) an element of 16 bits
// is what the call that made it would have stored.
Var Lowering::as_stored(ValueId value, const Spaces::Dims& dims) {
  Var v = operand(value, dims);
  ScalarType dtype = graph_[value].dtype;
  bool small = dtype == kHalf || dtype == kBFloat16;
  bool made = program_[v].op == Op::Compute || program_[v].op == Op::Reduce;
  return small && made ? program_.round(v, dtype) : v;
}

void Lowering::lower_pointwise(const Node& node, const Call& call) {
  ValueId out = node.results[0];
  ScalarType dtype = graph_[out].dtype;
  const Spaces::Dims dims = spaces_.dims(out);
  if (call.copies) {
    ValueId from = call.operands[0].second;
    bool steps = is_integral(dtype, /*include_bool=*/true);
    Var v = program_.convert(
        steps ? as_stored(from, dims) : operand(from, dims), compute_of(dtype));
    bool small = dtype == kHalf || dtype == kBFloat16;
    if (small && graph_[from].dtype != dtype) v = program_.round(v, dtype);
    vars_[out] = v;
    return;
  }
  expr::Graph& g = program_.expressions;
  CallFormulas formulas(graph_, node, g);
  expr::Id id = *formulas.find(expr::Role::Forward, kind_of(call.computes));
  bool tests = node.op->info->record->dtypes.out == OutKind::Bool;
  std::unordered_map<std::string, expr::Id> names;
  std::vector<Var> used;
  for (auto [argument, value] : call.operands) {
    std::string name(argument_name(node, argument));
    if (!g.uses(id, name)) continue;
    bool condition = name == "condition" || name == "mask";
    Var v =
        program_.convert(tests ? as_stored(value, dims) : operand(value, dims),
                         condition ? Compute::Bool : call.computes);
    names[name] = g.name(Program::name_of(v));
    used.push_back(v);
  }
  id = bind(node, id, call.computes, names, &used);
  Compute made = tests ? Compute::Bool : call.computes;
  Var v = program_.compute(call.computes, made, id, std::move(used));
  vars_[out] = program_.convert(v, compute_of(dtype));
}

void Lowering::lower_reduce(const Node& node, const Call& call) {
  ValueId self = call.operands[0].second, out = node.results[0];
  expr::Graph& g = program_.expressions;
  CallFormulas formulas(graph_, node, g);
  expr::Kind kind = kind_of(call.computes);
  Var v = program_.convert(operand(self, {}), call.computes);
  std::unordered_map<std::string, expr::Id> names{
      {"self", g.name(Program::name_of(v))}};
  auto part = [&](expr::Role role) {
    return bind(node, *formulas.find(role, kind), call.computes, names);
  };
  expr::Id map = part(expr::Role::Map);
  if (map != names.at("self")) {
    v = program_.compute(call.computes, call.computes, map, {v});
  }
  Fold fold{part(expr::Role::Init),
            part(expr::Role::Combine),
            part(expr::Role::Finish)};
  bool tests = node.op->info->record->dtypes.out == OutKind::Bool;
  Compute made = tests ? Compute::Bool : call.computes;
  v = program_.reduce(v, made, fold);
  vars_[out] = program_.convert(v, compute_of(graph_[out].dtype));
}

void Lowering::lower(const Node& node, const Call& call) {
  if (call.kind == CallKind::View) {
    ValueId base = graph_[node.results[0]].base;
    if (is_window(graph_, node, spaces_)) {
      windows_.insert(node.results[0]);
      return;
    }
    vars_[node.results[0]] = operand(base, spaces_.dims(base));
  } else if (call.kind == CallKind::Reduce) {
    lower_reduce(node, call);
  } else {
    lower_pointwise(node, call);
  }
}

void Lowering::store(ValueId value) {
  int buffer = program_.buffer(graph_[value].dtype, /*written=*/true);
  program_.store(vars_.at(value), buffer, place_of(value, spaces_.dims(value)));
}

}  // namespace taeda::compiler::loops
