// The kinds of expressions' values.
#include <taeda/aten/expr/graph.h>
#include <taeda/c10/util/check.h>

namespace taeda::expr {

namespace {

bool is_bitwise(BinaryOp op) { return op >= BinaryOp::And; }

Kind call_kind(const Function& f, Kind arguments) {
  TAEDA_CHECK(arguments != Kind::Complex || f.complex_ok,
              "expression: ",
              f.name,
              " is not defined for complex arguments");
  switch (f.result) {
    case ResultRule::Bool:
      return Kind::Bool;
    case ResultRule::RealFloat:
      return Kind::Float;
    case ResultRule::Real:
      return arguments == Kind::Complex ? Kind::Float : arguments;
    case ResultRule::Float:
    case ResultRule::Same:
      return arguments;
  }
  return arguments;
}

Kind binary_kind(BinaryOp op, Kind common) {
  if (is_bitwise(op)) {
    TAEDA_CHECK(common <= Kind::Int, "expression: & | ^ << >> need integers");
    bool shift = op == BinaryOp::ShiftLeft || op == BinaryOp::ShiftRight;
    return shift ? Kind::Int : common;
  }
  return widest(common, op == BinaryOp::Div ? Kind::Float : Kind::Int);
}

}  // namespace

Kind Graph::argument_kind(Id call, const Kinds& kinds) const {
  const Node& node = nodes_[call];
  Kind common = Kind::Bool;
  for (int i = 0; i < node.count; ++i) {
    common = widest(common, kind(node.args[i], kinds));
  }
  ResultRule rule = kFunctions[node.payload].result;
  bool to_float = rule == ResultRule::Float || rule == ResultRule::RealFloat;
  return to_float ? widest(common, Kind::Float) : common;
}

Kind Graph::kind(Id id, const Kinds& kinds) const {
  const Node& node = nodes_[id];
  switch (node.type) {
    case Word::Literal:
      return literals_[node.payload].kind;
    case Word::Constant: {
      bool limit =
          static_cast<ConstantName>(node.payload) >= ConstantName::Lowest;
      return limit && kinds.compute != Kind::Complex ? kinds.compute
                                                     : Kind::Float;
    }
    case Word::Name: {
      auto found = kinds.names.find(names_[node.payload]);
      TAEDA_CHECK(found != kinds.names.end(),
                  "expression: unknown name '",
                  names_[node.payload],
                  "'");
      return found->second;
    }
    case Word::Call:
      return call_kind(kFunctions[node.payload], argument_kind(id, kinds));
    case Word::Cast: {
      Kind to = node.payload == kCastToCompute
                    ? kinds.compute
                    : static_cast<Kind>(node.payload);
      TAEDA_CHECK(kind(node.args[0], kinds) != Kind::Complex ||
                      to == Kind::Complex || to == Kind::Bool,
                  "expression: a complex value is cast by real(x) or abs(x)");
      return to;
    }
    case Word::Access:
      switch (static_cast<AccessOp>(node.payload)) {
        case AccessOp::Read:
        case AccessOp::Flat:
        case AccessOp::Entry:
        case AccessOp::Along:
          return kind(node.args[0], kinds);
        case AccessOp::Names:
        case AccessOp::Missing:
        case AccessOp::Inside:
          return Kind::Bool;
        default:
          return Kind::Int;
      }
    case Word::Cond:
      kind(node.args[0], kinds);
      return widest(kind(node.args[1], kinds), kind(node.args[2], kinds));
    default:
      break;
  }
  Kind common = kind(node.args[0], kinds);
  if (node.count == 2) common = widest(common, kind(node.args[1], kinds));
  if (node.type == Word::Logic) return Kind::Bool;
  if (node.type == Word::Compare) {
    bool ordered = static_cast<CompareOp>(node.payload) >= CompareOp::Lt;
    TAEDA_CHECK(!ordered || common != Kind::Complex,
                "expression: complex numbers have no order");
    return Kind::Bool;
  }
  if (node.type == Word::Binary) {
    return binary_kind(static_cast<BinaryOp>(node.payload), common);
  }
  switch (static_cast<UnaryOp>(node.payload)) {
    case UnaryOp::Not:
      return Kind::Bool;
    case UnaryOp::Invert:
      TAEDA_CHECK(common <= Kind::Int, "expression: ~ needs bool or int");
      return common;
    case UnaryOp::Neg:
      break;
  }
  return widest(common, Kind::Int);
}

}  // namespace taeda::expr
