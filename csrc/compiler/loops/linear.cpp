#include <taeda/csrc/compiler/graph/sizes.h>
#include <taeda/csrc/compiler/loops/linear.h>

#include <algorithm>
#include <limits>

namespace taeda::compiler::loops {

Linear number(int64_t n) {
  Linear out;
  out.offset = n;
  return out;
}

Linear scaled(Linear a, int64_t by) {
  if (by == 0) return {};
  a.offset *= by;
  for (auto& [axis, step] : a.steps) step *= by;
  return a;
}

Linear sum(Linear a, const Linear& b) {
  a.offset += b.offset;
  for (auto [axis, step] : b.steps) {
    int64_t& mine = a.steps[axis];
    mine += step;
    if (mine == 0) a.steps.erase(axis);
  }
  return a;
}

std::optional<Range> range_of(const Spaces& spaces, const Linear& at) {
  Range r{at.offset, at.offset};
  for (auto [axis, step] : at.steps) {
    const SymInt& size = spaces.size(axis);
    if (size.is_symbolic()) return std::nullopt;
    int64_t last = step * (size.plain() - 1);
    (last < 0 ? r.least : r.most) += last;
  }
  return r;
}

std::optional<Linear> linear_in(const Spaces& spaces,
                                const Spaces::Axes& axes) {
  Linear at;
  int64_t step = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    at.steps[axes[i]] += step;
    if (i == 0) break;
    const SymInt& size = spaces.size(axes[i]);
    if (size.is_symbolic()) return std::nullopt;
    step *= size.plain();
  }
  return at;
}

std::optional<Spaces::Axes> axes_of(const Spaces& spaces, const Linear& at) {
  if (at.offset != 0) return std::nullopt;
  std::vector<std::pair<int64_t, int>> order;
  for (auto [axis, step] : at.steps) order.emplace_back(step, axis);
  std::sort(order.rbegin(), order.rend());
  Spaces::Axes axes;
  for (auto [step, axis] : order) axes.push_back(axis);
  int64_t running = 1;
  for (size_t i = order.size(); i-- > 0;) {
    if (order[i].first != running) return std::nullopt;
    const SymInt& size = spaces.size(order[i].second);
    if (size.is_symbolic() && i > 0) return std::nullopt;
    if (i > 0) running *= size.plain();
  }
  return axes;
}

bool lies_inside(const Spaces& spaces, const Linear& at, const SymInt& size) {
  if (auto axes = axes_of(spaces, at)) {
    SymInt all = 1;
    for (int axis : *axes) all *= spaces.size(axis);
    if (same(all, size)) return true;
  }
  auto r = range_of(spaces, at);
  if (!r || size.is_symbolic()) return false;
  return r->least >= 0 && r->most < size.plain();
}

bool fits_int(const Spaces& spaces, const Linear& at) {
  auto r = range_of(spaces, at);
  return r && r->least >= std::numeric_limits<int32_t>::min() &&
         r->most <= std::numeric_limits<int32_t>::max();
}

}  // namespace taeda::compiler::loops
