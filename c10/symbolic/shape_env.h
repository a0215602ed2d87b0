// Symbols with what is known of them, and the guards that decisions leave.
#pragma once

#include <taeda/c10/symbolic/sym_int.h>
#include <taeda/c10/util/check.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace taeda {

// A condition that held when a program was traced and must hold when the trace
// is used again. `where` is the line of the program that asked.
struct ShapeGuard {
  symbolic::Id condition;
  std::string where;
};

// How a size of an input becomes a symbol.
enum class DynamicSize : uint8_t {
  // 0 and 1 are constants, equal sizes share a symbol.
  Duck,
  // As asked for by mark_dynamic: a symbol of its own, 1 and 0 too.
  Marked,
  Static,
};

// A question about a symbol without a hint; GuardOnDataDependentSymNode in
// Python.
class TAEDA_API DataDependentError final : public Error {
 public:
  explicit DataDependentError(std::string message);
  ~DataDependentError() override;
};

// Note [Guards]
// A symbol with a hint is backed: it stands for a size that was seen. Asking
// for the truth of a condition answers by the ranges if they decide it, else by
// the hints, which leaves a guard; what a guard says is then known. A symbol
// without a hint is unbacked (the count of nonzero elements, say): a condition
// on it that the ranges do not decide is an error that names the line. An env
// belongs to one trace and one thread.
class TAEDA_API ShapeEnv final : public IntrusiveTarget {
 public:
  // A copy that knows the same of its symbols, which have the same ids, without
  // guards and with other hints; sizes that are made in it share no symbol.
  IntrusivePtr<ShapeEnv> with_hints(
      const std::unordered_map<symbolic::Id, int64_t>& hints) const;
  SymInt create_size(int64_t hint, std::string source, DynamicSize how);
  // An integer of a program that is no size: it has any value.
  SymInt create_integer(int64_t hint, std::string source);
  SymInt create_unbacked(int64_t low = 0,
                         int64_t high = symbolic::Range::kHigh);

  // Decides a condition; see Note [Guards].
  bool decide(symbolic::Id condition);
  // The integer itself: its hint, guarded.
  int64_t specialize(symbolic::Id id);
  // What must hold when the program runs; false conditions are an error now.
  void assert_true(symbolic::Id condition, const std::string& message);
  // The value by hints; nothing where a symbol has none.
  std::optional<int64_t> hint(symbolic::Id id);
  // With all that is known put in.
  symbolic::Id simplify(symbolic::Id id);

  symbolic::Expressions& expressions() { return expressions_; }
  const std::vector<ShapeGuard>& guards() const { return guards_; }
  const std::vector<ShapeGuard>& assertions() const { return assertions_; }
  // The sizes of inputs that a symbol stands for, which must be equal; empty
  // for unbacked ones.
  std::vector<std::string> sources(symbolic::Id symbol) const;
  // The backed ones, in the order in which they were made.
  const std::vector<symbolic::Id>& symbols() const { return symbols_; }
  // Whether all guards hold for these values of the symbols.
  bool fits(const std::unordered_map<symbolic::Id, int64_t>& values) const;
  SymInt wrap(symbolic::Id id);
  // A condition as it was written: what is known by now is not put in.
  SymBool wrap_truth(symbolic::Id condition);
  // The least value that was assumed when a symbol was made.
  int64_t lowest(symbolic::Id symbol) const { return lowest_.at(symbol); }

  // Whether programs take its symbols for the numbers that they saw: text and
  // keys of tables are those of the hint, which leaves a guard.
  bool stands_for_numbers = false;
  // Whether who asks lays out a result: an unbacked size then counts as one
  // that is neither 0 nor 1, where that decides the condition. Shapes so found
  // hold for 0 and 1 too, but for dims that are dropped where their size is 1,
  // for which there is `is_one`.
  bool lays_out = false;

  // Names the line of the user's program; set by the bindings.
  static std::string (*location)();

 private:
  SymInt add_symbol(int64_t hint, int64_t low, std::string source);
  symbolic::Truth known_for_many(symbolic::Id condition);
  void learn(symbolic::Id condition);
  void learn_equal(symbolic::Id difference);
  void learn_nonnegative(symbolic::Id value);

  symbolic::Expressions expressions_;
  std::unordered_map<symbolic::Id, int64_t> hints_;
  std::unordered_map<symbolic::Id, std::vector<std::string>> sources_;
  std::unordered_map<symbolic::Id, int64_t> lowest_;   // assumed from the start
  std::unordered_map<int64_t, symbolic::Id> by_hint_;  // for duck sizes
  std::unordered_map<symbolic::Id, symbolic::Id> replacements_;
  // Unbacked sizes as two and something.
  std::unordered_map<symbolic::Id, symbolic::Id> many_;
  std::unordered_map<symbolic::Id, bool> decided_;  // guards, and opposites
  std::vector<symbolic::Id> symbols_;
  std::vector<ShapeGuard> guards_;
  std::vector<ShapeGuard> assertions_;
  int backed_ = 0;
  int unbacked_ = 0;
};

// Whether a size is 1, asked for itself: also while a result is laid out.
TAEDA_API bool is_one(const SymInt& size);
inline bool is_one(int64_t size) { return size == 1; }

}  // namespace taeda
