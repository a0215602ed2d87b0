#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/c10/util/check.h>

#include <algorithm>

namespace taeda {

using symbolic::Expressions;
using symbolic::Id;

SymNode::SymNode(IntrusivePtr<ShapeEnv> shape_env, Id number)
    : env(std::move(shape_env)), id(number) {}
SymNode::SymNode(int64_t value) : large(value) {}
SymNode::~SymNode() = default;

namespace {

// The env of two operands, of which at least one is symbolic.
IntrusivePtr<ShapeEnv> common_env(const SymInt& a, const SymInt& b) {
  const SymInt& first = a.is_symbolic() ? a : b;
  IntrusivePtr<ShapeEnv> env = first.node()->env;
  bool mixed = a.is_symbolic() && b.is_symbolic() && b.node()->env != env;
  TAEDA_CHECK(!mixed,
              "symbolic sizes of two different traces cannot be combined: ",
              a.text(),
              " and ",
              b.text());
  return env;
}

Id id_in(ShapeEnv& env, const SymInt& v) {
  Id id = v.is_symbolic() ? v.node()->id : env.expressions().integer(v.plain());
  return env.simplify(id);
}

int64_t compute(SymInt::Operation op, int64_t a, int64_t b) {
  bool divides = op == SymInt::kDiv || op == SymInt::kMod;
  TAEDA_CHECK(!divides || b != 0, "integer division or modulo by zero");
  switch (op) {
    case SymInt::kAdd:
      return a + b;
    case SymInt::kSub:
      return a - b;
    case SymInt::kMul:
      return a * b;
    case SymInt::kDiv:
      return symbolic::floor_div(a, b);
    case SymInt::kMod:
      return symbolic::floor_mod(a, b);
    case SymInt::kMin:
      return std::min(a, b);
    case SymInt::kMax:
      return std::max(a, b);
  }
  return 0;
}

Id compute(SymInt::Operation op, Expressions& e, Id a, Id b) {
  switch (op) {
    case SymInt::kAdd:
      return e.add(a, b);
    case SymInt::kSub:
      return e.sub(a, b);
    case SymInt::kMul:
      return e.mul(a, b);
    case SymInt::kDiv:
      return e.floor_div(a, b);
    case SymInt::kMod:
      return e.mod(a, b);
    case SymInt::kMin:
      return e.min(a, b);
    case SymInt::kMax:
      return e.max(a, b);
  }
  return a;
}

Id compare(SymInt::Comparison op, Expressions& e, Id a, Id b) {
  if (op == SymInt::kEqual) return e.equal(a, b);
  return op == SymInt::kLess ? e.less(a, b) : e.less_equal(a, b);
}

bool compare(SymInt::Comparison op, int64_t a, int64_t b) {
  if (op == SymInt::kEqual) return a == b;
  return op == SymInt::kLess ? a < b : a <= b;
}

SymBool wrap_truth(const IntrusivePtr<ShapeEnv>& env, Id id) {
  const Expressions& e = env->expressions();
  if (e.is_integer(id)) return SymBool(e[id].value != 0);
  return SymBool(IntrusivePtr<SymNode>::adopt(new SymNode(env, id)));
}

SymBool sym_compare(SymInt::Comparison op, const SymInt& a, const SymInt& b) {
  if (!a.is_symbolic() && !b.is_symbolic()) {
    return SymBool(compare(op, a.plain(), b.plain()));
  }
  IntrusivePtr<ShapeEnv> env = common_env(a, b);
  Id x = id_in(*env, a), y = id_in(*env, b);
  return wrap_truth(env, compare(op, env->expressions(), x, y));
}

template <class F>
SymBool combine(const SymBool& a, const SymBool& b, F function) {
  IntrusivePtr<ShapeEnv> env = a.is_symbolic() ? a.node()->env : b.node()->env;
  Expressions& e = env->expressions();
  Id x = a.is_symbolic() ? a.node()->id : e.truth(a.guard());
  Id y = b.is_symbolic() ? b.node()->id : e.truth(b.guard());
  return wrap_truth(env, function(e, x, y));
}

}  // namespace

SymInt SymInt::slow(Operation op, const SymInt& a, const SymInt& b) {
  if (!a.is_symbolic() && !b.is_symbolic()) {
    return SymInt(compute(op, a.plain(), b.plain()));
  }
  IntrusivePtr<ShapeEnv> env = common_env(a, b);
  Id x = id_in(*env, a), y = id_in(*env, b);
  return env->wrap(compute(op, env->expressions(), x, y));
}

bool SymInt::decide(Comparison op, const SymInt& a, const SymInt& b) {
  return sym_compare(op, a, b).guard();
}

int64_t SymInt::slow_guard() const {
  return node()->env ? node()->env->specialize(node()->id) : node()->large;
}

std::string SymInt::text() const {
  if (!is_symbolic()) return std::to_string(plain());
  ShapeEnv& env = *node()->env;
  return env.expressions().text(env.simplify(node()->id));
}

void append_to(std::string& out, const SymInt& v) { out.append(v.text()); }

void append_to(std::string& out, SymIntArrayRef v) {
  const char* before = "[";
  for (const SymInt& each : v)
    out.append(before).append(each.text()), before = ", ";
  out.append(v.empty() ? "[]" : "]");
}

bool SymBool::slow_guard() const { return node()->env->decide(node()->id); }

std::string SymBool::text() const {
  if (!is_symbolic()) return guard() ? "True" : "False";
  ShapeEnv& env = *node()->env;
  return env.expressions().text(env.simplify(node()->id));
}

SymBool operator!(const SymBool& a) {
  if (!a.is_symbolic()) return SymBool(!a.guard());
  const IntrusivePtr<ShapeEnv>& env = a.node()->env;
  return wrap_truth(env, env->expressions().logical_not(a.node()->id));
}

SymBool operator&(const SymBool& a, const SymBool& b) {
  if (!a.is_symbolic() && !b.is_symbolic()) {
    return SymBool(a.guard() && b.guard());
  }
  return combine(
      a, b, [](Expressions& e, Id x, Id y) { return e.logical_and(x, y); });
}

SymBool operator|(const SymBool& a, const SymBool& b) {
  if (!a.is_symbolic() && !b.is_symbolic()) {
    return SymBool(a.guard() || b.guard());
  }
  return combine(
      a, b, [](Expressions& e, Id x, Id y) { return e.logical_or(x, y); });
}

SymBool sym_eq(const SymInt& a, const SymInt& b) {
  return sym_compare(SymInt::kEqual, a, b);
}
SymBool sym_lt(const SymInt& a, const SymInt& b) {
  return sym_compare(SymInt::kLess, a, b);
}
SymBool sym_le(const SymInt& a, const SymInt& b) {
  return sym_compare(SymInt::kLessEqual, a, b);
}

bool all_plain(SymIntArrayRef list) {
  return std::none_of(list.begin(), list.end(), [](const SymInt& v) {
    return v.is_symbolic();
  });
}

}  // namespace taeda
