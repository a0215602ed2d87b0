// What is known of expressions: ranges, divisors, truth, values, and their
// text.
#include <taeda/c10/symbolic/expression.h>
#include <taeda/c10/util/check.h>

#include <algorithm>
#include <numeric>

namespace taeda::symbolic {

Range Expressions::range_of(Id id) const {
  const Expression& node = nodes_[id];
  switch (node.type) {
    case Type::Integer:
      return Range::of(node.value);
    case Type::Symbol:
      return ranges_[static_cast<size_t>(node.value)];
    case Type::Product: {
      Range out = Range::of(1);
      for (Id arg : node.args) out = out * range_of(arg);
      return out;
    }
    case Type::Sum: {
      Range out = Range::of(node.value);
      for (size_t i = 0; i < node.args.size(); ++i) {
        out = out + range_of(node.args[i]) * Range::of(node.coefficients[i]);
      }
      return out;
    }
    case Type::FloorDiv:
      return symbolic::floor_div(range_of(node.args[0]),
                                 range_of(node.args[1]));
    case Type::Mod:
      return symbolic::floor_mod(range_of(node.args[0]),
                                 range_of(node.args[1]));
    case Type::Min:
    case Type::Max: {
      Range out = range_of(node.args[0]);
      for (Id arg : node.args) {
        Range other = range_of(arg);
        out = node.type == Type::Min ? out.min(other) : out.max(other);
      }
      return out;
    }
    default:
      return {0, 1};
  }
}

int64_t Expressions::divisor_of(Id id) const {
  const Expression& node = nodes_[id];
  if (node.type == Type::Integer) return std::abs(node.value);
  if (node.type == Type::Product) {
    int64_t out = 1;
    for (Id arg : node.args) out *= divisor_of(arg);
    return out;
  }
  if (node.type != Type::Sum) return 1;
  int64_t out = std::abs(node.value);
  for (size_t i = 0; i < node.args.size(); ++i) {
    out = std::gcd(out, node.coefficients[i] * divisor_of(node.args[i]));
  }
  return out;
}

Truth Expressions::known(Id id) const {
  const Expression& node = nodes_[id];
  auto from = [](bool yes, bool no) {
    return yes ? Truth::Yes : no ? Truth::No : Truth::Unknown;
  };
  switch (node.type) {
    case Type::Integer:
      return from(node.value != 0, node.value == 0);
    case Type::Equal: {
      Range values = range_of(node.args[0]);
      return from(values == Range::of(0), !values.contains(0));
    }
    case Type::NonNegative: {
      Range values = range_of(node.args[0]);
      return from(values.low >= 0, values.high < 0);
    }
    case Type::Not: {
      Truth inner = known(node.args[0]);
      return from(inner == Truth::No, inner == Truth::Yes);
    }
    case Type::And:
    case Type::Or: {
      Truth a = known(node.args[0]), b = known(node.args[1]);
      bool either_yes = a == Truth::Yes || b == Truth::Yes;
      bool either_no = a == Truth::No || b == Truth::No;
      bool both_yes = a == Truth::Yes && b == Truth::Yes;
      bool both_no = a == Truth::No && b == Truth::No;
      return node.type == Type::And ? from(both_yes, either_no)
                                    : from(either_yes, both_no);
    }
    default:
      return Truth::Unknown;
  }
}

std::vector<Id> Expressions::symbols_of(Id id) const {
  std::vector<Id> found;
  auto visit = [&](auto&& self, Id at) -> void {
    const Expression& node = nodes_[at];
    if (node.type == Type::Symbol) found.push_back(at);
    for (Id arg : node.args) self(self, arg);
  };
  visit(visit, id);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

Id Expressions::substitute(Id id, const std::unordered_map<Id, Id>& values) {
  if (auto found = values.find(id); found != values.end()) return found->second;
  const Expression node = nodes_[id];
  SmallVector<Id, 3> args;
  for (Id arg : node.args) args.push_back(substitute(arg, values));
  switch (node.type) {
    case Type::Integer:
    case Type::Symbol:
      return id;
    case Type::Product: {
      Id out = args[0];
      for (size_t i = 1; i < args.size(); ++i) out = mul(out, args[i]);
      return out;
    }
    case Type::Sum: {
      Id out = integer(node.value);
      for (size_t i = 0; i < args.size(); ++i) {
        out = add(out, scale(args[i], node.coefficients[i]));
      }
      return out;
    }
    case Type::FloorDiv:
      return floor_div(args[0], args[1]);
    case Type::Mod:
      return mod(args[0], args[1]);
    case Type::Min:
    case Type::Max: {
      Id out = args[0];
      for (Id arg : args) out = extremum(node.type, out, arg);
      return out;
    }
    case Type::Equal:
      return equal(args[0], integer(0));
    case Type::NonNegative:
      return less_equal(integer(0), args[0]);
    case Type::Not:
      return logical_not(args[0]);
    case Type::And:
      return logical_and(args[0], args[1]);
    case Type::Or:
      return logical_or(args[0], args[1]);
  }
  return id;
}

int64_t Expressions::evaluate(
    Id id, const std::unordered_map<Id, int64_t>& values) const {
  const Expression& node = nodes_[id];
  auto at = [&](size_t i) { return evaluate(node.args[i], values); };
  switch (node.type) {
    case Type::Integer:
      return node.value;
    case Type::Symbol: {
      auto found = values.find(id);
      TAEDA_CHECK(
          found != values.end(), "symbolic size: no value for ", name_of(id));
      return found->second;
    }
    case Type::Product: {
      int64_t out = 1;
      for (size_t i = 0; i < node.args.size(); ++i) out *= at(i);
      return out;
    }
    case Type::Sum: {
      int64_t out = node.value;
      for (size_t i = 0; i < node.args.size(); ++i) {
        out += node.coefficients[i] * at(i);
      }
      return out;
    }
    case Type::FloorDiv:
    case Type::Mod: {
      int64_t a = at(0), b = at(1);
      TAEDA_CHECK(b != 0, "integer division or modulo by zero");
      return node.type == Type::Mod ? symbolic::floor_mod(a, b)
                                    : symbolic::floor_div(a, b);
    }
    case Type::Min:
    case Type::Max: {
      int64_t out = at(0);
      for (size_t i = 1; i < node.args.size(); ++i) {
        out = node.type == Type::Min ? std::min(out, at(i))
                                     : std::max(out, at(i));
      }
      return out;
    }
    case Type::Equal:
      return at(0) == 0;
    case Type::NonNegative:
      return at(0) >= 0;
    case Type::Not:
      return at(0) == 0;
    case Type::And:
      return at(0) != 0 && at(1) != 0;
    case Type::Or:
      return at(0) != 0 || at(1) != 0;
  }
  return 0;
}

// Text ------------------------------------------------------------------------

namespace {
enum Level { kLogic, kNot, kComparison, kSum, kProduct, kAtom };

std::string number(int64_t v) { return std::to_string(v); }
}  // namespace

std::string Expressions::sum_text(const Expression& node) const {
  std::string out;
  for (size_t i = 0; i < node.args.size(); ++i) {
    int64_t factor = node.coefficients[i];
    if (i > 0) out += factor < 0 ? " - " : " + ";
    if (i == 0 && factor < 0) out += "-";
    if (std::abs(factor) != 1) out += number(std::abs(factor)) + "*";
    out += text(node.args[i], kProduct);
  }
  if (node.value != 0) {
    out += node.value < 0 ? " - " : " + ";
    out += number(std::abs(node.value));
  }
  return out;
}

// Terms of positive sign stand on the left, the others on the right.
std::string Expressions::comparison_text(const Expression& node,
                                         bool negated) const {
  Expression left{Type::Sum, 0, {}, {}}, right = left;
  Terms terms;
  int64_t constant = terms_of(node.args[0], terms);
  for (auto [term, factor] : terms) {
    Expression& side = factor > 0 ? left : right;
    side.args.push_back(term);
    side.coefficients.push_back(std::abs(factor));
  }
  bool equality = node.type == Type::Equal;
  const char* op = " >= ";
  if (left.args.empty()) {
    std::swap(left, right);
    op = " <= ";
    constant = -constant;
  }
  (constant > 0 && !right.args.empty() ? left : right).value =
      constant > 0 && !right.args.empty() ? constant : -constant;
  auto print = [&](const Expression& side) {
    return side.args.empty() ? number(side.value) : sum_text(side);
  };
  if (equality) {
    return (negated ? "Ne(" : "Eq(") + print(left) + ", " + print(right) + ")";
  }
  return print(left) + op + print(right);
}

std::string Expressions::text(Id id, int outer) const {
  const Expression& node = nodes_[id];
  int level = kAtom;
  std::string out;
  switch (node.type) {
    case Type::Integer:
      out = number(node.value);
      level = node.value < 0 ? kSum : kAtom;
      break;
    case Type::Symbol:
      return name_of(id);
    case Type::Product:
      for (size_t i = 0; i < node.args.size(); ++i) {
        out += (i > 0 ? "*" : "") + text(node.args[i], kAtom);
      }
      level = kProduct;
      break;
    case Type::Sum:
      out = sum_text(node);
      level = kSum;
      break;
    case Type::FloorDiv:
      return "(" + text(node.args[0], kAtom) + "//" +
             text(node.args[1], kAtom) + ")";
    case Type::Mod:
      return "Mod(" + text(node.args[0], kLogic) + ", " +
             text(node.args[1], kLogic) + ")";
    case Type::Min:
    case Type::Max:
      out = node.type == Type::Min ? "Min(" : "Max(";
      for (size_t i = 0; i < node.args.size(); ++i) {
        out += (i > 0 ? ", " : "") + text(node.args[i], kLogic);
      }
      return out + ")";
    case Type::Equal:
      return comparison_text(node, false);
    case Type::NonNegative:
      out = comparison_text(node, false);
      level = kComparison;
      break;
    case Type::Not:
      if (nodes_[node.args[0]].type == Type::Equal) {
        return comparison_text(nodes_[node.args[0]], true);
      }
      out = "not " + text(node.args[0], kNot);
      level = kNot;
      break;
    case Type::And:
    case Type::Or:
      out = text(node.args[0], kNot) +
            (node.type == Type::And ? " and " : " or ") +
            text(node.args[1], kNot);
      level = kLogic;
      break;
  }
  return level < outer ? "(" + out + ")" : out;
}

std::string Expressions::text(Id id) const { return text(id, kLogic); }

}  // namespace taeda::symbolic
