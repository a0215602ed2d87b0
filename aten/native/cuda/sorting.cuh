// Order along a dim, in its plain form: a thread counts what stands before one
// element. Its work grows with the square of the row.
#pragma once

#include <taeda/aten/native/cuda/indexing.cuh>

namespace taeda {

// NaN is the largest.
template <class V>
__device__ inline bool is_less(V a, V b) {
  if constexpr (math::kIsSame<V, Long>) {
    return a < b;
  } else {
    return a < b || (b != b && a == a);
  }
}

template <class G>
__device__ inline void sort_at(const G& g, Long i) {
  const Long dim = g.dim.integer(), count = g.self.size(dim);
  const Long row = i / count, k = i % count;
  const Long from = row_of(g.self, g.self.slot, dim, row);
  const Long step = g.self.stride(dim);
  const auto mine = g.self.load(from + k * step);
  const bool descending = g.descending.truth();
  Long before = 0;
  for (Long j = 0; j < count; ++j) {
    const auto other = g.self.load(from + j * step);
    const bool less = descending ? is_less(mine, other) : is_less(other, mine);
    const bool more = descending ? is_less(other, mine) : is_less(mine, other);
    before += less || (!more && j < k) ? 1 : 0;
  }
  const Long values = row_of(g.values, g.self.slot, dim, row);
  const Long indices = row_of(g.indices, g.self.slot, dim, row);
  g.values.store(values + before * g.values.stride(dim), mine);
  g.indices.store(indices + before * g.indices.stride(dim), k);
}

// Where the median of `count` sorted elements stands, of which the last `nans`
// are NaN.
template <class G>
__device__ inline void median_place(const G& g, Long i) {
  const Long count = g.count.integer(), nans = g.nans.flat(i);
  Long place = (count - 1) / 2;
  if (nans > 0) place = count - nans;
  if (g.skips.truth()) place = nans == count ? 0 : (count - nans - 1) / 2;
  g.result.write(i, place);
}

// The smallest of the values that occur most often, and its last place.
template <class G>
__device__ inline void mode_row(const G& g, Long row) {
  const Long dim = g.dim.integer(), count = g.self.size(dim);
  const Long from = row_of(g.self, g.self.slot, dim, row);
  const Long step = g.self.stride(dim);
  Long most = 0, place = 0;
  auto best = g.self.load(from);
  for (Long k = 0; k < count; ++k) {
    const auto value = g.self.load(from + k * step);
    Long times = 0, last = k;
    for (Long j = 0; j < count; ++j) {
      const auto other = g.self.load(from + j * step);
      if (is_less(other, value) || is_less(value, other)) continue;
      ++times;
      last = j;
    }
    if (times < most || (times == most && !is_less(value, best))) continue;
    most = times;
    best = value;
    place = last;
  }
  g.values.write(row, best);
  g.indices.write(row, place);
}

// How many of the row `row` of a sorted sequence stand before `value`, or with
// `right` not behind it.
template <class S, class O, class V>
__device__ inline Long bound(const S& sorted,
                             const O& order,
                             Long row,
                             Long count,
                             V value,
                             bool right) {
  Long low = 0, high = count;
  while (low < high) {
    const Long middle = low + (high - low) / 2;
    Long at = row * count + middle;
    if constexpr (!O::missing) at = row * count + order.flat(at);
    const auto other = sorted.flat(at);
    const bool before = right ? !is_less<V>(value, static_cast<V>(other))
                              : is_less<V>(static_cast<V>(other), value);
    if (before) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

template <class G>
__device__ inline void search_at(const G& g, Long i) {
  const Long width = g.width.integer();
  const Long row = width == 0 ? 0 : i / width;
  using V = decltype(g.self.flat(0) + g.sorted.flat(0));
  g.result.write(i,
                 bound(g.sorted,
                       g.order,
                       row,
                       g.sorted.size(-1),
                       static_cast<V>(g.self.flat(i)),
                       g.right.truth()));
}

}  // namespace taeda
