// Which loop axes the dims of values are, while a group of calls grows.
#pragma once

#include <taeda/c10/symbolic/sym_int.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace taeda::compiler::loops {

// Note [Axes of a group]
// A dim of a value is a list of axes, outermost first: one at first, several
// after a reshape has parted it, none where the dim has size 1 or repeats one
// element. Two dims that run together (operand and result, a reshape's two
// sides) are made the same lists: equal axes become one, a longer axis is
// parted by one that divides it, whatever the symbols are. What cannot be made
// the same ends the group.
class Spaces {
 public:
  using Axes = std::vector<int>;
  using Dims = std::vector<Axes>;

  int axis(SymInt size);
  const SymInt& size(int axis) const { return nodes_[index(axis)].size; }
  // Lists over axes that are neither parted nor merged.
  Axes resolved(const Axes& axes) const;
  Dims resolved(const Dims& dims) const;
  // Makes both lists the same; false where that cannot be, and then the object
  // is left half done (callers try on a copy).
  bool unify(const Axes& a, const Axes& b);

  void set(int32_t value, Dims dims) { dims_[value] = std::move(dims); }
  bool has(int32_t value) const { return dims_.contains(value); }
  Dims dims(int32_t value) const { return resolved(dims_.at(value)); }
  // All reductions of a group reduce the same axes; false where this does not.
  bool reduce(const Axes& axes);
  Axes reduced() const { return resolved(reduced_); }
  // Whether no value has an axis twice (a diagonal).
  bool valid() const;
  // All axes of all values.
  Axes all() const;

 private:
  struct Node {
    SymInt size = 0;
    Axes parts;  // that took its place: one where it was merged
  };
  static size_t index(int axis) { return static_cast<size_t>(axis); }
  void resolve(int axis, Axes& out) const;
  void part(int axis, const SymInt& outer, const SymInt& inner);

  std::vector<Node> nodes_;
  std::unordered_map<int32_t, Dims> dims_;
  Axes reduced_;
};

}  // namespace taeda::compiler::loops
