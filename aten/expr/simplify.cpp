#include <taeda/aten/expr/simplify.h>

#include <complex>
#include <optional>

namespace taeda::expr {

namespace {

// The literal of a node if it is a number; truth values are none.
const Literal* number(const Graph& g, Id id) {
  if (!g.is_literal(id)) return nullptr;
  const Literal& value = g.literal_of(id);
  return value.kind == Kind::Bool ? nullptr : &value;
}

std::complex<double> complex_of(const Literal& v) {
  return {v.value(), v.imag};
}

// Python's arithmetic of mixed numbers; integers divide to a float.
Literal fold(BinaryOp op, const Literal& a, const Literal& b) {
  Kind kind = widest(a.kind, b.kind);
  if (kind == Kind::Complex) {
    std::complex<double> x = complex_of(a), y = complex_of(b), z;
    z = op == BinaryOp::Add   ? x + y
        : op == BinaryOp::Sub ? x - y
        : op == BinaryOp::Mul ? x * y
                              : x / y;
    return Literal::of(z.real(), z.imag());
  }
  if (kind == Kind::Float || op == BinaryOp::Div) {
    double x = a.value(), y = b.value();
    return Literal::of(op == BinaryOp::Add   ? x + y
                       : op == BinaryOp::Sub ? x - y
                       : op == BinaryOp::Mul ? x * y
                                             : x / y);
  }
  int64_t x = a.integer, y = b.integer;
  return Literal::of(op == BinaryOp::Add   ? x + y
                     : op == BinaryOp::Sub ? x - y
                                           : x * y);
}

// The value of an operation on two numbers. A division by zero stays as it is
// written, so that it is evaluated in the element's type.
std::optional<Id> folded(Graph& g, BinaryOp op, Id a, Id b) {
  const Literal *x = number(g, a), *y = number(g, b);
  if (x == nullptr || y == nullptr) return std::nullopt;
  if (op == BinaryOp::Div && !y->truth()) return std::nullopt;
  return g.literal(fold(op, *x, *y));
}

// The operand of a negation.
std::optional<Id> negated(const Graph& g, Id id) {
  if (!g.is_unary(id, UnaryOp::Neg)) return std::nullopt;
  return g[id].args[0];
}

Id truth_of(Graph& g, bool value) { return g.literal(Literal::of(value)); }

// `x or true` is true and `x and true` is x: a literal decides, whichever side
// it stands on.
Id simplify_logic(Graph& g, Id id) {
  const Node node = g[id];
  bool is_or = static_cast<LogicOp>(node.payload) == LogicOp::Or;
  for (int i = 0; i < 2; ++i) {
    if (!g.is_literal(node.args[i])) continue;
    bool value = g.literal_of(node.args[i]).truth();
    return value == is_or ? truth_of(g, value) : node.args[1 - i];
  }
  return id;
}

Id simplify_compare(Graph& g, Id id) {
  const Node node = g[id];
  if (!g.is_literal(node.args[0]) || !g.is_literal(node.args[1])) return id;
  const Literal &a = g.literal_of(node.args[0]),
                &b = g.literal_of(node.args[1]);
  // Complex numbers are left as they are written.
  if (a.kind == Kind::Complex || b.kind == Kind::Complex) return id;
  double x = a.value(), y = b.value();
  switch (static_cast<CompareOp>(node.payload)) {
    case CompareOp::Eq:
      return truth_of(g, x == y);
    case CompareOp::Ne:
      return truth_of(g, x != y);
    case CompareOp::Lt:
      return truth_of(g, x < y);
    case CompareOp::Le:
      return truth_of(g, x <= y);
    case CompareOp::Gt:
      return truth_of(g, x > y);
    case CompareOp::Ge:
      return truth_of(g, x >= y);
  }
  return id;
}

Id simplify_binary(Graph& g, Id id) {
  const Node node = g[id];
  Id a = node.args[0], b = node.args[1];
  switch (static_cast<BinaryOp>(node.payload)) {
    case BinaryOp::Add:
      return add(g, a, b);
    case BinaryOp::Sub:
      return sub(g, a, b);
    case BinaryOp::Mul:
      return mul(g, a, b);
    case BinaryOp::Div:
      return div(g, a, b);
    default:
      return id;
  }
}

Id simplify_unary(Graph& g, Id id) {
  const Node node = g[id];
  if (g.is_unary(id, UnaryOp::Neg)) return neg(g, node.args[0]);
  if (g.is_unary(id, UnaryOp::Not) && g.is_literal(node.args[0])) {
    return truth_of(g, !g.literal_of(node.args[0]).truth());
  }
  return id;
}

}  // namespace

Id neg(Graph& g, Id a) {
  if (const Literal* v = number(g, a)) {
    if (v->kind == Kind::Int) return g.integer(-v->integer);
    if (v->kind == Kind::Float) return g.literal(Literal::of(-v->real));
    return g.literal(Literal::of(-v->real, -v->imag));
  }
  if (auto inner = negated(g, a)) return *inner;
  return g.unary(UnaryOp::Neg, a);
}

// Note [Simplest forms]: the functions below are what differentiation builds
// its results with, so that rules can be written plainly: sums of zero and
// products with one vanish where they arise. All of them keep the value for
// finite operands; 0 * x becomes 0 although inf * 0 is not, which is what a
// derivative means by a missing term.
Id add(Graph& g, Id a, Id b) {
  if (is_number(g, a, 0)) return b;
  if (is_number(g, b, 0)) return a;
  if (auto both = folded(g, BinaryOp::Add, a, b)) return *both;
  if (a == b) return mul(g, g.integer(2), a);
  // Two choices by the same test are one choice of sums.
  const Node x = g[a], y = g[b];
  if (x.type == Word::Cond && y.type == Word::Cond && x.args[0] == y.args[0]) {
    return cond(g,
                x.args[0],
                add(g, x.args[1], y.args[1]),
                add(g, x.args[2], y.args[2]));
  }
  auto minus = negated(g, b);
  return minus ? g.binary(BinaryOp::Sub, a, *minus)
               : g.binary(BinaryOp::Add, a, b);
}

Id sub(Graph& g, Id a, Id b) {
  if (is_number(g, b, 0)) return a;
  if (is_number(g, a, 0)) return neg(g, b);
  if (auto both = folded(g, BinaryOp::Sub, a, b)) return *both;
  auto minus = negated(g, b);
  return minus ? add(g, a, *minus) : g.binary(BinaryOp::Sub, a, b);
}

Id mul(Graph& g, Id a, Id b) {
  if (is_number(g, a, 0) || is_number(g, b, 0)) return g.integer(0);
  if (is_number(g, a, 1)) return b;
  if (is_number(g, b, 1)) return a;
  if (auto both = folded(g, BinaryOp::Mul, a, b)) return *both;
  if (is_number(g, a, -1)) return neg(g, b);
  if (auto minus = negated(g, a)) return neg(g, mul(g, *minus, b));
  if (is_number(g, b, -1)) return neg(g, a);
  if (auto minus = negated(g, b)) return neg(g, mul(g, a, *minus));
  const Node y = g[b];
  // Numbers gather in front: 2 * (3 * x) is 6 * x, and 2 * (3 / x) is 6 / x.
  if (number(g, a) != nullptr && g.is_binary(b, BinaryOp::Mul) &&
      number(g, y.args[0]) != nullptr) {
    return mul(g, mul(g, a, y.args[0]), y.args[1]);
  }
  if (g.is_binary(b, BinaryOp::Div) && number(g, y.args[0]) != nullptr) {
    return div(g, mul(g, a, y.args[0]), y.args[1]);
  }
  return g.binary(BinaryOp::Mul, a, b);
}

Id div(Graph& g, Id a, Id b) {
  if (is_number(g, a, 0)) return g.integer(0);
  if (is_number(g, b, 1)) return a;
  if (auto both = folded(g, BinaryOp::Div, a, b)) return *both;
  if (auto minus = negated(g, a)) return neg(g, div(g, *minus, b));
  if (auto minus = negated(g, b)) return neg(g, div(g, a, *minus));
  return g.binary(BinaryOp::Div, a, b);
}

Id power(Graph& g, Id a, Id b) {
  if (is_number(g, b, 0)) return g.integer(1);
  if (is_number(g, b, 1)) return a;
  if (is_number(g, b, -1)) return div(g, g.integer(1), a);
  static const int pow = find_function("pow");
  return g.call(pow, {a, b});
}

Id cond(Graph& g, Id test, Id then, Id other) {
  if (g.is_literal(test)) return g.literal_of(test).truth() ? then : other;
  return then == other ? then : g.cond(test, then, other);
}

Id conj(Graph& g, Id a) {
  if (g.is_literal(a)) {
    Literal value = g.literal_of(a);
    if (value.kind == Kind::Complex) value.imag = -value.imag;
    return g.literal(value);
  }
  if (g.is_call(a, "conj")) return g[a].args[0];
  if (auto inner = negated(g, a)) return neg(g, conj(g, *inner));
  static const int function = find_function("conj");
  return g.call(function, {a});
}

Id simplify(Graph& g, Id id) {
  Node node = g[id];
  for (int i = 0; i < node.count; ++i) node.args[i] = simplify(g, node.args[i]);
  id = g.rebuilt(id, node.args);
  switch (node.type) {
    case Word::Binary:
      return simplify_binary(g, id);
    case Word::Unary:
      return simplify_unary(g, id);
    case Word::Logic:
      return simplify_logic(g, id);
    case Word::Compare:
      return simplify_compare(g, id);
    case Word::Cond:
      return cond(g, node.args[0], node.args[1], node.args[2]);
    case Word::Call:
      if (g.is_call(id, "pow")) return power(g, node.args[0], node.args[1]);
      if (g.is_call(id, "conj")) return conj(g, node.args[0]);
      return id;
    default:
      return id;
  }
}

}  // namespace taeda::expr
