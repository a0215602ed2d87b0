#include <taeda/aten/expr/evaluate.h>
#include <taeda/aten/math/math.h>
#include <taeda/c10/util/check.h>

#include <limits>

namespace taeda::expr {

namespace {

using Complex = std::complex<double>;

class Evaluator {
 public:
  Evaluator(const Graph& g,
            const std::unordered_map<std::string, Value>& values,
            Kind compute)
      : g_(g), values_(values) {
    kinds_.compute = compute;
    for (const auto& [name, value] : values) kinds_.names[name] = value.kind;
  }

  // A node's value, in double precision: the reference that kernels and printed
  // text are compared with, so the rules of kinds are theirs and not C++'s.
  Value at(Id id) const {
    const Node& n = g_[id];
    switch (n.type) {
      case Word::Literal:
        return literal(g_.literal_of(id));
      case Word::Constant:
        return constant(static_cast<ConstantName>(n.payload));
      case Word::Name:
        return values_.at(g_.name_of(id));
      case Word::Unary:
        return unary(id, n);
      case Word::Binary:
        return binary(id, n);
      case Word::Compare:
        return compare(n);
      case Word::Logic: {
        bool a = truth(n.args[0]), b = truth(n.args[1]);
        return Value::of(n.payload == 0 ? a && b : a || b);
      }
      case Word::Cond:
        // Only what is chosen is computed. The kind is that of both together,
        // for the result's type must not depend on the test.
        return at(truth(n.args[0]) ? n.args[1] : n.args[2]).to(kind(id));
      case Word::Cast:
        return at(n.args[0]).to(kind(id));
      case Word::Access:
        TAEDA_CHECK(g_.is_access(id, AccessOp::Missing),
                    "expression: an index map has no value by itself");
        // A name without a value is None.
        return Value::of(values_.count(g_.name_of(n.args[0])) == 0);
      default:
        return call(id, n);
    }
  }

 private:
  Kind kind(Id id) const { return g_.kind(id, kinds_); }
  bool truth(Id id) const { return at(id).to(Kind::Bool).integer != 0; }

  static Value literal(const Literal& v) {
    if (v.kind == Kind::Bool) return Value::of(v.integer != 0);
    if (v.kind == Kind::Int) return Value::of(v.integer);
    if (v.kind == Kind::Float) return Value::of(v.real);
    return Value::of(Complex(v.real, v.imag));
  }

  // Constants that depend on the type which is computed in: of integers the
  // lowest is a number, of floats it is -inf.
  Value constant(ConstantName which) const {
    using Real = std::numeric_limits<double>;
    using Integer = std::numeric_limits<int64_t>;
    bool whole = kinds_.compute <= Kind::Int;
    switch (which) {
      case ConstantName::Pi:
        return Value::of(3.141592653589793);
      case ConstantName::E:
        return Value::of(2.718281828459045);
      case ConstantName::Inf:
        return Value::of(Real::infinity());
      case ConstantName::Nan:
        return Value::of(Real::quiet_NaN());
      case ConstantName::Lowest:
        return whole ? Value::of(Integer::lowest())
                     : Value::of(-Real::infinity());
      case ConstantName::Highest:
        return whole ? Value::of(Integer::max()) : Value::of(Real::infinity());
      case ConstantName::Epsilon:
        return Value::of(Real::epsilon());
    }
    return {};
  }

  Value unary(Id id, const Node& n) const {
    Kind own = kind(id);
    auto op = static_cast<UnaryOp>(n.payload);
    // `~` of a truth value is `not`; of integers it turns the bits around.
    bool inverts = op == UnaryOp::Invert && own == Kind::Bool;
    if (op == UnaryOp::Not || inverts) return Value::of(!truth(n.args[0]));
    Value v = at(n.args[0]).to(own);
    if (op == UnaryOp::Invert) return Value::of(~v.integer);
    if (own == Kind::Int) return Value::of(-v.integer);
    if (own == Kind::Float) return Value::of(-v.number.real());
    return Value::of(-v.number);
  }

  static int64_t integers(BinaryOp op, int64_t a, int64_t b) {
    switch (op) {
      case BinaryOp::Add:
        return a + b;
      case BinaryOp::Sub:
        return a - b;
      case BinaryOp::Mul:
        return a * b;
      case BinaryOp::And:
        return a & b;
      case BinaryOp::Or:
        return a | b;
      case BinaryOp::Xor:
        return a ^ b;
      case BinaryOp::ShiftLeft:
        return math::shift_left(a, b);
      case BinaryOp::ShiftRight:
        return math::shift_right(a, b);
      case BinaryOp::Div:
        break;
    }
    return 0;
  }

  template <class T>
  static T numbers(BinaryOp op, T a, T b) {
    if (op == BinaryOp::Add) return a + b;
    if (op == BinaryOp::Sub) return a - b;
    return op == BinaryOp::Mul ? a * b : a / b;
  }

  Value binary(Id id, const Node& n) const {
    Kind own = kind(id);
    auto op = static_cast<BinaryOp>(n.payload);
    Value a = at(n.args[0]).to(own), b = at(n.args[1]).to(own);
    // Sums and products of truth values are those of numbers, as truth values.
    if (own <= Kind::Int) {
      int64_t result = integers(op, a.integer, b.integer);
      return own == Kind::Int ? Value::of(result) : Value::of(result != 0);
    }
    if (own == Kind::Float) {
      return Value::of(numbers(op, a.number.real(), b.number.real()));
    }
    // taeda::complex divides and multiplies as kernels do.
    complex<double> x(a.number.real(), a.number.imag());
    complex<double> y(b.number.real(), b.number.imag());
    complex<double> z = numbers(op, x, y);
    return Value::of(Complex(z.real(), z.imag()));
  }

  Value compare(const Node& n) const {
    Kind common = widest(kind(n.args[0]), kind(n.args[1]));
    Value a = at(n.args[0]).to(common), b = at(n.args[1]).to(common);
    auto op = static_cast<CompareOp>(n.payload);
    if (common == Kind::Complex) {
      bool equal = a.number == b.number;
      return Value::of(op == CompareOp::Eq ? equal : !equal);
    }
    if (common <= Kind::Int) return Value::of(holds(op, a.integer, b.integer));
    return Value::of(holds(op, a.number.real(), b.number.real()));
  }

  template <class T>
  static bool holds(CompareOp op, T a, T b) {
    switch (op) {
      case CompareOp::Eq:
        return a == b;
      case CompareOp::Ne:
        return a != b;
      case CompareOp::Lt:
        return a < b;
      case CompareOp::Le:
        return a <= b;
      case CompareOp::Gt:
        return a > b;
      case CompareOp::Ge:
        return a >= b;
    }
    return false;
  }

  Value call(Id id, const Node& n) const {
    const Function& f = g_.function_of(id);
    Kind common = widest(g_.argument_kind(id, kinds_), Kind::Int);
    // What a kind of number decides without a call.
    std::string_view name = f.name;
    if (common != Kind::Complex) {
      if (name == "conj" || name == "real") return at(n.args[0]).to(common);
      if (name == "imag") return Value::of(int64_t{0}).to(common);
    }
    // Functions of reals that are the identity on integers (floor), or know the
    // answer (is_nan).
    bool whole = common == Kind::Int && f.on_integers == nullptr;
    if (whole && f.result == ResultRule::Bool) {
      return Value::of(name == "is_finite");
    }
    if (whole) return at(n.args[0]).to(common);  // rounding
    return apply(f, n, common).to(kind(id));
  }

  Value apply(const Function& f, const Node& n, Kind common) const {
    int64_t whole[kMaxArity];
    double real[kMaxArity];
    complex<double> wide[kMaxArity];
    for (int i = 0; i < n.count; ++i) {
      Value v = at(n.args[i]).to(common);
      whole[i] = v.integer;
      real[i] = v.number.real();
      wide[i] = complex<double>(v.number.real(), v.number.imag());
    }
    if (common == Kind::Int) return Value::of(f.on_integers(whole));
    bool known =
        common == Kind::Float ? f.on_reals != nullptr : f.on_complex != nullptr;
    TAEDA_CHECK(known, "expression: ", f.name, " has no value for this kind");
    if (common == Kind::Float) return Value::of(f.on_reals(real));
    complex<double> z = f.on_complex(wide);
    return Value::of(Complex(z.real(), z.imag()));
  }

  const Graph& g_;
  const std::unordered_map<std::string, Value>& values_;
  Kinds kinds_;
};

}  // namespace

Value Value::to(Kind want) const {
  if (want == kind) return *this;
  bool whole = kind <= Kind::Int;
  switch (want) {
    case Kind::Bool:
      return of(whole ? integer != 0 : number != 0.0);
    case Kind::Int:
      return of(whole ? integer : static_cast<int64_t>(number.real()));
    case Kind::Float:
      return of(whole ? static_cast<double>(integer) : number.real());
    case Kind::Complex:
      return of(whole ? std::complex<double>(static_cast<double>(integer))
                      : number);
  }
  return *this;
}

Value evaluate(const Graph& g,
               Id id,
               const std::unordered_map<std::string, Value>& values,
               Kind compute) {
  return Evaluator(g, values, compute).at(id);
}

}  // namespace taeda::expr
