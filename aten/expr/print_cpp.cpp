#include <taeda/aten/expr/print.h>
#include <taeda/c10/util/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace taeda::expr {

namespace {

constexpr const char* kUnaryCpp[] = {"-", "!", "~"};
constexpr const char* kBinaryCpp[] = {
    "+", "-", "*", "/", "&", "|", "^", "shift_left", "shift_right"};
constexpr const char* kCompareCpp[] = {"==", "!=", "<", "<=", ">", ">="};
// Not && and ||: they are branches, and branches stop vectorisation.
constexpr const char* kLogicCpp[] = {"&", "|"};

// A number as C++ (and Python) reads it back exactly.
std::string number_text(double v) {
  std::string text = shortest_text(v);
  return text.find_first_of(".en") == text.npos ? text + ".0" : text;
}

class CppPrinter {
 public:
  CppPrinter(const Graph& g, const Kinds& kinds, const CppTypes& types)
      : g_(g), kinds_(kinds), types_(types) {}

  std::string type(Kind kind) const {
    if (kind == kinds_.compute) return types_.compute;
    if (kind == Kind::Bool) return "bool";
    if (kind == Kind::Int) return types_.integer;
    TAEDA_CHECK(kind == Kind::Float && kinds_.compute == Kind::Complex,
                "expression: a value wider than the compute type");
    return types_.real;
  }
  Kind kind(Id id) const { return g_.kind(id, kinds_); }

  // The value converted to a kind.
  std::string to(Id id, Kind want) const {
    if (g_.is_literal(id)) return literal(g_.literal_of(id), want);
    std::string text = emit(id);
    Kind own = kind(id);
    if (own == want) return text;
    if (want == Kind::Bool) return message("({} != {}(0))", text, type(own));
    return message("{}({})", type(want), text);
  }

 private:
  // A real number; those without a decimal form by their names.
  std::string real(double v, std::string_view type) const {
    const char* name = std::isnan(v) ? "kNan" : "kInfinity";
    if (std::isfinite(v)) return message("{}({})", type, number_text(v));
    return message("{}{}{}<{}>", v < 0 ? "-" : "", types_.math, name, type);
  }

  std::string literal(const Literal& v, Kind want) const {
    if (want == Kind::Bool) return v.truth() ? "true" : "false";
    std::string name = type(want);
    if (v.kind == Kind::Complex) {
      return message("{}({}, {})",
                     name,
                     real(v.real, types_.real),
                     real(v.imag, types_.real));
    }
    if (v.kind <= Kind::Int) return message("{}({})", name, v.integer);
    return real(v.real, name);
  }

  std::string emit(Id id) const {
    const Node& n = g_[id];
    switch (n.type) {
      case Word::Literal:
        return literal(g_.literal_of(id), g_.literal_of(id).kind);
      case Word::Constant:
        return constant(id, static_cast<ConstantName>(n.payload));
      case Word::Name:
        return g_.name_of(id);
      case Word::Unary:
        return unary(id, n);
      case Word::Binary:
        return binary(id, n);
      case Word::Compare:
        return infix(n,
                     kCompareCpp[n.payload],
                     widest(kind(n.args[0]), kind(n.args[1])));
      case Word::Logic:
        return infix(n, kLogicCpp[n.payload], Kind::Bool);
      case Word::Cond: {
        Kind own = kind(id);
        return message("({} ? {} : {})",
                       to(n.args[0], Kind::Bool),
                       to(n.args[1], own),
                       to(n.args[2], own));
      }
      case Word::Cast:
        return to(n.args[0], kind(id));
      case Word::Access:
        TAEDA_CHECK(g_.is_access(id, AccessOp::Missing),
                    "expression: index maps are not printed as C++ here");
        return "missing_" + g_.name_of(n.args[0]);
      default:
        return call(id, n);
    }
  }

  std::string infix(const Node& n, const char* op, Kind kind) const {
    return message("({} {} {})", to(n.args[0], kind), op, to(n.args[1], kind));
  }

  std::string constant(Id id, ConstantName which) const {
    std::string name = type(kind(id));
    constexpr const char* limits[] = {
        "", "", "kInfinity", "kNan", "kLowest", "kHighest", "kEpsilon"};
    const char* limit = limits[static_cast<int>(which)];
    if (*limit != '\0') return message("{}{}<{}>", types_.math, limit, name);
    double value =
        which == ConstantName::Pi ? 3.141592653589793 : 2.718281828459045;
    return message("{}({})", name, number_text(value));
  }

  std::string unary(Id id, const Node& n) const {
    Kind own = kind(id);
    auto op = static_cast<UnaryOp>(n.payload);
    bool inverts = op == UnaryOp::Invert && own == Kind::Bool;
    if (op == UnaryOp::Not || inverts) {
      return message("(!{})", to(n.args[0], Kind::Bool));
    }
    return narrow(message("({}{})", kUnaryCpp[n.payload], to(n.args[0], own)),
                  own);
  }

  std::string binary(Id id, const Node& n) const {
    Kind own = kind(id);
    const char* op = kBinaryCpp[n.payload];
    auto which = static_cast<BinaryOp>(n.payload);
    if (which == BinaryOp::ShiftLeft || which == BinaryOp::ShiftRight) {
      return message("{}{}({}, {})",
                     types_.math,
                     op,
                     to(n.args[0], own),
                     to(n.args[1], own));
    }
    return narrow(infix(n, op, own), own);
  }

  // C++ computes small integers in int; the result wraps as T does.
  std::string narrow(std::string text, Kind kind) const {
    bool narrows = kind == Kind::Int && kinds_.compute == Kind::Int;
    return narrows ? type(kind) + text : text;
  }

  std::string call(Id id, const Node& n) const {
    Kind common = g_.argument_kind(id, kinds_);
    const Function& f = g_.function_of(id);
    std::string_view name = f.name;
    auto is_one_of = [&](std::initializer_list<std::string_view> names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    std::string args[kMaxArity];
    for (int i = 0; i < n.count; ++i) args[i] = to(n.args[i], common);
    if (common <= Kind::Int) {
      if (is_one_of({"is_nan", "is_inf"})) return "false";
      if (name == "is_finite") return "true";
      if (is_one_of({"floor", "ceil", "trunc", "round", "conj", "real"})) {
        return args[0];
      }
    }
    if (common != Kind::Complex) {
      if (is_one_of({"conj", "real"})) return args[0];
      if (name == "imag") return type(common) + "(0)";
    }
    if (f.cpp != nullptr) {
      return fill_template(f.cpp,
                           {{"0", args[0]},
                            {"1", args[1]},
                            {"2", args[2]},
                            {"t", type(common)},
                            {"math", types_.math}});
    }
    std::string inner = args[0];
    for (int i = 1; i < n.count; ++i) inner += ", " + args[i];
    return message("{}{}({})", types_.math, name, inner);
  }

  const Graph& g_;
  const Kinds& kinds_;
  const CppTypes& types_;
};

// A smallest compound part that occurs twice or more, the first one of its
// size.
std::optional<Id> repeated_part(const Graph& g, const std::vector<Id>& ids) {
  struct Seen {
    size_t count = 0, size = 0;
  };
  std::vector<Id> order;
  std::map<Id, Seen> seen;
  auto visit = [&](auto&& self, Id id) -> size_t {
    const Node& n = g[id];
    if (n.count > 0 && seen[id].count++ == 0) order.push_back(id);
    size_t size = 1;
    for (int i = 0; i < n.count; ++i) size += self(self, n.args[i]);
    if (n.count > 0) seen[id].size = size;
    return size;
  };
  for (Id id : ids) visit(visit, id);
  std::optional<Id> best;
  for (Id id : order) {
    if (seen[id].count < 2) continue;
    if (!best || seen[id].size < seen[*best].size) best = id;
  }
  return best;
}

}  // namespace

Id expand_powers(Graph& g, Id id, Kind compute) {
  Node node = g[id];
  for (int i = 0; i < node.count; ++i) {
    node.args[i] = expand_powers(g, node.args[i], compute);
  }
  id = g.rebuilt(id, node.args);
  if (!g.is_call(id, "pow") || !g.is_literal(node.args[1])) return id;
  const Literal exponent = g.literal_of(node.args[1]);
  Id base = node.args[0];
  if (exponent.is(0.5)) return g.call(find_function("sqrt"), {base});
  if (exponent.is(-0.5)) return g.call(find_function("rsqrt"), {base});
  bool inverts = compute >= Kind::Float;
  int count = 0;
  for (int n : {2, 3, 4}) count = exponent.is(n) ? n : count;
  for (int n : {-2, -1}) count = inverts && exponent.is(n) ? n : count;
  if (count == 0) return id;
  if (count == 4) {
    Id square = g.binary(BinaryOp::Mul, base, base);
    return g.binary(BinaryOp::Mul, square, square);
  }
  Id product = base;
  for (int i = 1; i < std::abs(count); ++i) {
    product = g.binary(BinaryOp::Mul, product, base);
  }
  return count > 0 ? product : g.binary(BinaryOp::Div, g.integer(1), product);
}

CppBlock to_cpp(Graph& g,
                const std::vector<Id>& expressions,
                Kinds kinds,
                std::optional<Kind> want,
                const CppTypes& types) {
  std::vector<Id> ids;
  for (Id id : expressions) {
    ids.push_back(expand_powers(g, id, kinds.compute));
    for (const std::string& name : g.names(id)) {
      kinds.names.try_emplace(name, kinds.compute);
    }
  }
  CppBlock block;
  while (auto part = repeated_part(g, ids)) {
    CppPrinter printer(g, kinds, types);
    Kind kind = printer.kind(*part);
    std::string name = message("t{}_", block.statements.size());
    block.statements.push_back(message("const {} {} = {};",
                                       printer.type(kind),
                                       name,
                                       printer.to(*part, kind)));
    kinds.names[name] = kind;
    Id named = g.name(name);
    for (Id& id : ids) id = g.replace(id, *part, named);
  }
  CppPrinter printer(g, kinds, types);
  for (Id id : ids) {
    block.results.push_back(printer.to(id, want.value_or(printer.kind(id))));
  }
  return block;
}

}  // namespace taeda::expr
