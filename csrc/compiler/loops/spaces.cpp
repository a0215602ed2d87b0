#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/spaces.h>

#include <algorithm>

namespace taeda::compiler::loops {

int Spaces::axis(SymInt size) {
  nodes_.push_back({std::move(size), {}});
  return static_cast<int>(nodes_.size()) - 1;
}

void Spaces::resolve(int axis, Axes& out) const {
  const Node& node = nodes_[index(axis)];
  if (node.parts.empty()) {
    out.push_back(axis);
    return;
  }
  for (int part : node.parts) resolve(part, out);
}

Spaces::Axes Spaces::resolved(const Axes& axes) const {
  Axes out;
  for (int a : axes) resolve(a, out);
  return out;
}

Spaces::Dims Spaces::resolved(const Dims& dims) const {
  Dims out;
  out.reserve(dims.size());
  for (const Axes& axes : dims) out.push_back(resolved(axes));
  return out;
}

// An axis becomes two of these sizes.
void Spaces::part(int axis, const SymInt& outer, const SymInt& inner) {
  int outer_axis = this->axis(outer);
  int inner_axis = this->axis(inner);
  nodes_[index(axis)].parts = {outer_axis, inner_axis};
}

bool Spaces::unify(const Axes& first, const Axes& second) {
  Axes a = resolved(first), b = resolved(second);
  while (!a.empty() && !b.empty()) {
    int x = a.back(), y = b.back();
    if (x == y) {
      a.pop_back();
      b.pop_back();
      continue;
    }
    SymInt inner_x = size(x), inner_y = size(y);
    if (same(inner_x, inner_y)) {
      nodes_[index(y)].parts = {x};
    } else if (auto outer = quotient(inner_x, inner_y)) {
      part(x, *outer, inner_y);
    } else if (auto outer = quotient(inner_y, inner_x)) {
      part(y, *outer, inner_x);
    } else {
      return false;
    }
    a = resolved(a);
    b = resolved(b);
  }
  return a.empty() && b.empty();
}

bool Spaces::reduce(const Axes& axes) {
  if (reduced_.empty()) {
    reduced_ = axes;
    return true;
  }
  Axes mine = reduced(), other = resolved(axes);
  std::sort(mine.begin(), mine.end());
  std::sort(other.begin(), other.end());
  return mine == other;
}

bool Spaces::valid() const {
  for (const auto& [value, dims] : dims_) {
    Axes seen;
    for (const Axes& axes : resolved(dims)) {
      seen.insert(seen.end(), axes.begin(), axes.end());
    }
    std::sort(seen.begin(), seen.end());
    if (std::adjacent_find(seen.begin(), seen.end()) != seen.end()) {
      return false;
    }
  }
  return true;
}

Spaces::Axes Spaces::all() const {
  Axes found;
  for (const auto& [value, dims] : dims_) {
    for (const Axes& axes : resolved(dims)) {
      found.insert(found.end(), axes.begin(), axes.end());
    }
  }
  for (int a : reduced()) found.push_back(a);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

}  // namespace taeda::compiler::loops
