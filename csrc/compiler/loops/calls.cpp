#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/csrc/compiler/loops/calls.h>
#include <taeda/csrc/compiler/loops/formula.h>
#include <taeda/csrc/compiler/loops/schedule.h>

#include <algorithm>

namespace taeda::compiler::loops {

Spaces::Dims fresh_dims(const Value& v, Spaces& spaces) {
  Spaces::Dims dims;
  for (const SymInt& n : v.sizes) {
    dims.emplace_back();
    if (!same(n, 1)) dims.back().push_back(spaces.axis(n));
  }
  return dims;
}

namespace {

constexpr DtypeSet kKnown = dtype_set(kBool,
                                      kByte,
                                      kChar,
                                      kShort,
                                      kInt,
                                      kLong,
                                      kHalf,
                                      kBFloat16,
                                      kFloat,
                                      kDouble);

// Memory of the CPU, elements that loops compute with.
bool is_known(const Value& v) {
  return v.device.is_cpu() && (kKnown & dtype_bit(v.dtype)) != 0;
}

bool is_empty(const Value& v) {
  return std::any_of(v.sizes.begin(), v.sizes.end(), [](const SymInt& n) {
    return same(n, 0);
  });
}

// Operands as promotion sees them: conditions first, as drivers have them.
struct Operands {
  std::vector<TensorBase> tensors;
  std::vector<Scalar> numbers;
  std::vector<Operand> list;
};

bool is_condition(std::string_view name) {
  return name == "condition" || name == "mask";
}

Operands promoting(const Graph& graph,
                   const Node& node,
                   const Call& call,
                   bool with_numbers) {
  Operands out;
  out.tensors.reserve(call.operands.size());
  out.numbers.reserve(node.arguments.size());
  for (bool conditions : {true, false}) {
    for (auto [argument, value] : call.operands) {
      if (is_condition(argument_name(node, argument)) != conditions) continue;
      const Value& v = graph[value];
      TensorBase t = v.constant;
      DimVector ones(v.sizes.size(), 1);
      if (!t.defined()) {
        t = make_tensor("compile", ones, v.dtype, DeviceType::Meta);
      }
      out.tensors.push_back(std::move(t));
      out.list.push_back(Operand(out.tensors.back()));
    }
  }
  for (size_t i = 0; with_numbers && i < node.arguments.size(); ++i) {
    bool scalar = arguments_of(*node.op->info)[i].type == ValueType::Scalar;
    if (!scalar || is_missing(node, i)) continue;
    const IValue& number = node.arguments[i];
    out.numbers.push_back(number.is<SymInt>()
                              ? Scalar(hint(number.get<SymInt>()))
                              : number.to_scalar());
    out.list.push_back(Operand(out.numbers.back()));
  }
  return out;
}

// The dtypes of a pointwise call whose result has the dtype that the
// record's rule says; a rule that differs by parameters says another one.
std::optional<DtypePlan> dtypes_of(const Graph& graph,
                                   const Node& node,
                                   const Call& call) {
  const DtypeRule& rule = node.op->info->record->dtypes;
  ScalarType out = graph[node.results[0]].dtype;
  if (call.operands.size() <= rule.conditions) return std::nullopt;
  for (bool with_numbers : {false, true}) {
    if (rule.out == OutKind::Bool && !with_numbers) continue;
    Operands operands = promoting(graph, node, call, with_numbers);
    try {
      DtypePlan plan = plan_dtypes(node.op->name, rule, operands.list);
      if (plan.out == out) return plan;
    } catch (const Error&) {
      // Without the numbers it is another dtype, which the operator may refuse.
    }
  }
  return std::nullopt;
}

bool one_result(const Graph& graph, const Node& node) {
  return node.results.size() == 1 && node.results[0] != kNoValue &&
         is_known(graph[node.results[0]]);
}

void list_operands(const Node& node, Call& call) {
  for (size_t i = 0; i < node.op->info->arguments; ++i) {
    ValueId v = used_value(node, i);
    if (v != kNoValue) call.operands.emplace_back(i, v);
  }
}

// Whether each number among the arguments is one of the kind that the formula
// computes in: what becomes of 1.5 among integers is the kernel's business.
bool has_fit_numbers(const Node& node,
                     const expr::Graph& g,
                     expr::Id formula,
                     Compute computes,
                     bool with_symbols) {
  for (const std::string& name : g.names(formula)) {
    int named = argument_named(node, name);
    if (named < 0) continue;
    auto argument = static_cast<size_t>(named);
    if (used_value(node, argument) != kNoValue) continue;
    bool holds_symbols =
        kind_of(computes) == expr::Kind::Float || computes == Compute::I64;
    bool symbol = node.arguments[argument].is<SymInt>();
    if (symbol && with_symbols && holds_symbols) continue;
    if (!number_in(node.arguments[argument], kind_of(computes))) return false;
  }
  return true;
}

Call pointwise(const Graph& graph, const Node& node, Call call) {
  // What is reduced after the formula is another operator's business.
  int reduction = reduction_of(node);
  if (reduction >= 0) {
    auto r = number_in(node.arguments[static_cast<size_t>(reduction)],
                       expr::Kind::Int);
    if (!r || r->integer != 0) return {};
  }
  auto plan = dtypes_of(graph, node, call);
  if (!plan || plan->compute >= Compute::C64) return {};
  Compute computes = plan->compute;
  expr::Graph g;
  CallFormulas formulas(graph, node, g);
  auto id = formulas.find(expr::Role::Forward, kind_of(computes));
  if (!id || !has_fit_numbers(node, g, *id, computes, true)) return {};
  call.kind = CallKind::Pointwise;
  call.computes = computes;
  call.common = plan->common;
  call.cost = work_of(g, *id);
  return call;
}

// The dim along which elements follow each other; -1 for none.
int64_t innermost(const Value& v) {
  for (size_t d = 0; d < v.sizes.size(); ++d) {
    if (!same(v.sizes[d], 1) && same(v.strides[d], 1)) {
      return static_cast<int64_t>(d);
    }
  }
  return -1;
}

// A copy in another layout jumps on one side, whatever the loops. It would take
// from its neighbours the region that they make without it.
bool turns(const Value& from, const Value& to) {
  int64_t a = innermost(from), b = innermost(to);
  return a >= 0 && b >= 0 && a != b;
}

// An index map that gives each element of its only tensor at its own place.
Call copy(const Graph& graph, const Node& node, Call call) {
  expr::Graph g;
  CallFormulas formulas(graph, node, g);
  auto id = formulas.find(expr::Role::Element, expr::Kind::Float);
  if (!id || !g.is_access(*id, expr::AccessOp::Read)) return {};
  expr::Id index = g[*id].args[1];
  bool same = g.is_access(index, expr::AccessOp::At) &&
              g[g[index].args[0]].type == expr::Word::Name &&
              g.name_of(g[index].args[0]) == "axis";
  if (!same || call.operands.size() != 1) return {};
  const Value& out = graph[node.results[0]];
  const Value& from = graph[call.operands[0].second];
  if (from.sizes.size() != out.sizes.size() || turns(from, out)) return {};
  call.kind = CallKind::Pointwise;
  call.copies = true;
  call.computes = compute_of(out.dtype);
  call.cost = 1;
  return call;
}

// Whether each dim is the frame's own index but for an offset.
bool is_plain_frame(const MapRead& read, const Spaces::Dims& dims) {
  if (!read.fill || read.dims.size() != dims.size()) return false;
  for (size_t d = 0; d < dims.size(); ++d) {
    const auto& steps = read.dims[d].steps;
    if (dims[d].empty()) continue;
    bool own = dims[d].size() == 1 && steps.size() == 1 &&
               steps.begin()->first == dims[d][0] && steps.begin()->second == 1;
    if (!own) return false;
  }
  return true;
}

// Whether the innermost axis of a result has a last part of a few elements,
// that may be woven into the loop along the part before.
bool wants_weaving(const Spaces::Axes& axes, const Spaces& spaces) {
  return axes.size() > 1 && hint(spaces.size(axes.back())) <= kShortStep;
}

// Whether elements are read one after the other, or by short steps, along the
// result's innermost axis; it would spoil the loops of its neighbours.
bool reads_in_order(const Graph& graph,
                    const IndexMap& map,
                    const Spaces::Axes& axes,
                    const Spaces& spaces) {
  constexpr int64_t kLeast = 8;
  bool woven = wants_weaving(axes, spaces);
  size_t last = axes.size() - (woven ? 2 : 1);
  if (axes.size() > 1 && hint(spaces.size(axes[last])) < kLeast) return false;
  for (const MapRead& read : map.reads) {
    int64_t step = 0;
    for (size_t d = 0; d < read.dims.size(); ++d) {
      auto along = read.dims[d].steps.find(axes[last]);
      if (along == read.dims[d].steps.end()) continue;
      step += along->second * hint(graph[read.value].strides[d]);
    }
    if (step < 0 || step > (woven ? 1 : kShortStep)) return false;
    if (woven && read.fill) return false;
  }
  return true;
}

// Whether the result's dtype has all numbers that the formula names; kernels
// refuse others.
bool holds_numbers(const Node& node,
                   const expr::Graph& g,
                   const IndexMap& map,
                   ScalarType dtype) {
  std::vector<Scalar> numbers;
  for (const MapRead& read : map.reads) {
    if (!read.fill) continue;
    bool whole = read.fill->kind <= expr::Kind::Int;
    numbers.push_back(whole ? Scalar(read.fill->integer)
                            : Scalar(read.fill->real));
  }
  for (const std::string& name : g.names(map.formula)) {
    int argument = argument_named(node, name);
    if (argument < 0) continue;
    const IValue& given = node.arguments[static_cast<size_t>(argument)];
    if (number_in(given, expr::Kind::Float)) {
      numbers.push_back(given.to_scalar());
    }
  }
  try {
    std::array<std::byte, 16> element;
    for (const Scalar& n : numbers) n.store(dtype, element.data());
  } catch (const Error&) {
    return false;
  }
  return true;
}

// Formulas that only choose elements keep their bits; others are computed in
// the type of the result.
Call map(const Graph& graph, const Node& node, Call call) {
  const Value& out = graph[node.results[0]];
  Spaces spaces;
  spaces.set(node.results[0], fresh_dims(out, spaces));
  expr::Graph g;
  auto found = index_map(graph, node, g, spaces);
  if (!found) return {};
  Spaces::Dims dims = spaces.dims(node.results[0]);
  int64_t inner = innermost(out);
  if (inner < 0) return {};
  const Spaces::Axes& axes = dims[static_cast<size_t>(inner)];
  if (!reads_in_order(graph, *found, axes, spaces)) return {};
  call.weaves = wants_weaving(axes, spaces);
  call.computes = compute_of(out.dtype);
  // Kernels work sequences of floats out in double.
  if (!found->integers.empty() && is_floating(out.dtype)) return {};
  for (const MapRead& read : found->reads) {
    if (graph[read.value].dtype != out.dtype) return {};
  }
  if (!has_fit_numbers(node, g, found->formula, call.computes, false)) {
    return {};
  }
  if (!holds_numbers(node, g, *found, out.dtype)) return {};
  call.kind = CallKind::Map;
  call.parts = std::any_of(dims.begin(), dims.end(), [](const auto& axes) {
    return axes.size() > 1;
  });
  call.frames = found->reads.size() == 1 &&
                g[found->formula].type == expr::Word::Name &&
                is_plain_frame(found->reads[0], dims);
  call.cost = 1 + work_of(g, found->formula);
  return call;
}

uint64_t reduced_dims(const Node& node, int64_t rank) {
  int argument = argument_named(node, "dim");
  std::vector<int64_t> dims;
  if (argument >= 0) {
    const IValue& v = node.arguments[static_cast<size_t>(argument)];
    if (v.is<int64_t>()) dims.push_back(v.get<int64_t>());
    if (v.is<std::vector<int64_t>>()) dims = v.get<std::vector<int64_t>>();
  }
  uint64_t all = rank >= 64 ? ~uint64_t{0} : (uint64_t{1} << rank) - 1;
  if (dims.empty()) return all;
  uint64_t mask = 0;
  for (int64_t d : dims) mask |= uint64_t{1} << wrap_dim(d, rank);
  return mask & all;
}

// Whether the result lacks these dims, or has one element along them: an empty
// list is all dims to most operators, and none to `all`, `any` and their kin.
bool are_reduced(const Value& self, const Value& out, uint64_t dims) {
  bool keeps = self.sizes.size() == out.sizes.size();
  size_t left = 0;
  for (size_t d = 0; d < self.sizes.size(); ++d) {
    bool reduced = (dims >> d & 1) != 0;
    left += keeps || !reduced;
    if (keeps && reduced && !same(out.sizes[d], 1)) return false;
  }
  return left == out.sizes.size();
}

Call reduction(const Graph& graph, const Node& node, Call call) {
  if (call.operands.size() != 1) return {};
  const Value& self = graph[call.operands[0].second];
  auto rank = static_cast<int64_t>(self.sizes.size());
  std::optional<ScalarType> dtype;
  if (int a = argument_named(node, "dtype"); a >= 0) {
    const IValue& v = node.arguments[static_cast<size_t>(a)];
    if (!v.is_none()) dtype = static_cast<ScalarType>(v.to_int());
  }
  DtypePlan plan = plan_reduction(
      node.op->name, node.op->info->record->dtypes, self.dtype, dtype);
  if (plan.out != graph[node.results[0]].dtype) return {};
  if (plan.compute >= Compute::C64) return {};
  expr::Graph g;
  CallFormulas formulas(graph, node, g);
  for (auto role : {expr::Role::Init,
                    expr::Role::Map,
                    expr::Role::Combine,
                    expr::Role::Finish}) {
    auto id = formulas.find(role, kind_of(plan.compute));
    if (!id || !has_fit_numbers(node, g, *id, plan.compute, false)) {
      return {};
    }
    call.cost += role == expr::Role::Finish ? 0 : work_of(g, *id);
  }
  call.kind = CallKind::Reduce;
  call.computes = plan.compute;
  call.dims = reduced_dims(node, rank);
  if (!are_reduced(self, graph[node.results[0]], call.dims)) return {};
  return call;
}

}  // namespace

bool is_rounded(const Node& node, size_t argument, bool single) {
  const RecordInfo& record = *node.op->info->record;
  ArrayRef<ArgInfo> all = arguments_of(*node.op->info);
  bool number = all[argument].type == ValueType::Scalar;
  // Of a record with several formulas each has operands of its own.
  if (number && record.loops == nullptr) return false;
  bool condition = is_condition(argument_name(node, argument));
  size_t place = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    bool counts = all[i].is_tensor() || all[i].type == ValueType::Scalar;
    bool other = is_condition(argument_name(node, i));
    bool before = other == condition ? i < argument : other;
    if (counts && before) ++place;
  }
  if (number && place >= record.loops->operands) return false;
  return !(single && record.dtypes.is_exact(place));
}

Call describe(const Graph& graph, const Node& node) {
  if (node.op == nullptr || node.op->info->form != Form::Functional) return {};
  if (!one_result(graph, node)) return {};
  const RecordInfo& record = *node.op->info->record;
  Call call;
  list_operands(node, call);
  bool listed = call.operands.size() == node.uses.size();
  for (const Use& use : node.uses) listed &= is_known(graph[use.value]);
  if (!listed || is_empty(graph[node.results[0]])) return {};
  if (graph[node.results[0]].base != kNoValue) {
    call.kind = CallKind::View;
    return call;
  }
  if (record.expressions == nullptr) return {};
  bool driver = record.dtypes.computes != 0;
  for (auto [argument, value] : call.operands) {
    if (is_empty(graph[value])) return {};
  }
  if (record.family == Family::Pointwise && driver) {
    return pointwise(graph, node, std::move(call));
  }
  if (record.family == Family::Reduction && driver) {
    return reduction(graph, node, std::move(call));
  }
  if (record.family == Family::Map) {
    Call copied = copy(graph, node, call);
    if (copied.kind != CallKind::Opaque) return copied;
    return map(graph, node, std::move(call));
  }
  return {};
}

// Groups ----------------------------------------------------------------------

namespace {

bool add_pointwise(const Graph& graph,
                   const Node& node,
                   const Call& call,
                   Spaces& spaces) {
  const Value& out = graph[node.results[0]];
  Spaces::Dims result = fresh_dims(out, spaces);
  spaces.set(node.results[0], result);
  for (auto [argument, value] : call.operands) {
    if (!spaces.has(value)) continue;
    Spaces::Dims dims = spaces.dims(value);
    if (dims.size() > result.size()) return false;
    size_t shift = result.size() - dims.size();
    for (size_t d = 0; d < dims.size(); ++d) {
      if (dims[d].empty()) continue;
      if (!spaces.unify(dims[d], result[d + shift])) return false;
    }
  }
  return true;
}

// What the group makes is read at its own place in the loops.
bool add_map(const Graph& graph, const Node& node, Spaces& spaces) {
  ValueId out = node.results[0];
  spaces.set(out, fresh_dims(graph[out], spaces));
  expr::Graph g;
  auto map = index_map(graph, node, g, spaces);
  if (!map) return false;
  for (const MapRead& read : map->reads) {
    if (!spaces.has(read.value)) continue;
    Spaces::Dims dims = spaces.dims(read.value);
    for (size_t d = 0; d < dims.size(); ++d) {
      auto axes = axes_of(spaces, read.dims[d]);
      if (!axes || !spaces.unify(dims[d], *axes)) return false;
    }
  }
  return true;
}

bool add_reduce(const Graph& graph,
                const Node& node,
                const Call& call,
                Spaces& spaces) {
  ValueId self = call.operands[0].second;
  const Value& in = graph[self];
  Spaces::Dims dims =
      spaces.has(self) ? spaces.dims(self) : fresh_dims(in, spaces);
  Spaces::Dims result;
  Spaces::Axes reduced;
  bool keeps = graph[node.results[0]].sizes.size() == in.sizes.size();
  for (size_t d = 0; d < dims.size(); ++d) {
    if ((call.dims >> d & 1) == 0) {
      result.push_back(dims[d]);
      continue;
    }
    // A dim that repeats one element has no axis to run along.
    if (dims[d].empty() && !same(in.sizes[d], 1)) return false;
    reduced.insert(reduced.end(), dims[d].begin(), dims[d].end());
    if (keeps) result.emplace_back();
  }
  if (reduced.empty()) return false;
  if (!spaces.has(self)) spaces.set(self, dims);
  spaces.set(node.results[0], std::move(result));
  return spaces.reduce(reduced);
}

// Dims with more than one element, from the one with the widest steps; empty
// where elements overlap or leave gaps.
std::vector<size_t> memory_order(const Value& v) {
  std::vector<size_t> order;
  for (size_t d = 0; d < v.sizes.size(); ++d) {
    if (!same(v.sizes[d], 1) && !same(v.strides[d], 0)) {
      order.push_back(d);
    }
  }
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return hint(v.strides[a]) > hint(v.strides[b]);
  });
  SymInt running = 1;
  for (size_t i = order.size(); i-- > 0;) {
    if (!same(v.strides[order[i]], running)) return {};
    running *= v.sizes[order[i]];
  }
  return order;
}

// A view that shows each element of a value of the group: both run through the
// same memory.
bool add_view(const Graph& graph, const Node& node, Spaces& spaces) {
  ValueId view = node.results[0];
  const Value& v = graph[view];
  if (!spaces.has(v.base) || graph[v.base].dtype != v.dtype) return false;
  if (!same(v.offset, 0)) return false;
  Spaces::Dims dims(v.sizes.size()), base = spaces.dims(v.base);
  Spaces::Axes mine, others;
  for (size_t d : memory_order(graph[v.base])) {
    others.insert(others.end(), base[d].begin(), base[d].end());
  }
  for (size_t d : memory_order(v)) {
    dims[d] = {spaces.axis(v.sizes[d])};
    mine.push_back(dims[d][0]);
  }
  if (mine.empty() || others.empty()) return false;
  spaces.set(view, dims);
  return spaces.unify(others, mine);
}

}  // namespace

bool is_window(const Graph& graph, const Node& node, const Spaces& spaces) {
  const Value& v = graph[node.results[0]];
  return v.base != kNoValue && !spaces.has(v.base) &&
         graph[v.base].dtype == v.dtype;
}

bool is_frame(const Call& call, const Spaces& spaces) {
  return call.kind == CallKind::Map && call.frames &&
         !spaces.has(call.operands[0].second);
}

bool has_places(const Graph& graph,
                const Node& node,
                const Call& call,
                const Spaces& spaces) {
  ValueId made = node.results[0];
  if (!spaces.has(made)) return true;
  if (call.kind == CallKind::Map) {
    expr::Graph g;
    Spaces copy = spaces;
    return index_map(graph, node, g, copy).has_value();
  }
  Spaces::Dims dims = spaces.dims(made);
  return std::all_of(dims.begin(), dims.end(), [&](const Spaces::Axes& axes) {
    return linear_in(spaces, axes).has_value();
  });
}

bool add_call(const Graph& graph,
              const Node& node,
              const Call& call,
              Spaces& spaces) {
  bool added = false;
  if (call.kind == CallKind::Pointwise) {
    added = add_pointwise(graph, node, call, spaces);
  } else if (call.kind == CallKind::Reduce) {
    added = add_reduce(graph, node, call, spaces);
  } else if (call.kind == CallKind::Map) {
    added = add_map(graph, node, spaces);
  } else if (call.kind == CallKind::View) {
    added = add_view(graph, node, spaces);
  }
  return added && spaces.valid();
}

}  // namespace taeda::compiler::loops
