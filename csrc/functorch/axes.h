// The `axes` of a record, read from its text (docs/design/records.md, "Axes").
#pragma once

#include <taeda/aten/core/op_info.h>

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace taeda::functorch {

// One term of a pattern.
struct Axis {
  enum Kind : uint8_t {
    Name,
    Dots,   // ... axes that broadcast
    Star,   // * axes that agree
    At,     // @dim: those that the argument names
    Count,  // #shape!: as many as the argument has entries
  };
  Kind kind = Name;
  std::string name;
  bool whole = false;
  bool fold = false;
  bool absent = false;
  bool every = false;
  int per = 1;
  int size = -1;      // the argument that repeats its size
  int argument = -1;  // of At and Count

  bool is_group() const { return kind == Dots || kind == Star; }
  bool takes_batch() const { return fold || (is_group() && !whole); }
  // What terms of one axis have in common in all operands.
  std::string key() const;
  // The same, but with @dim and @dim! apart.
  std::string mark() const { return kind == At && whole ? key() + "!" : key(); }
};

// The axes of one tensor, or of each tensor of a list.
struct Pattern {
  std::vector<Axis> axes;
  bool unread = false;
  int sizes = -1;      // the argument that repeats the sizes
  int reduction = -1;  // the argument that says whether all axes are reduced

  int find(std::string_view key) const;  // -1 if it has no such term
};

struct Axes {
  std::vector<Pattern> inputs;   // by tensor argument
  std::vector<Pattern> outputs;  // by result
  // Keys of the terms that can take a batch, the preferred one first.
  std::vector<std::string> places;
};

// Nothing where the record has none or calls them opaque.
std::optional<Axes> axes_of(const OperatorEntry& op);

}  // namespace taeda::functorch
