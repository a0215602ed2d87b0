#include <taeda/csrc/compiler/loops/formula.h>
#include <taeda/csrc/compiler/loops/meta_call.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

namespace taeda::compiler::loops {

std::string_view argument_name(const Node& node, size_t argument) {
  return name_of(arguments_of(*node.op->info)[argument], node.op->schema);
}

int argument_named(const Node& node, std::string_view name) {
  for (size_t i = 0; i < node.op->info->arguments; ++i) {
    if (argument_name(node, i) == name) return static_cast<int>(i);
  }
  return -1;
}

ValueId used_value(const Node& node, size_t argument) {
  for (const Use& use : node.uses) {
    if (use.argument == argument && use.element < 0) return use.value;
  }
  return kNoValue;
}

bool is_missing(const Node& node, size_t argument) {
  if (used_value(node, argument) != kNoValue) return false;
  const IValue& v = node.arguments[argument];
  return v.is_none() || (v.is<TensorBase>() && !v.get<TensorBase>().defined());
}

int reduction_of(const Node& node) {
  const RecordInfo& record = *node.op->info->record;
  if (record.family != Family::Pointwise || record.axes == nullptr) return -1;
  std::string_view axes = record.axes;
  size_t slash = axes.find('/');
  return slash == axes.npos ? -1 : argument_named(node, axes.substr(slash + 1));
}

std::optional<expr::Literal> number_in(const IValue& value, expr::Kind kind) {
  bool number = value.is<bool>() || value.is<int64_t>() || value.is<double>();
  if (!number) return std::nullopt;
  switch (kind) {
    case expr::Kind::Bool:
      return expr::Literal::of(value.to_scalar().to_bool());
    case expr::Kind::Int:
      if (value.is<double>()) return std::nullopt;
      return expr::Literal::of(value.is<bool>() ? int64_t{value.get<bool>()}
                                                : value.get<int64_t>());
    case expr::Kind::Float:
      return expr::Literal::of(value.to_scalar().to_double());
    case expr::Kind::Complex:
      break;
  }
  return std::nullopt;
}

namespace {

// ">= 0" or a number alone, which is to be equal.
bool compares(double value, std::string_view text) {
  std::string_view sign = "==";
  if (size_t space = text.find(' '); space != text.npos) {
    sign = text.substr(0, space);
    text = text.substr(space + 1);
  }
  constexpr double kInf = std::numeric_limits<double>::infinity();
  double other = text == "inf" ? kInf
                 : text == "-inf"
                     ? -kInf
                     : std::strtod(std::string(text).c_str(), nullptr);
  if (sign == "==") return value == other;
  if (sign == "!=") return value != other;
  if (sign == "<") return value < other;
  if (sign == "<=") return value <= other;
  return sign == ">" ? value > other : value >= other;
}

// See the table in tools/codegen/choices.py.
bool holds(const Node& node, std::string_view name, std::string_view value) {
  if (value == "otherwise") return true;
  int argument = argument_named(node, name);
  if (argument < 0) return false;
  bool missing = is_missing(node, static_cast<size_t>(argument));
  if (value == "given" || value == "absent") {
    return missing == (value == "absent");
  }
  const IValue& given = node.arguments[static_cast<size_t>(argument)];
  if (missing) return false;
  if (given.is<std::string>()) return given.get<std::string>() == value;
  if (given.is<bool>() && (value == "true" || value == "false")) {
    return given.get<bool>() == (value == "true");
  }
  auto number = number_in(given, expr::Kind::Float);
  return number && compares(number->real, value);
}

// All of "name: value, name: value".
bool all_hold(const Node& node, std::string_view choice) {
  while (!choice.empty()) {
    size_t end = std::min(choice.find(", "), choice.size());
    std::string_view one = choice.substr(0, end);
    size_t colon = one.find(": ");
    if (colon == one.npos) return false;
    if (!holds(node, one.substr(0, colon), one.substr(colon + 2))) return false;
    choice.remove_prefix(std::min(end + 2, choice.size()));
  }
  return true;
}

// Whether the choice counts on the value of a number that is an expression.
bool asks_for_symbol(const Node& node, std::string_view choice) {
  for (size_t i = 0; i < node.op->info->arguments; ++i) {
    if (!node.arguments[i].is<SymInt>()) continue;
    std::string name = str_cat(argument_name(node, i), ": ");
    size_t at = choice.find(name);
    bool whole = at == 0 || (at != choice.npos && choice[at - 1] == ' ');
    if (whole) return true;
  }
  return false;
}

}  // namespace

CallFormulas::CallFormulas(const Graph& graph,
                           const Node& node,
                           expr::Graph& expressions)
    : calls_(graph), node_(node), graph_(expressions) {
  const uint16_t* words = node.op->info->record->expressions;
  sections_ = expr::sections_of(words);
  numbers_ = expr::numbers_of(words);
  for (size_t i = 0; i < node.op->info->arguments; ++i) {
    names_.emplace_back(argument_name(node, i));
  }
  names_.insert(names_.end(), numbers_.begin(), numbers_.end());
  for (const expr::Section& s : sections_) {
    if (asks_for_symbol(node, s.choice)) break;
    if (!all_hold(node, s.choice)) continue;
    choice_ = s.choice;
    break;
  }
}

std::optional<expr::Id> CallFormulas::find(expr::Role role,
                                           expr::Kind kind,
                                           int index) const {
  if (!choice_) return std::nullopt;
  for (const expr::Section& s : sections_) {
    bool here = s.role == role && s.index == index && s.kind == kind;
    if (!here || s.choice != *choice_) continue;
    expr::Id id = without_missing(graph_.load(s.words, names_));
    return with_numbers(id);
  }
  return std::nullopt;
}

// Numbers that C++ works out of arguments (RecordInfo::numbers) are constants
// here.
std::optional<expr::Id> CallFormulas::with_numbers(expr::Id id) const {
  auto used = [&](const std::string& name) { return graph_.uses(id, name); };
  if (std::none_of(numbers_.begin(), numbers_.end(), used)) return id;
  void* function = node_.op->info->record->numbers;
  if (function == nullptr || !has_plain_sizes(calls_, node_))
    return std::nullopt;
  MetaCall call(calls_, node_);
  Stack stack = call.stack(call.inputs());
  node_.op->from_stack(*node_.op, function, stack);
  TensorBase known = stack[0].get<TensorBase>();
  std::unordered_map<std::string, expr::Id> literals;
  for (size_t i = 0; i < numbers_.size(); ++i) {
    if (!used(numbers_[i])) continue;
    if (static_cast<int64_t>(i) >= known.numel()) return std::nullopt;
    auto number = expr::Literal::of(known.const_data<double>()[i]);
    literals[numbers_[i]] = graph_.literal(number);
  }
  return graph_.substitute(id, literals);
}

// `x is None` is known; what a test does not choose is left out.
expr::Id CallFormulas::without_missing(expr::Id id) const {
  expr::Node node = graph_[id];
  if (graph_.is_access(id, expr::AccessOp::Missing)) {
    int argument = argument_named(node_, graph_.name_of(node.args[0]));
    bool missing =
        argument < 0 || is_missing(node_, static_cast<size_t>(argument));
    return graph_.literal(expr::Literal::of(missing));
  }
  if (node.type == expr::Word::Cond) {
    expr::Id test = without_missing(node.args[0]);
    if (graph_.is_literal(test)) {
      return without_missing(
          node.args[graph_.literal_of(test).truth() ? 1 : 2]);
    }
  }
  for (int i = 0; i < node.count; ++i) {
    node.args[i] = without_missing(node.args[i]);
  }
  return graph_.rebuilt(id, node.args);
}

}  // namespace taeda::compiler::loops
