// Integer and truth expressions over symbols, simplified when they are built.
#pragma once

#include <taeda/c10/symbolic/range.h>
#include <taeda/c10/util/macros.h>
#include <taeda/c10/util/small_vector.h>

#include <string>
#include <unordered_map>
#include <vector>

namespace taeda::symbolic {

using Id = uint32_t;

// Note [Normal form of symbolic integers]
// An integer expression is a sum of terms with integer coefficients; a term is
// a product of atoms, in the order of their numbers; an atom is a symbol or a
// quotient, remainder, minimum or maximum of expressions. Equal nodes are kept
// once, so two expressions that are equal as polynomials over their atoms have
// one number, and comparing them costs nothing.
enum class Type : uint8_t {
  Integer,
  Symbol,
  Product,  // of atoms: args with repetitions, sorted
  Sum,      // value + sum of coefficients[i] * args[i]
  FloorDiv,
  Mod,
  Min,
  Max,
  // Truth values.
  Equal,        // args[0] == 0
  NonNegative,  // args[0] >= 0
  Not,
  And,
  Or,
};

struct TAEDA_API Expression {
  Type type;
  int64_t value = 0;  // of an Integer, number of a Symbol, constant of a Sum
  SmallVector<Id, 3> args;
  SmallVector<int64_t, 3> coefficients;
  bool operator==(const Expression&) const;
};

enum class Truth : uint8_t { No, Yes, Unknown };

class TAEDA_API Expressions {
 public:
  Id integer(int64_t value);
  // A new symbol with values in `range`.
  Id symbol(std::string name, Range range);

  Id add(Id a, Id b);
  Id sub(Id a, Id b) { return add(a, scale(b, -1)); }
  Id scale(Id a, int64_t factor);
  Id mul(Id a, Id b);
  // Python's // and %; the divisor is not zero.
  Id floor_div(Id a, Id b);
  Id mod(Id a, Id b);
  Id min(Id a, Id b);
  Id max(Id a, Id b);

  Id truth(bool value);
  Id equal(Id a, Id b);
  Id less_equal(Id a, Id b);
  Id less(Id a, Id b) { return less_equal(add(a, integer(1)), b); }
  Id logical_not(Id a);
  Id logical_and(Id a, Id b);
  Id logical_or(Id a, Id b);

  const Expression& operator[](Id id) const { return nodes_[id]; }
  bool is_integer(Id id) const { return nodes_[id].type == Type::Integer; }
  const std::string& name_of(Id symbol) const {
    return names_[static_cast<size_t>(nodes_[symbol].value)];
  }
  Range range_of(Id id) const;
  // Narrows what is known of a symbol.
  void narrow(Id symbol, Range range);
  // The greatest number known to divide every value; 0 for the value 0.
  int64_t divisor_of(Id id) const;
  // What is known of a truth value without asking for hints.
  Truth known(Id id) const;

  // Symbols that occur, in the order of their numbers.
  std::vector<Id> symbols_of(Id id) const;
  // Symbols replaced by expressions; the rest is built anew.
  Id substitute(Id id, const std::unordered_map<Id, Id>& values);
  // The value, given those of all symbols.
  int64_t evaluate(Id id, const std::unordered_map<Id, int64_t>& values) const;
  // As PyTorch shows them: `2*s0 + 1`, `(s0//2)`, `Mod(s0, 2)`, `Max(1, s1)`,
  // `s0 >= 2`, `Eq(s0, 8)`.
  std::string text(Id id) const;

 private:
  using Terms = SmallVector<std::pair<Id, int64_t>, 4>;

  Id intern(Expression node);
  // The terms of an expression and its constant.
  int64_t terms_of(Id id, Terms& terms) const;
  Id sum(int64_t constant, Terms terms);
  Id product(Id a, Id b);
  Id divide_term(Id term, Id by, bool& divides);
  struct Split {
    Id quotient;
    Id rest;
  };
  Split split(Id a, Id b);
  Id extremum(Type type, Id a, Id b);
  std::string text(Id id, int level) const;
  std::string sum_text(const Expression& node) const;
  std::string comparison_text(const Expression& node, bool negated) const;

  struct Hash {
    size_t operator()(const Expression& node) const;
  };
  std::vector<Expression> nodes_;
  std::vector<Range> ranges_;  // of symbols, by their number
  std::vector<std::string> names_;
  std::unordered_map<Expression, Id, Hash> known_;
};

}  // namespace taeda::symbolic
