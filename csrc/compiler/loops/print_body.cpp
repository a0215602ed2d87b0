#include <taeda/c10/util/format.h>
#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/print_body.h>

#include <algorithm>

namespace taeda::compiler::loops {

// One word each: `unsigned char(3)` is no expression.
const char* type_name(Compute type) {
  constexpr const char* names[] = {"bool",
                                   "uint8_t",
                                   "int8_t",
                                   "short",
                                   "int",
                                   "int64_t",
                                   "float",
                                   "double"};
  return names[static_cast<int>(type)];
}

// Elements of bool are read as bytes: Note [Bytes of bool tensors].
const char* memory_name(ScalarType dtype) {
  if (dtype == kBool) return "unsigned char";
  if (dtype == kHalf) return "Half";
  if (dtype == kBFloat16) return "BFloat16";
  return type_name(compute_of(dtype));
}

// See Note [Huge arguments of sin] in aten/math/trig.h.
std::string any_argument(std::string text) {
  for (const char* name : {"sin", "cos", "tan"}) {
    std::string from = message("math::{}(", name);
    std::string to = message("math::{}_any(", name);
    for (size_t at = 0; (at = text.find(from, at)) != text.npos;) {
      text.replace(at, from.size(), to);
      at += to.size();
    }
  }
  return text;
}

std::vector<bool> shares_memory(const Program& program) {
  auto count = static_cast<int>(program.buffers().size());
  std::vector<bool> shares(program.buffers().size());
  for (int to = 0; to < count; ++to) {
    for (int from = 0; from < count; ++from) {
      if (!may_share(program, to, from)) continue;
      shares[static_cast<size_t>(to)] = true;
      shares[static_cast<size_t>(from)] = true;
    }
  }
  return shares;
}

std::string NumberNames::operator()(const SymInt& v) {
  if (!v.is_symbolic()) return v.text();
  size_t i = 0;
  while (i < numbers.size() && !same(numbers[i], v)) ++i;
  if (i == numbers.size()) numbers.push_back(v);
  return str_cat("n", i);
}

BodyPrinter::BodyPrinter(Program& program,
                         const Schedule& schedule,
                         NumberNames& names)
    : p_(program),
      s_(schedule),
      name_(names),
      in_array_(static_cast<size_t>(program.count()), false),
      by_pairs_(static_cast<size_t>(program.count()), false) {
  find_pairs();
}

namespace {

// The offset of a load in its buffer, bounds and all.
std::optional<int64_t> first_element(const Instruction& i) {
  SymInt at = i.place.offset;
  for (const Bound& b : i.bounds) at += b.stride * SymInt(b.offset);
  if (at.is_symbolic()) return std::nullopt;
  return at.plain();
}

bool steps_alike(const Program& p, const Instruction& a, const Instruction& b) {
  bool alike = a.buffer == b.buffer;
  for (size_t axis = 0; axis < p.sizes().size(); ++axis) {
    alike = alike && same(a.step(axis), b.step(axis));
  }
  return alike;
}

}  // namespace

void BodyPrinter::find_pairs() {
  // A woven axis reads both halves.
  if (s_.woven != Schedule::kNone) return;
  if (s_.vector == Schedule::kNone) return;
  std::vector<std::pair<int64_t, Var>> loads;
  for (Var v = 0; v < p_.count(); ++v) {
    const Instruction& i = p_[v];
    if (i.op != Op::Load || !same(i.step(s_.vector), 2)) continue;
    auto size = element_size(p_.buffers()[static_cast<size_t>(i.buffer)].dtype);
    auto first = first_element(i);
    bool fits = (size == 2 || size == 4) && !same(i.reach, 0);
    if (fits && first) loads.emplace_back(*first, v);
  }
  std::sort(loads.begin(), loads.end());
  std::vector<bool> done(loads.size(), false);
  for (size_t a = 0; a < loads.size(); ++a) {
    for (size_t b = a + 1; b < loads.size() && !done[a]; ++b) {
      bool next = loads[b].first == loads[a].first + 1 && !done[b];
      if (!next) continue;
      done[a] = done[b] =
          steps_alike(p_, p_[loads[a].second], p_[loads[b].second]);
    }
    by_pairs_[static_cast<size_t>(loads[a].second)] = !done[a];
  }
}

bool BodyPrinter::is_column(Var v) const {
  const Instruction& i = p_[v];
  bool has_value = i.op != Op::Store && !s_.full[static_cast<size_t>(v)];
  if (!s_.columns || !has_value) return false;
  if (i.op == Op::Reduce || (i.axes & axis_bit(s_.vector)) != 0) return true;
  return std::any_of(i.operands.begin(), i.operands.end(), [&](Var o) {
    return is_column(o);
  });
}

void BodyPrinter::mark_kept(const std::vector<Var>& vars) {
  for (Var v : vars) in_array_[static_cast<size_t>(v)] = true;
}

PassParts BodyPrinter::parts(int pass) const {
  PassParts parts;
  std::vector<Var> roots;
  for (Var v = 0; v < p_.count(); ++v) {
    const Instruction& i = p_[v];
    auto at = static_cast<size_t>(v);
    if (i.op == Op::Store && s_.full[at] && s_.stage[at] == pass) {
      parts.stores.push_back(v);
    } else if (i.op == Op::Reduce && s_.stage[at] == pass + 1) {
      parts.sums.push_back(v);
    } else {
      continue;
    }
    roots.push_back(v);
  }
  for (Var v : needs_of(roots, /*with_roots=*/false).defined) {
    if (s_.kept[static_cast<size_t>(v)]) parts.kept.push_back(v);
  }
  return parts;
}

// Down to what has a value outside of the loop.
void BodyPrinter::collect(Var v, Needs& needs, std::vector<bool>& seen) const {
  auto at = static_cast<size_t>(v);
  if (seen[at]) return;
  seen[at] = true;
  if (in_array_[at] || is_column(v)) {
    needs.read.push_back(v);
  } else if (s_.full[at]) {
    for (Var o : p_[v].operands) collect(o, needs, seen);
    needs.defined.push_back(v);
  }
}

BodyPrinter::Needs BodyPrinter::needs_of(const std::vector<Var>& roots,
                                         bool with_roots) const {
  Needs needs;
  std::vector<bool> seen(static_cast<size_t>(p_.count()), false);
  for (Var v : roots) {
    bool is_value = p_[v].op != Op::Store && p_[v].op != Op::Reduce;
    if (with_roots && is_value && s_.full[static_cast<size_t>(v)]) {
      collect(v, needs, seen);
    } else {
      for (Var o : p_[v].operands) collect(o, needs, seen);
    }
  }
  return needs;
}

std::string BodyPrinter::read_array(Var v, const std::string& index) const {
  bool kept = in_array_[static_cast<size_t>(v)];
  return message("const {} v{} = v{}{};\n",
                 type_name(p_[v].type),
                 int64_t{v},
                 int64_t{v},
                 kept ? message("k[k + {}]", index) : message("a[{}]", index));
}

// From the pointer at the outer point on, bounds left out.
std::string BodyPrinter::offset(Var v, const std::string& index) const {
  const std::vector<SymInt>& strides = p_[v].place.strides;
  std::string at;
  auto add = [&](size_t a) {
    if (same(strides[a], 0)) return;
    at += message("i{} * {} + ", a, name_(strides[a]));
  };
  for (size_t a : s_.inner) add(a);
  if (s_.woven != Schedule::kNone) add(s_.woven);
  SymInt step = s_.vector == Schedule::kNone ? 0 : strides[s_.vector];
  if (same(step, 0)) {
    at += "0";
  } else if (same(step, 1)) {
    at += index;
  } else {
    at += message("{} * {}", index, name_(step));
  }
  return at;
}

std::string BodyPrinter::place(Var v, const std::string& index) const {
  return message("q{}[{}]", int64_t{v}, offset(v, index));
}

std::string BodyPrinter::index_of(size_t axis, const std::string& index) const {
  if (axis != s_.vector) return message("i{}", axis);
  return s_.block > 0 ? message("(c + {})", index) : index;
}

std::string BodyPrinter::index_in(const Bound& bound,
                                  const std::string& index) const {
  std::string text = str_cat(bound.offset);
  for (size_t a = 0; a < bound.steps.size(); ++a) {
    if (bound.steps[a] == 0) continue;
    text += message(" + {} * {}", bound.steps[a], index_of(a, index));
  }
  return text;
}

// As if the buffer had elements out of bounds, too.
std::string BodyPrinter::raw_offset(Var v, const std::string& index) const {
  std::string at = offset(v, index);
  for (const Bound& b : p_[v].bounds) {
    at += str_cat(" + (", index_in(b, index), ") * ", name_(b.stride));
  }
  return at;
}

// What a load gives that reads this place.
std::string BodyPrinter::element(Var v, const std::string& text) const {
  const Instruction& i = p_[v];
  ScalarType dtype = p_.buffers()[static_cast<size_t>(i.buffer)].dtype;
  if (dtype == kBool) return text + " != 0";
  return message("static_cast<{}>({})", type_name(i.type), text);
}

// In a loop that stays in the buffers.
std::string BodyPrinter::load(Var v, const std::string& index) const {
  if (!by_pairs_[static_cast<size_t>(v)]) {
    return element(v, message("q{}[{}]", int64_t{v}, raw_offset(v, index)));
  }
  return message("static_cast<{}>(first_of_pair(q{} + ({}), {}))",
                 type_name(p_[v].type),
                 int64_t{v},
                 raw_offset(v, "0"),
                 index);
}

// The element is read whether it is chosen or not: a load under a condition
// keeps g++ from vector code. What is not chosen may be any memory of the
// buffer in a loop that stays there, else the nearest element.
std::string BodyPrinter::bounded_load(Var v, const std::string& index) {
  const Instruction& i = p_[v];
  std::string at = offset(v, index), test;
  for (const Bound& b : i.bounds) {
    std::string x = index_in(b, index), size = str_cat(b.size);
    test += str_cat(test.empty() ? "" : " & ", "within(", x, ", ", size, ")");
    at += str_cat(" + nearest(", x, ", ", size, ") * ", name_(b.stride));
  }
  const char* type = type_name(i.type);
  std::string read = in_buffers_
                         ? load(v, index)
                         : element(v, message("q{}[{}]", int64_t{v}, at));
  expr::Kinds kinds;
  kinds.compute = kind_of(i.type);
  expr::CppTypes types;
  types.compute = types.real = type;
  expr::CppBlock fill =
      to_cpp(p_.expressions, {i.value}, kinds, kind_of(i.type), types);
  return message("const {} v{}m = {};\n", type, int64_t{v}, read) +
         message("const {} v{} = chosen<{}>({}, v{}m, {});\n",
                 type,
                 int64_t{v},
                 type,
                 test,
                 int64_t{v},
                 fill.results[0]);
}

std::string BodyPrinter::reads_buffers(const std::vector<Var>& roots,
                                       const std::string& steps) const {
  std::string text;
  for (Var v : needs_of(roots, /*with_roots=*/true).defined) {
    const Instruction& i = p_[v];
    bool pair = by_pairs_[static_cast<size_t>(v)];
    if (i.bounds.empty() && !pair) continue;
    text += message("{}q{} - b{} + ({}) >= 0 && q{} - b{} + ({}) < {}",
                    text.empty() ? "" : " && ",
                    int64_t{v},
                    i.buffer,
                    raw_offset(v, "0"),
                    int64_t{v},
                    i.buffer,
                    raw_offset(v, str_cat("(", steps, " - 1)")),
                    name_(pair ? i.reach - 1 : i.reach));
  }
  return text;
}

expr::Kinds BodyPrinter::kinds_of(Var v) const {
  expr::Kinds kinds;
  kinds.compute = kind_of(p_[v].computes);
  for (Var o : p_[v].operands) {
    kinds.names[Program::name_of(o)] = kind_of(p_[o].type);
  }
  return kinds;
}

expr::CppTypes BodyPrinter::types_of(Var v) const {
  expr::CppTypes types;
  types.compute = types.real = type_name(p_[v].computes);
  return types;
}

std::string BodyPrinter::value(Var v, const std::string& index) {
  const Instruction& i = p_[v];
  switch (i.op) {
    case Op::Load:
      if (in_buffers_) return load(v, index);
      return element(v, place(v, index));
    case Op::Gather: {
      ScalarType dtype = p_.buffers()[static_cast<size_t>(i.buffer)].dtype;
      std::string at = message("q{}[v{}]", int64_t{v}, int64_t{i.operands[0]});
      if (dtype == kBool) return at + " != 0";
      return message("static_cast<{}>({})", type_name(i.type), at);
    }
    case Op::Index:
      return index_of(i.axis, index);
    case Op::Number:
      return message(
          "static_cast<{}>({})", type_name(i.type), name_(i.place.offset));
    case Op::Convert:
      return message(
          "convert<{}>(v{})", type_name(i.type), int64_t{i.operands[0]});
    case Op::Round:
      return message("static_cast<float>({}(v{}))",
                     memory_name(i.dtype),
                     int64_t{i.operands[0]});
    default:
      TAEDA_INTERNAL_ASSERT(false, "loops: no value to print");
  }
}

std::string BodyPrinter::expression(Var v) {
  const Instruction& i = p_[v];
  expr::CppBlock b = to_cpp(
      p_.expressions, {i.value}, kinds_of(v), kind_of(i.type), types_of(v));
  std::string type = type_name(i.type);
  std::string cast = message("static_cast<{}>({})", type, b.results[0]);
  if (b.statements.empty()) {
    return message("const {} v{} = {};\n", type, int64_t{v}, cast);
  }
  std::string text = message("{} v{}; ", type, int64_t{v}) + "{\n";
  for (const std::string& s : b.statements) text += s + "\n";
  return text + message("v{} = {};\n", int64_t{v}, cast) + "}\n";
}

std::string BodyPrinter::finish(Var v) {
  const Instruction& i = p_[v];
  expr::Kinds kinds = kinds_of(v);
  kinds.names["acc"] = kinds.names["count"] = kinds.compute;
  expr::CppBlock b = to_cpp(
      p_.expressions, {i.fold.finish}, kinds, kind_of(i.type), types_of(v));
  std::string inner = type_name(i.computes), outer = type_name(i.type);
  std::string text = message("{} v{}; ", outer, int64_t{v}) + "{\n";
  text += message("[[maybe_unused]] const {} acc = v{}r{};\n",
                  inner,
                  int64_t{v},
                  s_.columns ? "[i]" : "");
  text += message("[[maybe_unused]] const {} count = static_cast<{}>({});\n",
                  inner,
                  inner,
                  name_(p_.extent(p_.reduced())));
  for (const std::string& s : b.statements) text += s + "\n";
  return text +
         message(
             "v{} = static_cast<{}>({});\n", int64_t{v}, outer, b.results[0]) +
         "}\n";
}

std::string BodyPrinter::definition(Var v, const std::string& index) {
  const Instruction& i = p_[v];
  if (i.op == Op::Compute) return expression(v);
  if (i.op == Op::Reduce) return finish(v);
  if (!i.bounds.empty()) return bounded_load(v, index);
  if (i.op != Op::Store) {
    return message(
        "const {} v{} = {};\n", type_name(i.type), int64_t{v}, value(v, index));
  }
  ScalarType dtype = p_.buffers()[static_cast<size_t>(i.buffer)].dtype;
  std::string from = Program::name_of(i.operands[0]);
  bool small = dtype == kHalf || dtype == kBFloat16;
  std::string converted =
      small ? message("{}(v{})", memory_name(dtype), int64_t{i.operands[0]})
            : message("convert<{}>({})", type_name(compute_of(dtype)), from);
  return place(v, index) + " = " + converted + ";\n";
}

std::string BodyPrinter::operands_of(const std::vector<Var>& roots,
                                     const std::string& index) {
  Needs needs = needs_of(roots, /*with_roots=*/false);
  std::sort(needs.defined.begin(), needs.defined.end());
  std::string text;
  for (Var v : needs.read) text += read_array(v, index);
  for (Var v : needs.defined) text += definition(v, index);
  return text;
}

std::string BodyPrinter::with_operands(const std::vector<Var>& roots,
                                       const std::string& index) {
  Needs needs = needs_of(roots, /*with_roots=*/true);
  std::sort(needs.defined.begin(), needs.defined.end());
  std::string text;
  for (Var v : needs.read) text += read_array(v, index);
  for (Var v : needs.defined) text += definition(v, index);
  for (Var v : roots) {
    if (p_[v].op == Op::Reduce) {
      text += fold(v, message("v{}r[{}]", int64_t{v}, index));
    } else if (p_[v].op == Op::Store) {
      text += definition(v, index);
    } else {
      text += message("v{}k[k + {}] = v{};\n", int64_t{v}, index, int64_t{v});
    }
  }
  return text;
}

std::string BodyPrinter::initial(Var v) {
  const Instruction& i = p_[v];
  expr::CppBlock b = to_cpp(p_.expressions,
                            {i.fold.init},
                            kinds_of(v),
                            kind_of(i.computes),
                            types_of(v));
  return b.results[0];
}

expr::CppBlock BodyPrinter::combined(Var v) {
  const Instruction& i = p_[v];
  expr::Kinds kinds = kinds_of(v);
  kinds.names["a"] = kinds.names["b"] = kinds.compute;
  return to_cpp(p_.expressions,
                {i.fold.combine},
                kinds,
                kind_of(i.computes),
                types_of(v));
}

std::string BodyPrinter::meeting(Var v) {
  std::string type = type_name(p_[v].computes);
  expr::CppBlock c = combined(v);
  // g++ does not leave out a cast of a vector to an integer, but fails.
  bool floating = kind_of(p_[v].computes) == expr::Kind::Float;
  if (c.statements.empty() && floating) {
    return str_cat("[](auto a, auto b) -> decltype(",
                   c.results[0],
                   ") { return ",
                   c.results[0],
                   "; }");
  }
  std::string text = message("[]({} a, {} b) -> {} ", type, type, type) + "{\n";
  for (const std::string& s : c.statements) text += s + "\n";
  return text + str_cat("return ", c.results[0], ";\n}");
}

std::string BodyPrinter::fold(Var v, const std::string& place) {
  std::string type = type_name(p_[v].computes);
  expr::CppBlock c = combined(v);
  std::string text = message("{} = []({} a, {} b) ", place, type, type) + "{\n";
  for (const std::string& s : c.statements) text += s + "\n";
  return text + message("return static_cast<{}>({});\n", type, c.results[0]) +
         str_cat(
             "}(", place, ", ", Program::name_of(p_[v].operands[0]), ");\n");
}

int BodyPrinter::work_of(const std::vector<Var>& roots) const {
  int work = 0;
  for (Var v : needs_of(roots, /*with_roots=*/false).defined) {
    work += cost_of(p_, v);
  }
  return work;
}

void BodyPrinter::far_arguments(expr::Id id, std::vector<expr::Id>& out) const {
  const expr::Graph& g = p_.expressions;
  const expr::Node& node = g[id];
  for (const char* name : {"sin", "cos", "tan"}) {
    if (g.is_call(id, name)) out.push_back(node.args[0]);
  }
  for (int i = 0; i < node.count; ++i) far_arguments(node.args[i], out);
}

std::string BodyPrinter::far_checks(const std::vector<Var>& roots,
                                    const std::string& index) {
  Needs needs = needs_of(roots, /*with_roots=*/true);
  std::sort(needs.defined.begin(), needs.defined.end());
  std::string text;
  bool found = false;
  for (Var v : needs.read) text += read_array(v, index);
  for (Var v : needs.defined) {
    std::vector<expr::Id> arguments;
    const Instruction& i = p_[v];
    if (i.op == Op::Compute && kind_of(i.computes) == expr::Kind::Float) {
      far_arguments(i.value, arguments);
    }
    const char* bits = i.computes == Compute::F32 ? "far32" : "far64";
    for (expr::Id id : arguments) {
      found = true;
      expr::CppBlock b = to_cpp(
          p_.expressions, {id}, kinds_of(v), expr::Kind::Float, types_of(v));
      text += "{\n";
      for (const std::string& s : b.statements) text += s + "\n";
      text += message("{} |= math::is_far({});\n", bits, b.results[0]) + "}\n";
    }
    text += definition(v, index);
  }
  return found ? text : "";
}

}  // namespace taeda::compiler::loops
