// Calls of a group as instructions of a loop program.
#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/half.h>
#include <taeda/csrc/compiler/loops/calls.h>
#include <taeda/csrc/compiler/loops/formula.h>

#include <algorithm>
#include <numeric>

namespace taeda::compiler::loops {

Lowering::Lowering(const Graph& graph, Spaces spaces)
    : graph_(graph), spaces_(std::move(spaces)) {
  Spaces::Axes reduced = spaces_.reduced();
  for (int axis : spaces_.all()) {
    bool gone =
        std::find(reduced.begin(), reduced.end(), axis) != reduced.end();
    axes_[axis] = program_.axis(spaces_.size(axis), gone);
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

namespace {

// Elements from the first to the last one in memory.
SymInt reach_of(const Value& v) {
  SymInt reach = 1;
  for (size_t d = 0; d < v.sizes.size(); ++d) {
    reach += (v.sizes[d] - 1) * v.strides[d];
  }
  return reach;
}

}  // namespace

int Lowering::buffer_of(ValueId memory) {
  auto [buffer, fresh] = buffers_.try_emplace(memory, 0);
  if (fresh) {
    buffer->second = program_.buffer(graph_[memory].dtype, /*written=*/false);
    inputs_.push_back(memory);
  }
  return buffer->second;
}

Var Lowering::operand(ValueId value, const Spaces::Dims& result) {
  if (auto made = vars_.find(value); made != vars_.end()) return made->second;
  bool window = windows_.contains(value);
  ValueId memory = window ? graph_[value].base : value;
  bool known = spaces_.has(value);
  const Spaces::Dims dims = known ? spaces_.dims(value) : result;
  if (auto frame = frames_.find(memory); frame != frames_.end()) {
    return framed(frame->second, value, dims);
  }
  Place place = place_of(value, dims);
  if (window) place.offset = graph_[value].offset;
  return program_.load(
      buffer_of(memory), std::move(place), reach_of(graph_[memory]));
}

namespace {

bool is_16_bit(ScalarType dtype) {
  return dtype == kHalf || dtype == kBFloat16;
}

// What a dtype keeps of a number, if it is one of 16 bits.
expr::Literal kept_of(const expr::Literal& number, ScalarType dtype) {
  if (!is_16_bit(dtype)) return number;
  auto v = static_cast<float>(number.value());
  v = dtype == kHalf ? static_cast<float>(Half(v))
                     : static_cast<float>(BFloat16(v));
  return expr::Literal::of(double{v});
}

}  // namespace

Var Lowering::stored_as(Var v, ScalarType dtype) {
  return is_16_bit(dtype) ? program_.round(v, dtype) : v;
}

// The element of a tensor, or what stands where it has none.
Var Lowering::load_at(const MapRead& read) {
  const Value& v = graph_[read.value];
  size_t axes = program_.sizes().size();
  Place place{0, std::vector<SymInt>(axes, 0)};
  std::vector<Bound> bounds;
  for (size_t d = 0; d < v.sizes.size(); ++d) {
    const Linear& at = read.dims[d];
    if (!read.fill || lies_inside(spaces_, at, v.sizes[d])) {
      place.offset += v.strides[d] * SymInt(at.offset);
      for (auto [axis, step] : at.steps) {
        place.strides[axes_.at(axis)] += v.strides[d] * SymInt(step);
      }
      continue;
    }
    Bound bound{at.offset, std::vector<int64_t>(axes, 0)};
    bound.size = v.sizes[d].plain();
    bound.stride = v.strides[d];
    for (auto [axis, step] : at.steps) bound.steps[axes_.at(axis)] = step;
    bounds.push_back(std::move(bound));
  }
  return program_.load(buffer_of(read.value),
                       std::move(place),
                       std::move(bounds),
                       kept_of(read.fill.value_or(expr::Literal()), v.dtype),
                       reach_of(v));
}

// What a value shows of a frame, or the frame itself: it lies in the frame as
// its strides and those of the frame say.
Var Lowering::framed(const Frame& frame,
                     ValueId shown,
                     const Spaces::Dims& result) {
  const Value &view = graph_[shown],
              &whole = graph_[view.base == kNoValue ? shown : view.base];
  MapRead read{frame.value, {}, frame.fill};
  size_t shift = result.size() - view.sizes.size();
  std::vector<size_t> order(view.sizes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return hint(whole.strides[a]) > hint(whole.strides[b]);
  });
  read.dims.resize(order.size());
  SymInt left = view.offset;
  for (size_t d : order) {
    Linear& at = read.dims[d];
    if (!same(view.sizes[d], 1)) at = *linear_in(spaces_, result[d + shift]);
    int64_t start = 0, step = 1;
    if (!same(view.sizes[d], whole.sizes[d])) {
      int64_t stride = whole.strides[d].plain();
      start = left.plain() / stride;
      step = view.strides[d].plain() / stride;
      left -= start * stride;
    }
    for (auto& [axis, by] : at.steps) by *= step;
    at.offset = start + frame.offsets[d];
  }
  return load_at(read);
}

// The expression over variables and numbers in place of the arguments' names.
// Numbers that are expressions are variables that join those it uses.
expr::Id Lowering::bind(const Node& node,
                        expr::Id id,
                        Compute computes,
                        const std::unordered_map<std::string, expr::Id>& names,
                        std::vector<Var>* used,
                        ScalarType common) {
  std::unordered_map<std::string, expr::Id> values = names;
  expr::Graph& g = program_.expressions;
  for (const std::string& name : g.names(id)) {
    int argument = argument_named(node, name);
    if (values.contains(name) || argument < 0) continue;
    const IValue& given = node.arguments[static_cast<size_t>(argument)];
    bool rounds =
        is_rounded(node, static_cast<size_t>(argument), /*single=*/true);
    ScalarType kept = rounds ? common : ScalarType::Undefined;
    if (given.is<SymInt>() && used != nullptr) {
      Var v = program_.number(given.get<SymInt>(), computes);
      used->push_back(stored_as(v, kept));
      values[name] = g.name(Program::name_of(used->back()));
      continue;
    }
    auto number = number_in(given, kind_of(computes));
    TAEDA_INTERNAL_ASSERT(number, "loops: ", name, " is not a number");
    values[name] = g.literal(kept_of(*number, kept));
  }
  return g.substitute(id, values);
}

// Where a small step decides (an integer, a comparison) an element of 16 bits
// is what the call that made it would have stored.
Var Lowering::as_stored(ValueId value, const Spaces::Dims& dims) {
  Var v = operand(value, dims);
  ScalarType dtype = graph_[value].dtype;
  bool small = is_16_bit(dtype);
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
    if (graph_[from].dtype != dtype) v = stored_as(v, dtype);
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
    bool other = !condition && graph_[value].dtype != call.common;
    bool single = graph_[value].sizes.empty();
    if (other && is_rounded(node, argument, single)) {
      v = stored_as(v, call.common);
    }
    names[name] = g.name(Program::name_of(v));
    used.push_back(v);
  }
  id = bind(node, id, call.computes, names, &used, call.common);
  Compute made = tests ? Compute::Bool : call.computes;
  Var v = program_.compute(call.computes, made, id, std::move(used));
  vars_[out] = program_.convert(v, compute_of(dtype));
}

// An integer that counts on the place in the loops.
Var Lowering::integer(const Linear& at, Compute type) {
  expr::Graph& g = program_.expressions;
  std::vector<Var> used;
  expr::Id total = g.integer(at.offset);
  for (auto [axis, step] : at.steps) {
    used.push_back(program_.convert(program_.index(axes_.at(axis)), type));
    expr::Id index = g.name(Program::name_of(used.back()));
    expr::Id part = g.binary(expr::BinaryOp::Mul, index, g.integer(step));
    total = g.binary(expr::BinaryOp::Add, total, part);
  }
  return program_.compute(type, type, total, std::move(used));
}

void Lowering::lower_map(const Node& node, const Call& call) {
  ValueId out = node.results[0];
  expr::Graph& g = program_.expressions;
  Spaces spaces = spaces_;
  auto map = index_map(graph_, node, g, spaces);
  TAEDA_INTERNAL_ASSERT(map, "loops: ", node.op->name, " is no map");
  std::unordered_map<std::string, expr::Id> names;
  std::vector<Var> used;
  auto bind_to = [&](const char* kind, size_t i, Var v) {
    names[str_cat(kind, i)] = g.name(Program::name_of(v));
    used.push_back(v);
  };
  for (size_t i = 0; i < map->reads.size(); ++i) {
    const MapRead& read = map->reads[i];
    auto made = vars_.find(read.value);
    Var v = made != vars_.end() ? made->second : load_at(read);
    const expr::Node& formula = g[map->formula];
    if (formula.type == expr::Word::Name &&
        g.name_of(map->formula) == str_cat("r", i)) {
      vars_[out] = v;
      return;
    }
    bind_to("r", i, v);
  }
  for (size_t i = 0; i < map->tests.size(); ++i) {
    const Linear& at = map->tests[i].left;
    // Vectors have as many integers of 32 bits as floats.
    Compute type = fits_int(spaces_, at) ? Compute::I32 : Compute::I64;
    Var left = integer(at, type);
    expr::Id test = g.compare(
        map->tests[i].op, g.name(Program::name_of(left)), g.integer(0));
    bind_to("c", i, program_.compute(type, Compute::Bool, test, {left}));
  }
  for (size_t i = 0; i < map->integers.size(); ++i) {
    bind_to("x",
            i,
            program_.convert(integer(map->integers[i], Compute::I64),
                             call.computes));
  }
  expr::Id id = bind(node, map->formula, call.computes, names);
  expr::Kinds kinds;
  kinds.compute = kind_of(call.computes);
  for (Var v : used) {
    kinds.names[Program::name_of(v)] = kind_of(program_[v].type);
  }
  // A choice of numbers is vector code; a truth turned into a number is not.
  bool truth = g.kind(id, kinds) == expr::Kind::Bool;
  if (truth && call.computes != Compute::Bool) {
    id = g.cond(id, g.integer(1), g.integer(0));
  }
  vars_[out] =
      program_.compute(call.computes, call.computes, id, std::move(used));
}

void Lowering::add_frame(const Node& node, const Call& call) {
  ValueId out = node.results[0];
  Spaces spaces;
  spaces.set(out, fresh_dims(graph_[out], spaces));
  expr::Graph g;
  MapRead read = index_map(graph_, node, g, spaces)->reads[0];
  Frame frame{call.operands[0].second, {}, *read.fill};
  for (const Linear& at : read.dims) frame.offsets.push_back(at.offset);
  frames_.emplace(out, std::move(frame));
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
  } else if (call.kind == CallKind::Map) {
    if (spaces_.has(node.results[0])) {
      lower_map(node, call);
    } else {
      add_frame(node, call);
    }
  } else {
    lower_pointwise(node, call);
  }
}

void Lowering::round(ValueId value) {
  auto made = vars_.find(value);
  ScalarType dtype = graph_[value].dtype;
  if (made == vars_.end() || !is_16_bit(dtype)) return;
  const Instruction& last = program_[made->second];
  bool stored = last.op == Op::Load && last.bounds.empty();
  if (stored || last.op == Op::Round) return;
  made->second = program_.round(made->second, dtype);
}

void Lowering::store(ValueId value) {
  int buffer = program_.buffer(graph_[value].dtype, /*written=*/true);
  program_.store(vars_.at(value), buffer, place_of(value, spaces_.dims(value)));
}

}  // namespace taeda::compiler::loops
