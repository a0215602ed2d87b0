// Which calls of a graph go together; see Note [Fusion].
#pragma once

#include <taeda/csrc/compiler/loops/decompose.h>

namespace taeda::compiler::loops {

// Items are the graph's nodes by number. A group is a sorted list of them.
using Group = std::vector<size_t>;

class Groups {
 public:
  Groups(const Graph& graph, const std::vector<Item>& items);
  // All groups of two calls and more.
  std::vector<Group> find();

  // Values that a group makes, views apart, and that others read or that are
  // the graph's results; roots of views that others read are among them.
  std::vector<ValueId> outputs_of(const Group& group) const;
  // Views of the group that others read.
  std::vector<ValueId> views_of(const Group& group) const;
  // The axes of a group; nothing where it is none.
  std::optional<Spaces> spaces_of(const Group& group) const;

 private:
  std::optional<Spaces> spaces_of(const Group& group, bool inputs) const;
  bool has_places_of(const Group& group, const Spaces& spaces) const;
  bool is_view(size_t item) const;
  bool read_outside(ValueId value, size_t item) const;
  void grow(size_t item);
  bool merge(size_t from, size_t into);
  void join_siblings();
  bool is_heavy_reader(size_t item, ValueId value) const;
  size_t calls_between(size_t first, size_t last) const;
  void join(size_t from, size_t into);
  bool path_between(size_t from, size_t to) const;
  bool reaches(size_t group, size_t target, std::vector<bool>& seen) const;
  bool fits_outputs(const Group& group, const Spaces& spaces) const;
  bool repeats_work(const Group& group, const Spaces& spaces) const;
  size_t passes_of(const Group& group) const;
  void count_spans(const Group& group, int by);

  const Graph& graph_;
  const std::vector<Item>& items_;
  std::vector<size_t> maker_;                 // item of a value, by value
  std::vector<std::vector<size_t>> readers_;  // items, by value
  std::vector<bool> result_;                  // of the graph, by value
  std::vector<size_t> group_of_;              // by item
  std::vector<Group> groups_;                 // empty: merged into another
  std::vector<int> spans_;  // by item: groups that begin before and end later
};

}  // namespace taeda::compiler::loops
