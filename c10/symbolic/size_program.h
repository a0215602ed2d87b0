// Expressions over symbols as lists of operations.
#pragma once

#include <taeda/c10/symbolic/expression.h>

#include <optional>

namespace taeda::symbolic {

// Positions of symbols among values.
using SymbolNumbers = std::unordered_map<Id, int>;

// Postfix operations on a stack of int64_t.
class TAEDA_API SizeProgram {
 public:
  // `numbers` has the position of each symbol's value; std::out_of_range of a
  // symbol that has none.
  SizeProgram(const Expressions& expressions,
              Id id,
              const SymbolNumbers& numbers);
  // Nothing where it divides by zero.
  std::optional<int64_t> run(const int64_t* symbols) const;

 private:
  enum class Do : uint8_t {
    Constant,
    Symbol,
    AddScaled,  // value * the topmost is added to the one below it
    Multiply,
    FloorDiv,
    Mod,
    Min,
    Max,
    IsZero,
    IsNonNegative,
    Not,
    And,
    Or,
  };
  struct Operation {
    Do what;
    int64_t value;
  };
  void compile(const Expressions& e,
               Id id,
               const SymbolNumbers& numbers,
               int depth);
  void add(Do what, int64_t value = 0) { operations_.push_back({what, value}); }
  void combine(const Expressions& e,
               const Expression& node,
               Do what,
               const SymbolNumbers& numbers,
               int depth);

  static constexpr int kDepth = 32;
  std::vector<Operation> operations_;
};

}  // namespace taeda::symbolic
