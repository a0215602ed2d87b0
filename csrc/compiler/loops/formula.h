// The formulas of a record that hold for one call.
#pragma once

#include <taeda/aten/expr/graph.h>
#include <taeda/csrc/compiler/graph/graph.h>

#include <optional>

namespace taeda::compiler::loops {

// Which argument has the name; -1 if none.
int argument_named(const Node& node, std::string_view name);
std::string_view argument_name(const Node& node, size_t argument);
// The value that a call's argument has in the graph; kNoValue where it is None
// or no tensor.
ValueId used_value(const Node& node, size_t argument);
bool is_missing(const Node& node, size_t argument);
// The argument of a loss that says what its elements are reduced to, as the
// record's axes tell (`... -> ... /reduction`); -1 where nothing is reduced.
int reduction_of(const Node& node);
// A number among the arguments as a literal of a kind.
std::optional<expr::Literal> number_in(const IValue& value, expr::Kind kind);

// Loads expressions of the record, by role, in the choice that the arguments
// take; tests for None are decided.
class CallFormulas {
 public:
  CallFormulas(const Graph& graph, const Node& node, expr::Graph& expressions);
  // Nothing where the record has no such formula, or one with numbers that C++
  // works out of symbols.
  std::optional<expr::Id> find(expr::Role role,
                               expr::Kind kind,
                               int index = 0) const;
  bool has_choice() const { return choice_.has_value(); }

 private:
  expr::Id without_missing(expr::Id id) const;
  std::optional<expr::Id> with_numbers(expr::Id id) const;

  const Graph& calls_;
  const Node& node_;
  expr::Graph& graph_;
  std::vector<expr::Section> sections_;
  std::vector<std::string> names_, numbers_;
  std::optional<std::string> choice_;
};

}  // namespace taeda::compiler::loops
