#include <taeda/aten/expr/print.h>
#include <taeda/c10/util/format.h>
#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/program.h>

#include <algorithm>
#include <bit>

namespace taeda::compiler::loops {

bool has_symbols(const Program& program) {
  auto among = [](SymIntArrayRef list) { return !all_plain(list); };
  bool found = among(program.sizes());
  for (Var v = 0; v < program.count(); ++v) {
    const Place& place = program[v].place;
    found |= place.offset.is_symbolic() || among(place.strides);
  }
  return found;
}

bool has_bounds(const Program& program) {
  for (Var v = 0; v < program.count(); ++v) {
    if (!program[v].bounds.empty()) return true;
  }
  return false;
}

SymInt Instruction::step(size_t axis) const {
  SymInt all = place.strides[axis];
  for (const Bound& b : bounds) all += b.stride * SymInt(b.steps[axis]);
  return all;
}

bool Instruction::is_bounded_along(size_t axis) const {
  return std::any_of(bounds.begin(), bounds.end(), [&](const Bound& b) {
    return b.steps[axis] != 0;
  });
}

bool may_share(const Program& program, int written, int read) {
  const std::vector<Buffer>& buffers = program.buffers();
  const Buffer& to = buffers[static_cast<size_t>(written)];
  const Buffer& from = buffers[static_cast<size_t>(read)];
  // Sums are known after all elements were read, which may be read again.
  bool plain = program.reduced() == 0 && to.written && !from.written;
  if (!plain || to.dtype != from.dtype) return false;
  const Place* place = nullptr;
  for (Var v = 0; v < program.count(); ++v) {
    if (program[v].buffer == written) place = &program[v].place;
  }
  for (Var v = 0; v < program.count() && place != nullptr; ++v) {
    const Instruction& i = program[v];
    if (i.buffer != read) continue;
    bool equal = i.op == Op::Load && i.bounds.empty() &&
                 same(i.place.offset, place->offset) &&
                 same(i.place.strides, place->strides);
    if (!equal) return false;
  }
  return place != nullptr;
}

expr::Kind kind_of(Compute type) {
  if (type == Compute::Bool) return expr::Kind::Bool;
  if (type >= Compute::C64) return expr::Kind::Complex;
  return type >= Compute::F32 ? expr::Kind::Float : expr::Kind::Int;
}

int work_of(const expr::Graph& g, expr::Id id) {
  constexpr const char* light[] = {
      "abs", "maximum", "minimum", "is_nan", "sign", "fmax", "fmin", "clamp"};
  const expr::Node& node = g[id];
  int work = node.count > 0 ? 1 : 0;
  if (node.type == expr::Word::Call) {
    bool is_light = std::any_of(std::begin(light),
                                std::end(light),
                                [&](auto n) { return g.is_call(id, n); });
    work = is_light ? 1 : 16;
  }
  if (g.is_binary(id, expr::BinaryOp::Div)) work = 4;
  for (int i = 0; i < node.count; ++i) work += work_of(g, node.args[i]);
  return work;
}

size_t Program::axis(SymInt size, bool reduced) {
  TAEDA_INTERNAL_ASSERT(sizes_.size() < kMaxAxes, "loops: too many axes");
  TAEDA_INTERNAL_ASSERT(
      size.is_symbolic() || size.plain() > 1, "loops: an axis of size ", size);
  if (reduced) reduced_ |= axis_bit(sizes_.size());
  sizes_.push_back(std::move(size));
  return sizes_.size() - 1;
}

int Program::buffer(ScalarType dtype, bool written) {
  buffers_.push_back({dtype, written});
  return static_cast<int>(buffers_.size()) - 1;
}

SymInt Program::extent(AxisSet axes) const {
  SymInt product = 1;
  for (size_t a = 0; a < sizes_.size(); ++a) {
    if ((axes & axis_bit(a)) != 0) product *= sizes_[a];
  }
  return product;
}

Var Program::add(Instruction instruction) {
  for (Var v : instruction.operands) {
    if (instruction.op != Op::Reduce) instruction.axes |= (*this)[v].axes;
  }
  instructions_.push_back(std::move(instruction));
  return count() - 1;
}

void Program::check_operand(Var v, Compute type) const {
  TAEDA_INTERNAL_ASSERT(v >= 0 && v < count(), "loops: operand ", v);
  const Instruction& made = (*this)[v];
  TAEDA_INTERNAL_ASSERT(made.op != Op::Store, "loops: a store has no value");
  TAEDA_INTERNAL_ASSERT(made.type == type, "loops: operand of another type");
}

void Program::check_place(int buffer, const Place& place, bool written) const {
  TAEDA_INTERNAL_ASSERT(
      buffer >= 0 && static_cast<size_t>(buffer) < buffers_.size(),
      "loops: no buffer ",
      buffer);
  TAEDA_INTERNAL_ASSERT(
      buffers_[static_cast<size_t>(buffer)].written == written,
      "loops: buffers are read or written");
  TAEDA_INTERNAL_ASSERT(place.strides.size() == sizes_.size(),
                        "loops: a stride for each axis");
}

namespace {

bool is_same_load(const Instruction& a, const Instruction& b) {
  bool equal = a.op == Op::Load && a.buffer == b.buffer && a.value == b.value &&
               a.bounds.size() == b.bounds.size() &&
               same(a.place.offset, b.place.offset) &&
               same(a.place.strides, b.place.strides);
  for (size_t i = 0; equal && i < a.bounds.size(); ++i) {
    const Bound &x = a.bounds[i], &y = b.bounds[i];
    equal = x.offset == y.offset && x.steps == y.steps && x.size == y.size &&
            same(x.stride, y.stride);
  }
  return equal;
}

}  // namespace

Var Program::load(int buffer, Place place, SymInt reach) {
  return load(buffer, std::move(place), {}, {}, std::move(reach));
}

Var Program::load(int buffer,
                  Place place,
                  std::vector<Bound> bounds,
                  const expr::Literal& fill,
                  SymInt reach) {
  check_place(buffer, place, false);
  Instruction made;
  made.op = Op::Load;
  made.type = compute_of(buffers_[static_cast<size_t>(buffer)].dtype);
  for (size_t a = 0; a < sizes_.size(); ++a) {
    if (!same(place.strides[a], 0)) made.axes |= axis_bit(a);
  }
  for (const Bound& b : bounds) {
    bool fits = b.steps.size() == sizes_.size() && b.size > 0;
    TAEDA_INTERNAL_ASSERT(fits,
                          "loops: a bound of ",
                          b.steps.size(),
                          " steps in ",
                          sizes_.size(),
                          " axes and of size ",
                          b.size);
    for (size_t a = 0; a < sizes_.size(); ++a) {
      TAEDA_INTERNAL_ASSERT(b.steps[a] >= 0, "loops: a bound that falls");
      if (b.steps[a] != 0) made.axes |= axis_bit(a);
    }
  }
  made.buffer = buffer;
  made.place = std::move(place);
  made.bounds = std::move(bounds);
  made.value = expressions.literal(fill);
  made.reach = std::move(reach);
  for (Var v = 0; v < count(); ++v) {
    if (is_same_load((*this)[v], made)) return v;
  }
  return add(std::move(made));
}

Var Program::index(size_t axis) {
  TAEDA_INTERNAL_ASSERT(axis < sizes_.size(), "loops: no axis ", axis);
  Instruction made;
  made.op = Op::Index;
  made.type = Compute::I64;
  made.axes = axis_bit(axis);
  made.axis = axis;
  return add(std::move(made));
}

Var Program::number(SymInt value, Compute type) {
  Instruction made;
  made.op = Op::Number;
  made.type = type;
  made.place.offset = std::move(value);
  return add(std::move(made));
}

Var Program::gather(int buffer, SymInt offset, Var position) {
  Place place{std::move(offset), std::vector<SymInt>(sizes_.size(), 0)};
  check_place(buffer, place, false);
  check_operand(position, Compute::I64);
  Instruction made;
  made.op = Op::Gather;
  made.type = compute_of(buffers_[static_cast<size_t>(buffer)].dtype);
  made.buffer = buffer;
  made.place = std::move(place);
  made.operands = {position};
  return add(std::move(made));
}

Var Program::compute(Compute computes,
                     Compute type,
                     expr::Id value,
                     std::vector<Var> operands) {
  expr::Kinds kinds;
  kinds.compute = kind_of(computes);
  for (Var v : operands) {
    bool condition = v >= 0 && v < count() && (*this)[v].type == Compute::Bool;
    check_operand(v, condition ? Compute::Bool : computes);
    kinds.names[name_of(v)] = kind_of((*this)[v].type);
  }
  expressions.kind(value, kinds);  // throws for a name that is no operand
  Instruction made;
  made.op = Op::Compute;
  made.type = type;
  made.computes = computes;
  made.value = value;
  made.operands = std::move(operands);
  return add(std::move(made));
}

Var Program::convert(Var v, Compute type) {
  check_operand(v, (*this)[v].type);
  if ((*this)[v].type == type) return v;
  Instruction made;
  made.op = Op::Convert;
  made.type = type;
  made.operands = {v};
  return add(std::move(made));
}

Var Program::round(Var v, ScalarType dtype) {
  check_operand(v, Compute::F32);
  TAEDA_INTERNAL_ASSERT(dtype == kHalf || dtype == kBFloat16,
                        "loops: nothing to round to");
  Instruction made;
  made.op = Op::Round;
  made.dtype = dtype;
  made.operands = {v};
  return add(std::move(made));
}

Var Program::reduce(Var v, Compute type, Fold fold) {
  TAEDA_INTERNAL_ASSERT(reduced_ != 0, "loops: nothing to reduce over");
  check_operand(v, (*this)[v].type);
  Compute inner = (*this)[v].type;
  expr::Kinds kinds;
  kinds.compute = kind_of(inner);
  expressions.kind(fold.init, kinds);
  for (const char* name : {"a", "b", "acc", "count"}) {
    kinds.names[name] = kinds.compute;
  }
  expressions.kind(fold.combine, kinds);
  expressions.kind(fold.finish, kinds);
  Instruction made;
  made.op = Op::Reduce;
  made.axes = (*this)[v].axes & ~reduced_;
  made.type = type;
  made.computes = inner;
  made.fold = fold;
  made.operands = {v};
  return add(std::move(made));
}

void Program::store(Var v, int buffer, Place place) {
  check_place(buffer, place, true);
  check_operand(v, (*this)[v].type);
  for (size_t a = 0; a < sizes_.size(); ++a) {
    bool varies = ((*this)[v].axes & axis_bit(a)) != 0;
    TAEDA_INTERNAL_ASSERT(!same(place.strides[a], 0) || !varies,
                          "loops: a store that misses axis ",
                          a);
  }
  Instruction made;
  made.op = Op::Store;
  made.type = (*this)[v].type;
  for (size_t a = 0; a < sizes_.size(); ++a) {
    if (!same(place.strides[a], 0)) made.axes |= axis_bit(a);
  }
  made.buffer = buffer;
  made.place = std::move(place);
  made.operands = {v};
  add(std::move(made));
}

// Joining ---------------------------------------------------------------------

bool Program::joinable(size_t outer, size_t inner) const {
  AxisSet both = axis_bit(outer) | axis_bit(inner);
  if ((reduced_ & both) != 0 && (reduced_ & both) != both) return false;
  for (const Instruction& i : instructions_) {
    if (i.op == Op::Index && (i.axes & both) != 0) return false;
    if (i.op != Op::Load && i.op != Op::Store) continue;
    const std::vector<SymInt>& s = i.place.strides;
    if (!same(s[outer], s[inner] * sizes_[inner])) return false;
    for (const Bound& b : i.bounds) {
      SymInt through = SymInt(b.steps[inner]) * sizes_[inner];
      if (!same(b.steps[outer], through)) return false;
    }
  }
  return true;
}

// The inner axis takes over the outer one, which disappears.
void Program::join(size_t outer, size_t inner) {
  auto without = [&](AxisSet set) {
    AxisSet low = set & (axis_bit(outer) - 1);
    return low | (set >> 1 & ~(axis_bit(outer) - 1));
  };
  sizes_[inner] *= sizes_[outer];
  auto at = static_cast<std::ptrdiff_t>(outer);
  sizes_.erase(sizes_.begin() + at);
  reduced_ = without(reduced_);
  for (Instruction& i : instructions_) {
    // A value varies along both or along none: it comes from loads that do.
    if ((i.axes & axis_bit(outer)) != 0) i.axes |= axis_bit(inner);
    i.axes = without(i.axes);
    if (i.axis > outer) --i.axis;
    if (!i.place.strides.empty()) {
      i.place.strides.erase(i.place.strides.begin() + at);
    }
    for (Bound& b : i.bounds) b.steps.erase(b.steps.begin() + at);
  }
}

void Program::join_axes() {
  for (size_t outer = 0; outer < sizes_.size(); ++outer) {
    for (size_t inner = 0; inner < sizes_.size(); ++inner) {
      if (outer == inner || !joinable(outer, inner)) continue;
      join(outer, inner);
      outer = static_cast<size_t>(-1);  // from the first again
      break;
    }
  }
}

// Text ------------------------------------------------------------------------

namespace {

constexpr const char* kTypeNames[] = {
    "bool", "u8", "i8", "i16", "i32", "i64", "f32", "f64", "c64", "c128"};
constexpr const char* kOpNames[] = {"load",
                                    "index",
                                    "number",
                                    "gather",
                                    "compute",
                                    "convert",
                                    "round",
                                    "reduce",
                                    "store"};

std::string factor(const SymInt& v) {
  return v.is_symbolic() ? str_cat("(", v.text(), ")") : v.text();
}

std::string place_text(const Place& place) {
  std::string text = place.offset.text();
  for (size_t a = 0; a < place.strides.size(); ++a) {
    if (same(place.strides[a], 0)) continue;
    text += message(" + {}*i{}", factor(place.strides[a]), a);
  }
  return text;
}

}  // namespace

std::string text_of(const Program& program) {
  std::string out = "axes";
  for (size_t a = 0; a < program.sizes().size(); ++a) {
    bool reduced = (program.reduced() & axis_bit(a)) != 0;
    out += message(
        " i{}<{}{}", a, program.sizes()[a].text(), reduced ? " sum" : "");
  }
  for (Var v = 0; v < program.count(); ++v) {
    const Instruction& i = program[v];
    out += message("\nv{}: {} = {}",
                   int64_t{v},
                   kTypeNames[static_cast<int>(i.type)],
                   kOpNames[static_cast<int>(i.op)]);
    if (i.buffer >= 0)
      out += message(" b{}[{}]", i.buffer, place_text(i.place));
    for (const Bound& b : i.bounds) {
      out += message(" in {} by {}:", b.size, b.stride.text());
      out += place_text({b.offset, {b.steps.begin(), b.steps.end()}});
    }
    if (!i.bounds.empty()) {
      out += " else " + to_text(program.expressions, i.value);
    }
    if (i.op == Op::Index) out += message(" i{}", i.axis);
    if (i.op == Op::Number) out += " " + i.place.offset.text();
    if (i.op == Op::Compute) {
      out += " " + to_text(program.expressions, i.value);
    } else if (i.op == Op::Reduce) {
      out += " " + to_text(program.expressions, i.fold.combine);
    }
    for (Var operand : i.operands) out += " " + Program::name_of(operand);
  }
  return out + "\n";
}

}  // namespace taeda::compiler::loops
