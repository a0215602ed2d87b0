// Which sizes of a pass are symbols.
#pragma once

#include <taeda/csrc/compiler/walk/record.h>

#include <taeda/c10/symbolic/shape_env.h>

namespace taeda::compiler {

// Note [Sizes of passes]
// A number that differs between two passes with one key is a symbol from then
// on; those that had equal values each time share one. 0 and 1 stay what they
// are, as everywhere.
class Numbers {
 public:
  // No symbols.
  explicit Numbers(std::vector<int64_t> seen);
  // All sizes are symbols, equal ones the same.
  static Numbers all_dynamic(std::vector<int64_t> seen);
  // What differs from a pass before.
  Numbers(std::vector<int64_t> seen, const Numbers& before);

  // The values of the symbols, if the other numbers are those of before.
  bool read(std::span<const int64_t> numbers, DimVector& symbols) const;
  bool has_symbols() const { return !symbols_.empty(); }
  const IntrusivePtr<ShapeEnv>& env() const { return env_; }
  const std::vector<SymInt>& symbols() const { return symbols_; }
  SymInt at(size_t position) const {
    int32_t k = classes_[position];
    return k < 0 ? SymInt(seen_[position]) : symbols_[static_cast<size_t>(k)];
  }

 private:
  int32_t add_symbol(int64_t value);

  std::vector<int64_t> seen_;
  std::vector<int32_t> classes_;  // -1: no symbol
  std::vector<SymInt> symbols_;
  IntrusivePtr<ShapeEnv> env_;
};

// The same expression in a copy of its env.
inline SymInt moved(const SymInt& v, ShapeEnv& env) {
  return v.is_symbolic() ? env.wrap(v.node()->id) : v;
}

}  // namespace taeda::compiler
