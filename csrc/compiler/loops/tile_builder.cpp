// Programs as steps over tiles, see Note [Tiles].
#include <taeda/aten/core/dispatcher.h>
#include <taeda/aten/core/op_info.h>
#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/expr/print.h>
#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/tiles.h>

#include <algorithm>
#include <limits>
#include <unordered_map>

namespace taeda::compiler::loops {

namespace {

constexpr const char* kBinaryRecords[] = {"add",
                                          "sub",
                                          "mul",
                                          "div",
                                          "bitwise_and",
                                          "bitwise_or",
                                          "bitwise_xor",
                                          "bitwise_left_shift",
                                          "bitwise_right_shift"};
constexpr const char* kCompareRecords[] = {"eq", "ne", "lt", "le", "gt", "ge"};

using Loops = std::unordered_multimap<std::string_view, const PointwiseOp*>;

Loops all_loops() {
  Loops found;
  for (const OperatorEntry* op : Dispatcher::get().all()) {
    const RecordInfo* record = op->info->record;
    if (record == nullptr || record->loops == nullptr) continue;
    found.emplace(record->loops->name, record->loops);
  }
  return found;
}

// Of numbers besides the operands only the factors of these have a value that
// means nothing.
bool takes_no_numbers(const PointwiseOp& op) {
  std::string_view name = op.name;
  return op.scalars == 0 || name == "add" || name == "sub" || name == "addcmul";
}

// The loop of a pointwise record for a compute type and this processor; null
// where there is none.
ChunkFn loop_of(std::string_view record, int operands, Compute type) {
  static const Loops loops = all_loops();
  static const auto level = static_cast<size_t>(cpu_capability());
  auto [first, last] = loops.equal_range(record);
  for (auto i = first; i != last; ++i) {
    const PointwiseOp& op = *i->second;
    if (op.operands != operands || !takes_no_numbers(op)) continue;
    return op.tables[level]->each[static_cast<int>(type)];
  }
  return nullptr;
}

struct Value {
  int slot = -1;
  Compute type = Compute::F32;
};

ScalarType raw_type(ScalarType memory) {
  return memory == kBool ? kByte : memory;
}

}  // namespace

class TileBuilder {
 public:
  explicit TileBuilder(TileProgram& to)
      : to_(to), p_(to.program_), s_(to.schedule_), steps_(to.steps_) {}

  // False where a part has no loop.
  bool build() {
    for (Var v = 0; v < p_.count(); ++v) {
      made_.push_back(p_[v].op == Op::Store ? Value{} : define(v));
    }
    for (Var v = 0; v < p_.count(); ++v) {
      if (p_[v].op == Op::Store) store(v);
    }
    if (is_whole_) lay_out();
    return is_whole_;
  }

 private:
  TileSlot& slot(int i) { return to_.slots_[static_cast<size_t>(i)]; }

  int add_slot(TileSlot made) {
    to_.slots_.push_back(made);
    return static_cast<int>(to_.slots_.size()) - 1;
  }

  // ---- steps

  int add(TileStep step, Compute type) {
    step.out = add_slot({.type = type});
    steps_.push_back(step);
    return step.out;
  }

  Value convert(Value v, Compute type) {
    if (v.type == type) return v;
    return {through(v.slot, type_of(v.type), type_of(type), type), type};
  }

  // A conversion between dtypes, of which one may be a 16-bit float that lies
  // in a slot of integers.
  int through(int from, ScalarType dtype, ScalarType to, Compute type) {
    TileStep step{.kind = TileStep::kConvert, .operands = 1};
    step.in[0] = from;
    step.convert = convert_function(dtype, to);
    return add(step, type);
  }

  int constant(const void* value, ScalarType from, Compute type) {
    TileProgram::Constant c;
    convert_function(from, type_of(type))(value, 0, c.bytes.data(), 0, 1);
    for (const TileProgram::Constant& k : to_.constants_) {
      if (slot(k.slot).type == type && k.bytes == c.bytes) return k.slot;
    }
    c.slot = add_slot({.type = type, .is_lasting = true});
    to_.constants_.push_back(c);
    return c.slot;
  }
  Value number(int64_t v, Compute type) {
    return {constant(&v, kLong, type), type};
  }
  Value number(double v, Compute type) {
    return {constant(&v, kDouble, type), type};
  }

  // A record's loop, in a wider integer where it has none for the type.
  Value apply(std::string_view record,
              std::vector<Value> operands,
              Compute type,
              bool makes_bool = false) {
    auto count = static_cast<int>(operands.size());
    Compute own = type;
    ChunkFn loop = loop_of(record, count, own);
    if (loop == nullptr && type < Compute::I64) {
      own = Compute::I64;
      loop = loop_of(record, count, own);
    }
    if (loop == nullptr) return missing(type);
    TileStep step{.operands = count, .loop = loop};
    for (size_t k = 0; k < operands.size(); ++k) {
      bool is_test = record == "where" && k == 0;
      Value v = is_test ? operands[k] : convert(operands[k], own);
      step.in[k] = v.slot;
    }
    Compute result = makes_bool ? Compute::Bool : own;
    return convert({add(step, result), result},
                   makes_bool ? Compute::Bool : type);
  }

  Value missing(Compute type) {
    is_whole_ = false;
    return number(int64_t{0}, type);
  }

  // ---- expressions

  using Names = std::unordered_map<std::string, Value>;

  Value expression(expr::Id id,
                   Compute computes,
                   const Names& names,
                   Compute type) {
    id = expand_powers(p_.expressions, id, kind_of(computes));
    kinds_.names.clear();
    kinds_.compute = kind_of(computes);
    for (const auto& [name, v] : names) kinds_.names[name] = kind_of(v.type);
    computes_ = computes;
    names_ = &names;
    known_.clear();
    uses_.clear();
    count_uses(id);
    return convert(to(id, kind_of(type)), type);
  }

  Compute type(expr::Kind kind) const {
    if (kind == kinds_.compute) return computes_;
    return kind == expr::Kind::Bool ? Compute::Bool : Compute::I64;
  }

  Value to(expr::Id id, expr::Kind want) {
    if (p_.expressions.is_literal(id)) {
      return literal(p_.expressions.literal_of(id), type(want));
    }
    auto known = known_.find(id);
    Value v = known != known_.end() ? known->second : emit(id);
    known_[id] = v;
    return convert(v, type(want));
  }
  void count_uses(expr::Id id) {
    if (++uses_[id] > 1) return;
    const expr::Node n = p_.expressions[id];
    for (int k = 0; k < n.count; ++k) count_uses(n.args[k]);
  }
  Value own(expr::Id id) { return to(id, p_.expressions.kind(id, kinds_)); }

  Value literal(const expr::Literal& v, Compute type) {
    if (type == Compute::Bool) return number(int64_t{v.truth()}, type);
    if (v.kind <= expr::Kind::Int) return number(v.integer, type);
    return number(v.real, type);
  }

  Value emit(expr::Id id) {
    const expr::Graph& g = p_.expressions;
    const expr::Node n = g[id];
    expr::Kind kind = g.kind(id, kinds_);
    switch (n.type) {
      case expr::Word::Literal:
        return literal(g.literal_of(id), type(kind));
      case expr::Word::Constant:
        return limit(static_cast<expr::ConstantName>(n.payload), type(kind));
      case expr::Word::Name: {
        auto found = names_->find(g.name_of(id));
        if (found == names_->end()) return missing(type(kind));
        return convert(found->second, type(kind));
      }
      case expr::Word::Unary:
        return unary(n, kind);
      case expr::Word::Binary:
        return binary(n, kind);
      case expr::Word::Compare: {
        expr::Kind common =
            widest(g.kind(n.args[0], kinds_), g.kind(n.args[1], kinds_));
        return apply(kCompareRecords[n.payload],
                     {to(n.args[0], common), to(n.args[1], common)},
                     type(common),
                     /*makes_bool=*/true);
      }
      case expr::Word::Logic:
        return apply(n.payload == 0 ? "bitwise_and" : "bitwise_or",
                     {truth(n.args[0]), truth(n.args[1])},
                     Compute::Bool);
      case expr::Word::Cond:
        return apply(
            "where",
            {truth(n.args[0]), to(n.args[1], kind), to(n.args[2], kind)},
            type(kind));
      case expr::Word::Cast:
        return to(n.args[0], kind);
      case expr::Word::Call:
        return call(id, n, kind);
      default:
        return missing(type(kind));
    }
  }

  // Records are written with factors that mostly are 1.
  Value binary(const expr::Node& n, expr::Kind kind) {
    const expr::Graph& g = p_.expressions;
    auto op = static_cast<expr::BinaryOp>(n.payload);
    expr::Id a = n.args[0], b = n.args[1];
    bool is_float = kind == expr::Kind::Float;
    if (op == expr::BinaryOp::Mul && is_one(b)) return to(a, kind);
    if (op == expr::BinaryOp::Mul && is_one(a)) return to(b, kind);
    if (is_float && g.is_literal(a) && g.is_literal(b)) {
      double x = g.literal_of(a).value(), y = g.literal_of(b).value();
      if (op == expr::BinaryOp::Mul) return number(x * y, type(kind));
      if (op == expr::BinaryOp::Add) return number(x + y, type(kind));
    }
    bool is_sum = op == expr::BinaryOp::Add || op == expr::BinaryOp::Sub;
    if (is_float && is_sum && (is_product(a) || is_product(b))) {
      return contracted(op, a, b, type(kind));
    }
    return apply(
        kBinaryRecords[n.payload], {to(a, kind), to(b, kind)}, type(kind));
  }
  // A factor of 1 is none.
  expr::Id without_one(expr::Id id) const {
    const expr::Node n = p_.expressions[id];
    bool product =
        n.type == expr::Word::Binary &&
        static_cast<expr::BinaryOp>(n.payload) == expr::BinaryOp::Mul;
    if (product && is_one(n.args[0])) return without_one(n.args[1]);
    if (product && is_one(n.args[1])) return without_one(n.args[0]);
    return id;
  }
  bool is_product(expr::Id id) const {
    const expr::Graph& g = p_.expressions;
    if (g.kind(id, kinds_) != expr::Kind::Float) return false;
    id = without_one(id);
    const expr::Node n = g[id];
    return n.type == expr::Word::Binary &&
           static_cast<expr::BinaryOp>(n.payload) == expr::BinaryOp::Mul &&
           !(g.is_literal(n.args[0]) && g.is_literal(n.args[1])) &&
           uses_.at(id) == 1;
  }
  // A sum with a product has one rounding, as g++ gives it in the loop of a
  // record: of two products the first one's is left out.
  Value contracted(expr::BinaryOp op, expr::Id a, expr::Id b, Compute type) {
    bool first = is_product(a);
    const expr::Node product = p_.expressions[without_one(first ? a : b)];
    Value factors[] = {to(product.args[0], expr::Kind::Float),
                       to(product.args[1], expr::Kind::Float)};
    Value rest = to(first ? b : a, expr::Kind::Float);
    if (op == expr::BinaryOp::Sub) {
      Value& negative = first ? rest : factors[0];
      negative = apply("neg", {negative}, type);
    }
    return apply("addcmul", {rest, factors[0], factors[1]}, type);
  }
  bool is_one(expr::Id id) const {
    const expr::Graph& g = p_.expressions;
    return g.is_literal(id) && g.literal_of(id).is(1);
  }

  Value truth(expr::Id id) { return to(id, expr::Kind::Bool); }

  Value unary(const expr::Node& n, expr::Kind kind) {
    auto op = static_cast<expr::UnaryOp>(n.payload);
    bool inverts = op == expr::UnaryOp::Invert && kind == expr::Kind::Bool;
    if (op == expr::UnaryOp::Not || inverts) {
      return apply("logical_not", {truth(n.args[0])}, Compute::Bool);
    }
    const char* record = op == expr::UnaryOp::Neg ? "neg" : "bitwise_not";
    return apply(record, {to(n.args[0], kind)}, type(kind));
  }

  Value limit(expr::ConstantName which, Compute type) {
    using Real = std::numeric_limits<double>;
    bool is_float = type == Compute::F32 || type == Compute::F64;
    switch (which) {
      case expr::ConstantName::Pi:
        return number(3.141592653589793, type);
      case expr::ConstantName::E:
        return number(2.718281828459045, type);
      case expr::ConstantName::Inf:
        return number(Real::infinity(), type);
      case expr::ConstantName::Nan:
        return number(Real::quiet_NaN(), type);
      case expr::ConstantName::Epsilon: {
        bool single = type == Compute::F32;
        return number(single ? double{std::numeric_limits<float>::epsilon()}
                             : Real::epsilon(),
                      type);
      }
      default: {
        bool lowest = which == expr::ConstantName::Lowest;
        double infinity = Real::infinity();
        if (is_float) return number(lowest ? -infinity : infinity, type);
        return whole_limit(lowest, type);
      }
    }
  }

  Value whole_limit(bool lowest, Compute type) {
    auto bits = static_cast<int>(element_size(type_of(type))) * 8;
    bool has_sign = type != Compute::Bool && type != Compute::U8;
    if (type == Compute::Bool) bits = 1;
    uint64_t most = ~uint64_t{0} >> (64 - bits + (has_sign ? 1 : 0));
    auto highest = static_cast<int64_t>(most);
    if (!lowest) return number(highest, type);
    return number(has_sign ? -highest - 1 : int64_t{0}, type);
  }

  Value call(expr::Id id, const expr::Node& n, expr::Kind kind) {
    const expr::Graph& g = p_.expressions;
    const expr::Function& f = g.function_of(id);
    expr::Kind common = g.argument_kind(id, kinds_);
    std::string_view name = f.name;
    if (common <= expr::Kind::Int) {
      if (name == "is_finite") return number(int64_t{1}, Compute::Bool);
      if (name == "is_nan" || name == "is_inf") {
        return number(int64_t{0}, Compute::Bool);
      }
      for (const char* same : {"floor", "ceil", "trunc", "round"}) {
        if (name == same) return to(n.args[0], common);
      }
    }
    if (name == "conj" || name == "real") return to(n.args[0], common);
    if (name == "imag") return number(int64_t{0}, type(common));
    std::vector<Value> args;
    for (int k = 0; k < n.count; ++k) args.push_back(to(n.args[k], common));
    bool makes_bool = f.result == expr::ResultRule::Bool;
    Compute in = type(common);
    bool has_loop =
        loop_of(f.op, f.arity, in) != nullptr ||
        (in < Compute::I64 && loop_of(f.op, f.arity, Compute::I64) != nullptr);
    if (has_loop) return apply(f.op, args, in, makes_bool);
    return each(f, std::move(args), makes_bool ? Compute::Bool : type(kind));
  }

  // Number by number, in the widest type of the kind.
  Value each(const expr::Function& f, std::vector<Value> args, Compute type) {
    bool whole = args[0].type <= Compute::I64;
    Compute wide = whole ? Compute::I64 : Compute::F64;
    if (whole ? f.on_integers == nullptr : f.on_reals == nullptr) {
      return missing(type);
    }
    TileStep step{.kind = TileStep::kEach, .operands = f.arity, .each = &f};
    for (size_t k = 0; k < args.size(); ++k) {
      step.in[k] = convert(args[k], wide).slot;
    }
    return convert({add(step, wide), wide}, type);
  }

  // ---- instructions

  Value value_of(Var v) const { return made_[static_cast<size_t>(v)]; }

  // Whether loops can read or write an access where it lies.
  bool lies_in_order(Var v, Compute type) const {
    const Instruction& i = p_[v];
    ScalarType dtype = p_.buffers()[static_cast<size_t>(i.buffer)].dtype;
    return s_.vector != Schedule::kNone && type != Compute::Bool &&
           dtype == type_of(type) && same(i.place.strides[s_.vector], 1);
  }
  int memory(Var v, Compute type) {
    return add_slot({.type = type, .memory = v});
  }
  bool is_stored(Var v) const {
    for (Var u = v + 1; u < p_.count(); ++u) {
      if (p_[u].op == Op::Store && p_[u].operands[0] == v) return true;
    }
    return false;
  }

  Value load(Var v) {
    const Instruction& i = p_[v];
    ScalarType dtype = p_.buffers()[static_cast<size_t>(i.buffer)].dtype;
    // What is stored as it was loaded is copied first: Note [Writes in place].
    if (lies_in_order(v, i.type) && !is_stored(v)) {
      return {memory(v, i.type), i.type};
    }
    TileStep step{.kind = TileStep::kLoad, .var = v};
    step.dtype = raw_type(dtype);
    step.convert = convert_function(step.dtype, type_of(i.type));
    return {add(step, i.type), i.type};
  }

  Value gather(Var v) {
    const Instruction& i = p_[v];
    ScalarType dtype = p_.buffers()[static_cast<size_t>(i.buffer)].dtype;
    TileStep step{.kind = TileStep::kGather, .operands = 1, .var = v};
    step.in[0] = value_of(i.operands[0]).slot;
    step.dtype = raw_type(dtype);
    bool is_small = dtype == kHalf || dtype == kBFloat16;
    int found = add(step, is_small ? Compute::I16 : compute_of(step.dtype));
    return {through(found, step.dtype, type_of(i.type), i.type), i.type};
  }

  // To what a 16-bit float keeps, and back.
  Value rounded(Value v, ScalarType dtype) {
    int small = through(v.slot, type_of(v.type), dtype, Compute::I16);
    return {through(small, dtype, type_of(v.type), v.type), v.type};
  }

  Value define(Var v) {
    const Instruction& i = p_[v];
    auto operand = [&] { return value_of(i.operands[0]); };
    switch (i.op) {
      case Op::Load:
        return load(v);
      case Op::Gather:
        return gather(v);
      case Op::Index:
        return convert({add({.kind = TileStep::kIndex, .var = v}, Compute::I64),
                        Compute::I64},
                       i.type);
      case Op::Number:
        return number(i.place.offset.plain(), i.type);
      case Op::Convert:
        return convert(operand(), i.type);
      case Op::Round:
        return rounded(operand(), i.dtype);
      case Op::Compute: {
        Names names;
        for (Var o : i.operands) {
          names[Program::name_of(o)] = value_of(o);
        }
        return expression(i.value, i.computes, names, i.type);
      }
      case Op::Reduce:
      case Op::Store:
        break;
    }
    return missing(i.type);
  }

  void store(Var v) {
    const Instruction& i = p_[v];
    TileStep step{.kind = TileStep::kStore, .operands = 1, .var = v};
    step.dtype = p_.buffers()[static_cast<size_t>(i.buffer)].dtype;
    Value value = value_of(i.operands[0]);
    if (lies_in_order(v, value.type) && is_made_last(value.slot)) {
      // The step that makes it writes it where it belongs.
      slot(value.slot).memory = v;
      return;
    }
    step.in[0] = value.slot;
    step.convert = convert_function(type_of(value.type), step.dtype);
    steps_.push_back(step);
  }

  // Whether a tile's maker may write to a buffer at once: nothing behind it
  // reads memory, which might be the same.
  bool is_made_last(int made) {
    if (slot(made).memory >= 0) return false;
    for (size_t k = steps_.size(); k-- > 0;) {
      const TileStep& step = steps_[k];
      if (step.out == made) return true;
      bool reads =
          step.kind == TileStep::kLoad || step.kind == TileStep::kGather;
      for (int in : step.in) reads |= in >= 0 && slot(in).memory >= 0;
      if (reads) return false;
    }
    return false;
  }

  // ---- memory

  // Slots take turns: one is free behind the last step that reads it.
  void lay_out() {
    std::vector<size_t> last(to_.slots_.size(), 0);
    for (size_t k = 0; k < steps_.size(); ++k) {
      for (int in : steps_[k].in) {
        if (in >= 0) last[static_cast<size_t>(in)] = k;
      }
    }
    for (TileSlot& s : to_.slots_) {
      if (s.is_lasting) s.at = next();
    }
    for (size_t k = 0; k < steps_.size(); ++k) {
      int out = steps_[k].out;
      if (out >= 0 && slot(out).memory < 0) slot(out).at = next();
      for (int in : steps_[k].in) {
        if (in < 0 || last[static_cast<size_t>(in)] != k) continue;
        const TileSlot& s = slot(in);
        if (s.is_lasting || s.memory >= 0) continue;
        if (std::find(free_.begin(), free_.end(), s.at) == free_.end()) {
          free_.push_back(s.at);
        }
      }
    }
  }

  int64_t next() {
    if (free_.empty()) {
      free_.push_back(to_.memory_);
      to_.memory_ += kTile * int64_t{sizeof(double)};
    }
    int64_t at = free_.back();
    free_.pop_back();
    return at;
  }

  TileProgram& to_;
  Program& p_;
  const Schedule& s_;
  std::vector<TileStep>& steps_;
  std::vector<Value> made_;    // by variable
  std::vector<int64_t> free_;  // bytes where free slots lie
  // Of the expression that is being translated.
  expr::Kinds kinds_;
  Compute computes_ = Compute::F32;
  const Names* names_ = nullptr;
  std::unordered_map<expr::Id, Value> known_;
  std::unordered_map<expr::Id, int> uses_;
  bool is_whole_ = true;
};

std::unique_ptr<const TileProgram> TileProgram::make(const Program& program,
                                                     size_t most) {
  bool plain = !has_symbols(program) && !has_bounds(program);
  if (!plain || program.reduced() != 0) return nullptr;
  auto made = std::make_unique<TileProgram>();
  made->program_ = program;
  made->schedule_ = loops::schedule(program);
  if (made->schedule_.woven != Schedule::kNone) return nullptr;
  bool is_whole = TileBuilder(*made).build();
  if (!is_whole || made->steps_.size() > most) return nullptr;
  return made;
}

}  // namespace taeda::compiler::loops
