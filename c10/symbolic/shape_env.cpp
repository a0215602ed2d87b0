#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/c10/util/check.h>

#include <algorithm>
#include <utility>

namespace taeda {

using symbolic::Expression;
using symbolic::Expressions;
using symbolic::Id;
using symbolic::Range;
using symbolic::Truth;
using symbolic::Type;

std::string (*ShapeEnv::location)() = nullptr;

DataDependentError::DataDependentError(std::string message)
    : Error(ErrorKind::Runtime, std::move(message)) {}
DataDependentError::~DataDependentError() = default;

namespace {
std::string here() {
  return ShapeEnv::location != nullptr ? ShapeEnv::location() : std::string();
}
}  // namespace

IntrusivePtr<ShapeEnv> ShapeEnv::with_hints(
    const std::unordered_map<Id, int64_t>& hints) const {
  auto copy = make_intrusive<ShapeEnv>();
  copy->expressions_ = expressions_;
  copy->hints_ = hints_;
  for (auto [symbol, hint] : hints) copy->hints_[symbol] = hint;
  copy->sources_ = sources_;
  copy->lowest_ = lowest_;
  copy->replacements_ = replacements_;
  copy->many_ = many_;
  copy->decided_ = decided_;
  copy->symbols_ = symbols_;
  copy->stands_for_numbers = stands_for_numbers;
  copy->backed_ = backed_;
  copy->unbacked_ = unbacked_;
  return copy;
}

SymInt ShapeEnv::wrap(Id id) {
  if (expressions_.is_integer(id)) return SymInt(expressions_[id].value);
  auto self = IntrusivePtr<ShapeEnv>::share(this);
  return SymInt(IntrusivePtr<SymNode>::adopt(new SymNode(std::move(self), id)));
}

SymBool ShapeEnv::wrap_truth(Id condition) {
  auto self = IntrusivePtr<ShapeEnv>::share(this);
  auto* node = new SymNode(std::move(self), condition);
  return SymBool(IntrusivePtr<SymNode>::adopt(node));
}

SymInt ShapeEnv::create_size(int64_t hint,
                             std::string source,
                             DynamicSize how) {
  bool constant = how == DynamicSize::Static ||
                  (how == DynamicSize::Duck && (hint == 0 || hint == 1));
  if (constant) return SymInt(hint);
  if (how == DynamicSize::Duck) {
    if (auto found = by_hint_.find(hint); found != by_hint_.end()) {
      sources_[found->second].push_back(std::move(source));
      return wrap(simplify(found->second));
    }
  }
  // Programs differ for 0 and 1, which broadcast, so that traces assume others
  // unless they have seen one of them.
  SymInt made = add_symbol(hint, hint >= 2 ? 2 : 0, std::move(source));
  if (how == DynamicSize::Duck) by_hint_[hint] = made.node()->id;
  return made;
}

SymInt ShapeEnv::create_integer(int64_t hint, std::string source) {
  return add_symbol(hint, Range::kLow, std::move(source));
}

SymInt ShapeEnv::add_symbol(int64_t hint, int64_t low, std::string source) {
  Id symbol = expressions_.symbol(str_cat("s", backed_++), {low, Range::kHigh});
  hints_[symbol] = hint;
  symbols_.push_back(symbol);
  lowest_[symbol] = low;
  sources_[symbol].push_back(std::move(source));
  return wrap(symbol);
}

SymInt ShapeEnv::create_unbacked(int64_t low, int64_t high) {
  std::string name = str_cat("u", unbacked_++);
  Id symbol = expressions_.symbol(name, {low, high});
  if (low <= 0 && high == Range::kHigh) {
    many_[symbol] = expressions_.symbol(name + "m", {2, high});
  }
  return wrap(symbol);
}

std::vector<std::string> ShapeEnv::sources(Id symbol) const {
  auto found = sources_.find(symbol);
  return found == sources_.end() ? std::vector<std::string>() : found->second;
}

Id ShapeEnv::simplify(Id id) {
  return replacements_.empty() ? id
                               : expressions_.substitute(id, replacements_);
}

std::optional<int64_t> ShapeEnv::hint(Id id) {
  for (Id symbol : expressions_.symbols_of(id)) {
    if (hints_.find(symbol) == hints_.end()) return std::nullopt;
  }
  return expressions_.evaluate(id, hints_);
}

// Numbers that may be negative count as sizes too, which the program has to
// assert: of such a number the condition itself, if no more than its sign
// matters.
Truth ShapeEnv::known_for_many(Id condition) {
  if (many_.empty()) return Truth::Unknown;
  std::unordered_map<Id, Id> counts;
  for (Id symbol : expressions_.symbols_of(condition)) {
    bool is_signed = expressions_.range_of(symbol).low < 0;
    if (!is_signed || many_.find(symbol) == many_.end()) continue;
    counts[symbol] = expressions_.symbol("count", {0, Range::kHigh});
  }
  if (!counts.empty()) {
    Truth truth =
        expressions_.known(expressions_.substitute(condition, counts));
    if (truth != Truth::Unknown) {
      bool holds = truth == Truth::Yes;
      assert_true(holds ? condition : expressions_.logical_not(condition), "");
      return truth;
    }
  }
  Truth truth = expressions_.known(expressions_.substitute(condition, many_));
  if (truth == Truth::Unknown) return truth;
  for (auto [symbol, count] : counts) {
    assert_true(expressions_.less_equal(expressions_.integer(0), symbol), "");
  }
  return truth;
}

bool ShapeEnv::decide(Id condition) {
  condition = simplify(condition);
  Truth truth = expressions_.known(condition);
  if (truth != Truth::Unknown) return truth == Truth::Yes;
  if (auto seen = decided_.find(condition); seen != decided_.end()) {
    return seen->second;
  }
  std::optional<int64_t> value = hint(condition);
  std::string where = here();
  if (!value && lays_out) {
    truth = known_for_many(condition);
    if (truth != Truth::Unknown) return truth == Truth::Yes;
  }
  if (!value) {
    throw DataDependentError(
        str_cat("Could not guard on data-dependent expression ",
                expressions_.text(condition),
                where.empty() ? "" : ", asked at ",
                where,
                ". The size comes from data (nonzero, item, unique, ...); "
                "say what holds with torch._check, or avoid the question"));
  }
  bool holds = *value != 0;
  Id guard = holds ? condition : expressions_.logical_not(condition);
  guards_.push_back({guard, std::move(where)});
  decided_[guard] = true;
  decided_[expressions_.logical_not(guard)] = false;
  learn(guard);
  return holds;
}

bool is_one(const SymInt& size) {
  if (!size.is_symbolic()) return size == 1;
  struct Asking {
    ShapeEnv& env;
    bool before = std::exchange(env.lays_out, false);
    ~Asking() { env.lays_out = before; }
  } asking{*size.node()->env};
  return size == 1;
}

int64_t ShapeEnv::specialize(Id id) {
  id = simplify(id);
  if (expressions_.is_integer(id)) return expressions_[id].value;
  std::optional<int64_t> value = hint(id);
  if (!value) {
    throw DataDependentError(
        str_cat("Could not extract specialized integer from data-dependent "
                "expression ",
                expressions_.text(id)));
  }
  decide(expressions_.equal(id, expressions_.integer(*value)));
  return *value;
}

void ShapeEnv::assert_true(Id condition, const std::string& message) {
  condition = simplify(condition);
  Truth truth = expressions_.known(condition);
  TAEDA_CHECK(truth != Truth::No, message);
  if (truth == Truth::Yes) return;
  if (hint(condition)) {
    TAEDA_CHECK(decide(condition), message);
    return;
  }
  assertions_.push_back({condition, here()});
  decided_[condition] = true;
  decided_[expressions_.logical_not(condition)] = false;
  learn(condition);
}

bool ShapeEnv::fits(const std::unordered_map<Id, int64_t>& values) const {
  for (auto [symbol, low] : lowest_) {
    auto found = values.find(symbol);
    if (found != values.end() && found->second < low) return false;
  }
  return std::all_of(guards_.begin(), guards_.end(), [&](const ShapeGuard& g) {
    return expressions_.evaluate(g.condition, values) != 0;
  });
}

// What a condition that holds says about symbols ------------------------------

void ShapeEnv::learn(Id condition) {
  const Expression node = expressions_[condition];
  switch (node.type) {
    case Type::And:
      learn(node.args[0]);
      learn(node.args[1]);
      break;
    case Type::Equal:
      learn_equal(node.args[0]);
      break;
    case Type::NonNegative:
      learn_nonnegative(node.args[0]);
      break;
    default:
      break;
  }
}

// A symbol with the coefficient 1 or -1 that occurs nowhere else is replaced
// by the rest: the latest one, so that earlier names stay.
void ShapeEnv::learn_equal(Id difference) {
  const Expression node = expressions_[difference];
  Id chosen = 0;
  Id value = 0;
  bool found = false;
  if (node.type == Type::Symbol) {
    chosen = difference;
    value = expressions_.integer(0);
    found = true;
  }
  for (size_t i = 0; node.type == Type::Sum && i < node.args.size(); ++i) {
    Id term = node.args[i];
    bool unit = std::abs(node.coefficients[i]) == 1;
    if (!unit || expressions_[term].type != Type::Symbol) continue;
    Id rest = expressions_.scale(
        expressions_.sub(difference,
                         expressions_.scale(term, node.coefficients[i])),
        -node.coefficients[i]);
    std::vector<Id> used = expressions_.symbols_of(rest);
    if (std::find(used.begin(), used.end(), term) != used.end()) continue;
    chosen = term;
    value = rest;
    found = true;
  }
  if (!found) return;
  for (auto& [symbol, by] : replacements_) {
    by = expressions_.substitute(by, {{chosen, value}});
  }
  replacements_[chosen] = value;
  // What was known of the symbol holds for its value.
  Range known = expressions_.range_of(chosen);
  if (expressions_[value].type == Type::Symbol) {
    expressions_.narrow(value, known);
  }
}

// a * symbol + c >= 0 bounds the symbol.
void ShapeEnv::learn_nonnegative(Id value) {
  const Expression node = expressions_[value];
  Id term = value;
  int64_t factor = 1, constant = 0;
  if (node.type == Type::Sum) {
    if (node.args.size() != 1) return;
    term = node.args[0];
    factor = node.coefficients[0];
    constant = node.value;
  }
  if (expressions_[term].type != Type::Symbol) return;
  Range bound;
  if (factor > 0) {
    bound.low = -symbolic::floor_div(constant, factor);
  } else {
    bound.high = symbolic::floor_div(constant, -factor);
  }
  expressions_.narrow(term, bound);
}

}  // namespace taeda
