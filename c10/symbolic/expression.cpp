#include <taeda/c10/symbolic/expression.h>
#include <taeda/c10/util/check.h>

#include <algorithm>
#include <numeric>
#include <tuple>

namespace taeda::symbolic {

bool Expression::operator==(const Expression& o) const {
  return type == o.type && value == o.value &&
         std::equal(args.begin(), args.end(), o.args.begin(), o.args.end()) &&
         std::equal(coefficients.begin(),
                    coefficients.end(),
                    o.coefficients.begin(),
                    o.coefficients.end());
}

size_t Expressions::Hash::operator()(const Expression& node) const {
  size_t hash = static_cast<size_t>(node.type) ^
                static_cast<size_t>(node.value) * 0x9E3779B97F4A7C15;
  auto mix = [&](size_t v) { hash = (hash ^ v) * 0x100000001B3; };
  for (Id arg : node.args) mix(arg);
  for (int64_t c : node.coefficients) mix(static_cast<size_t>(c));
  return hash ^ hash >> 31;
}

Id Expressions::intern(Expression node) {
  auto next = static_cast<Id>(nodes_.size());
  auto [place, fresh] = known_.try_emplace(node, next);
  if (fresh) nodes_.push_back(std::move(node));
  return place->second;
}

Id Expressions::integer(int64_t value) {
  return intern({Type::Integer, value, {}, {}});
}

Id Expressions::symbol(std::string name, Range range) {
  auto number = static_cast<int64_t>(names_.size());
  names_.push_back(std::move(name));
  ranges_.push_back(range);
  return intern({Type::Symbol, number, {}, {}});
}

void Expressions::narrow(Id symbol, Range range) {
  Range& known = ranges_[static_cast<size_t>(nodes_[symbol].value)];
  known = known.meet(range);
}

// Sums and products -----------------------------------------------------------

int64_t Expressions::terms_of(Id id, Terms& terms) const {
  const Expression& node = nodes_[id];
  if (node.type == Type::Integer) return node.value;
  if (node.type != Type::Sum) {
    terms.push_back({id, 1});
    return 0;
  }
  for (size_t i = 0; i < node.args.size(); ++i) {
    terms.push_back({node.args[i], node.coefficients[i]});
  }
  return node.value;
}

Id Expressions::sum(int64_t constant, Terms terms) {
  std::sort(terms.begin(), terms.end());
  Expression node{Type::Sum, constant, {}, {}};
  for (auto [term, factor] : terms) {
    if (!node.args.empty() && node.args.back() == term) {
      node.coefficients.back() += factor;
    } else {
      node.args.push_back(term);
      node.coefficients.push_back(factor);
    }
    if (node.coefficients.back() == 0) {
      node.args.pop_back();
      node.coefficients.pop_back();
    }
  }
  if (node.args.empty()) return integer(constant);
  bool single = node.args.size() == 1 && node.coefficients[0] == 1;
  if (single && constant == 0) return node.args[0];
  return intern(std::move(node));
}

Id Expressions::add(Id a, Id b) {
  Terms terms;
  int64_t constant = terms_of(a, terms);
  constant += terms_of(b, terms);
  return sum(constant, std::move(terms));
}

Id Expressions::scale(Id a, int64_t factor) {
  Terms terms;
  int64_t constant = terms_of(a, terms) * factor;
  for (auto& term : terms) term.second *= factor;
  return sum(constant, std::move(terms));
}

Id Expressions::product(Id a, Id b) {
  Expression node{Type::Product, 0, {}, {}};
  for (Id factor : {a, b}) {
    const Expression& f = nodes_[factor];
    if (f.type == Type::Product) {
      for (Id atom : f.args) node.args.push_back(atom);
    } else {
      node.args.push_back(factor);
    }
  }
  std::sort(node.args.begin(), node.args.end());
  return intern(std::move(node));
}

Id Expressions::mul(Id a, Id b) {
  Terms left, right, out;
  int64_t x = terms_of(a, left), y = terms_of(b, right);
  for (auto [s, p] : left) {
    for (auto [t, q] : right) out.push_back({product(s, t), p * q});
    out.push_back({s, p * y});
  }
  for (auto [t, q] : right) out.push_back({t, q * x});
  return sum(x * y, std::move(out));
}

// Quotients and remainders ----------------------------------------------------

// term / by where every atom of `by` occurs in the term.
Id Expressions::divide_term(Id term, Id by, bool& divides) {
  SmallVector<Id, 3> left;
  if (nodes_[term].type == Type::Product) {
    left = nodes_[term].args;
  } else {
    left.push_back(term);
  }
  SmallVector<Id, 3> gone;
  if (nodes_[by].type == Type::Product) {
    gone = nodes_[by].args;
  } else {
    gone.push_back(by);
  }
  Expression out{Type::Product, 0, {}, {}};
  size_t next = 0;
  for (Id atom : left) {
    if (next < gone.size() && gone[next] == atom) {
      ++next;
    } else {
      out.args.push_back(atom);
    }
  }
  divides = next == gone.size();
  if (!divides) return term;
  if (out.args.empty()) return integer(1);
  if (out.args.size() == 1) return out.args[0];
  return intern(std::move(out));
}

// Splits a into quotient * b + rest, taking the terms that b divides.
Expressions::Split Expressions::split(Id a, Id b) {
  Terms divisor_terms;
  int64_t divisor = terms_of(b, divisor_terms);
  Split out{integer(0), a};
  if (a == b) return {integer(1), integer(0)};
  // Divisors that are sums of several terms divide only themselves.
  if (divisor_terms.size() > 1 || (divisor_terms.size() == 1 && divisor != 0)) {
    return out;
  }
  Terms terms, rest;
  int64_t constant = terms_of(a, terms), rest_constant = constant;
  if (divisor_terms.empty()) {
    int64_t whole = taeda::symbolic::floor_div(constant, divisor);
    out.quotient = integer(whole);
    rest_constant = constant - whole * divisor;
  } else {
    divisor = divisor_terms[0].second;
  }
  for (auto [term, factor] : terms) {
    bool divides = factor % divisor == 0;
    Id part = term;
    if (divides && !divisor_terms.empty()) {
      part = divide_term(term, divisor_terms[0].first, divides);
    }
    if (divides) {
      out.quotient = add(out.quotient, scale(part, factor / divisor));
    } else {
      rest.push_back({term, factor});
    }
  }
  out.rest = sum(rest_constant, std::move(rest));
  return out;
}

Id Expressions::floor_div(Id a, Id b) {
  if (is_integer(b)) {
    TAEDA_CHECK(nodes_[b].value != 0, "integer division or modulo by zero");
    if (nodes_[b].value < 0) {
      return floor_div(scale(a, -1), integer(-nodes_[b].value));
    }
  }
  auto [quotient, rest] = split(a, b);
  Range values = range_of(rest), by = range_of(b);
  if (values.low >= 0 && values.high < by.low) return quotient;
  if (is_integer(rest) && nodes_[rest].value == 0) return quotient;
  // (x // m) // n is x // (m n) for positive divisors.
  const Expression& inner = nodes_[rest];
  if (inner.type == Type::FloorDiv && by.low > 0 &&
      range_of(inner.args[1]).low > 0) {
    Id x = inner.args[0], m = inner.args[1];
    return add(quotient, floor_div(x, mul(m, b)));
  }
  int64_t common = std::gcd(divisor_of(rest), divisor_of(b));
  if (common > 1) {
    Id small = split(rest, integer(common)).quotient;
    return add(quotient, floor_div(small, split(b, integer(common)).quotient));
  }
  return add(quotient, intern({Type::FloorDiv, 0, {rest, b}, {}}));
}

Id Expressions::mod(Id a, Id b) {
  if (is_integer(b)) {
    TAEDA_CHECK(nodes_[b].value != 0, "integer division or modulo by zero");
  }
  Id rest = split(a, b).rest;
  Range values = range_of(rest), by = range_of(b);
  if (values.low >= 0 && values.high < by.low) return rest;
  if (is_integer(rest) && is_integer(b)) {
    return integer(
        taeda::symbolic::floor_mod(nodes_[rest].value, nodes_[b].value));
  }
  return intern({Type::Mod, 0, {rest, b}, {}});
}

// Extrema ---------------------------------------------------------------------

Id Expressions::extremum(Type type, Id a, Id b) {
  SmallVector<Id, 3> args;
  for (Id each : {a, b}) {
    if (nodes_[each].type == type) {
      for (Id arg : nodes_[each].args) args.push_back(arg);
    } else {
      args.push_back(each);
    }
  }
  // Drops what another argument is known to beat.
  SmallVector<Id, 3> kept;
  for (size_t i = 0; i < args.size(); ++i) {
    bool beaten = false;
    for (size_t j = 0; j < args.size() && !beaten; ++j) {
      if (i == j) continue;
      Range difference = range_of(sub(args[i], args[j]));
      bool worse =
          type == Type::Min ? difference.low >= 0 : difference.high <= 0;
      bool equal = args[i] == args[j] || difference == Range::of(0);
      beaten = worse && (!equal || j < i);
    }
    if (!beaten) kept.push_back(args[i]);
  }
  if (kept.size() == 1) return kept[0];
  std::sort(kept.begin(), kept.end());
  return intern({type, 0, kept, {}});
}

Id Expressions::min(Id a, Id b) { return extremum(Type::Min, a, b); }
Id Expressions::max(Id a, Id b) { return extremum(Type::Max, a, b); }

// Truth values ----------------------------------------------------------------

Id Expressions::truth(bool value) { return integer(value ? 1 : 0); }

Id Expressions::equal(Id a, Id b) {
  Id difference = sub(a, b);
  Range values = range_of(difference);
  if (!values.contains(0)) return truth(false);
  if (values.is_single()) return truth(true);
  Terms terms;
  int64_t constant = terms_of(difference, terms);
  int64_t common = 0;
  for (auto [term, factor] : terms) common = std::gcd(common, factor);
  if (constant % common != 0) return truth(false);
  // One sign of the two that say the same.
  if (terms[0].second < 0) common = -common;
  for (auto& term : terms) term.second /= common;
  Id normal = sum(constant / common, std::move(terms));
  return intern({Type::Equal, 0, {normal}, {}});
}

Id Expressions::less_equal(Id a, Id b) {
  Id difference = sub(b, a);
  Range values = range_of(difference);
  if (values.low >= 0) return truth(true);
  if (values.high < 0) return truth(false);
  Terms terms;
  int64_t constant = terms_of(difference, terms);
  int64_t common = 0;
  for (auto [term, factor] : terms) common = std::gcd(common, factor);
  for (auto& term : terms) term.second /= common;
  constant = taeda::symbolic::floor_div(constant, common);
  Id normal = sum(constant, std::move(terms));
  return intern({Type::NonNegative, 0, {normal}, {}});
}

Id Expressions::logical_not(Id a) {
  const Expression node = nodes_[a];
  if (node.type == Type::Integer) return truth(node.value == 0);
  if (node.type == Type::Not) return node.args[0];
  if (node.type == Type::NonNegative) {
    return less(node.args[0], integer(0));
  }
  if (node.type == Type::And || node.type == Type::Or) {
    Id left = logical_not(node.args[0]), right = logical_not(node.args[1]);
    return node.type == Type::And ? logical_or(left, right)
                                  : logical_and(left, right);
  }
  return intern({Type::Not, 0, {a}, {}});
}

Id Expressions::logical_and(Id a, Id b) {
  if (a == b || (is_integer(b) && nodes_[b].value != 0)) return a;
  if (is_integer(a)) return nodes_[a].value != 0 ? b : a;
  if (is_integer(b)) return b;
  return intern({Type::And, 0, {std::min(a, b), std::max(a, b)}, {}});
}

Id Expressions::logical_or(Id a, Id b) {
  if (a == b || (is_integer(b) && nodes_[b].value == 0)) return a;
  if (is_integer(a)) return nodes_[a].value != 0 ? a : b;
  if (is_integer(b)) return b;
  return intern({Type::Or, 0, {std::min(a, b), std::max(a, b)}, {}});
}

}  // namespace taeda::symbolic
