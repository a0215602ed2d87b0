// Integers that are linear in the axes of a group.
#pragma once

#include <taeda/csrc/compiler/loops/spaces.h>

#include <map>
#include <optional>

namespace taeda::compiler::loops {

// offset + sum of steps[axis] * index, over axes of `Spaces`.
struct Linear {
  int64_t offset = 0;
  std::map<int, int64_t> steps;  // no zeros
  bool is_number() const { return steps.empty(); }
};

Linear number(int64_t n);
Linear scaled(Linear a, int64_t by);
Linear sum(Linear a, const Linear& b);

struct Range {
  int64_t least = 0, most = 0;
};
// Of its values; nothing where an axis has a size that is an expression.
std::optional<Range> range_of(const Spaces& spaces, const Linear& at);
// The index along a dim that is these axes; nothing where sizes of inner ones
// are expressions.
std::optional<Linear> linear_in(const Spaces& spaces, const Spaces::Axes& axes);
// The axes whose index this is; nothing where it is another number.
std::optional<Spaces::Axes> axes_of(const Spaces& spaces, const Linear& at);
// Whether it is an index of a dim of this size wherever the loops are.
bool lies_inside(const Spaces& spaces, const Linear& at, const SymInt& size);

// Whether it fits 32 bits wherever the loops are.
bool fits_int(const Spaces& spaces, const Linear& at);

}  // namespace taeda::compiler::loops
