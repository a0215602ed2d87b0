// Sizes that are expressions: what is known of them, and their values in a run.
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/c10/symbolic/size_program.h>
#include <taeda/c10/util/small_vector.h>

#include <span>
#include <unordered_map>
#include <vector>

namespace taeda::compiler {

// Note [Sizes in graphs]
// Sizes, strides and numbers of a graph may be expressions over the symbols
// that its inputs have (Graph::symbols). Passes ask what is known of them, by
// the functions here, and decide nothing: a comparison by == would leave a
// guard. Where a pass weighs one way against another it takes the hints, the
// sizes that the trace has seen. A run gets the values of the symbols and works
// all expressions out once, by programs, before its first call.

// Whether two sizes are equal whatever the symbols are.
bool same(const SymInt& a, const SymInt& b);
bool same(SymIntArrayRef a, SymIntArrayRef b);
// The quotient where the division leaves nothing, whatever the symbols are.
std::optional<SymInt> quotient(const SymInt& a, const SymInt& b);
// Whether elements lie without holes and each for itself, whatever the symbols
// are.
bool is_dense(SymIntArrayRef sizes, SymIntArrayRef strides);
// The size that the trace has seen.
int64_t hint(const SymInt& v);

using SizeNumbers = SmallVector<int64_t, 32>;

// The distinct expressions of a graph. Not changed by runs, so that threads may
// share it.
class SizeTable {
 public:
  SizeTable() = default;
  explicit SizeTable(const std::vector<SymInt>& symbols);
  // The place of an expression's value; -1 for a plain integer.
  int32_t place(const SymInt& v);
  // As it is written: a guard is true by what was learned of it.
  int32_t place(const symbolic::Expressions& e, symbolic::Id id);
  // The values by place, of those of the symbols; an error, or false, where
  // one divides by zero.
  void run(std::span<const int64_t> symbols, SizeNumbers& values) const;
  bool try_run(std::span<const int64_t> symbols, SizeNumbers& values) const;

 private:
  symbolic::SymbolNumbers numbers_;
  size_t symbols_ = 0;
  std::vector<symbolic::SizeProgram> programs_;
  std::unordered_map<symbolic::Id, int32_t> places_;
};

// A list of integers some of which a SizeTable works out.
class SizeList {
 public:
  SizeList() = default;
  SizeList(SymIntArrayRef list, SizeTable& table);
  bool all_plain() const { return patches_.empty(); }
  size_t size() const { return plain_.size(); }
  // `room` holds what is returned where something was worked out.
  ArrayRef<int64_t> in(const int64_t* values, DimVector& room) const {
    if (patches_.empty()) return plain_;
    room = plain_;
    for (auto [at, place] : patches_) room[at] = values[place];
    return room;
  }

 private:
  struct Patch {
    uint32_t at;
    int32_t place;
  };
  DimVector plain_;
  std::vector<Patch> patches_;
};

// Expressions among the arguments of a call.
class SizeArguments {
 public:
  SizeArguments() = default;
  // Leaves integers where expressions stood.
  SizeArguments(std::span<IValue> arguments, SizeTable& table);
  bool empty() const { return patches_.empty(); }
  void put(std::span<IValue> arguments, const int64_t* values) const;

 private:
  struct Patch {
    uint16_t argument;
    int16_t element;  // of a list; -1 where the argument is the integer
    int32_t place;
  };
  std::vector<Patch> patches_;
};

}  // namespace taeda::compiler
