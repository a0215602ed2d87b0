// Elements that are moved to places which may be named several times, given the
// numbers of the elements in the order of their places: a thread has all of one
// place, so that nothing is changed by two, and adds in the order in which they
// stand. A place with many is folded by chunks first.
#pragma once

#include <taeda/aten/native/cuda/indexing.cuh>

namespace taeda {

inline constexpr Long kOrderedChunk = 64;

// Where element `i` goes; what names no place goes to the first, since all that
// follows reads what is written here.
template <class G>
__device__ inline Long named_place(const G& g, Long i, Long size) {
  const Long at = g.index.flat(i), place = at < 0 ? at + size : at;
  if (place < 0 || place >= size) {
    g.result.write(i, Long(0));
    report_index(at, size);
  }
  return place;
}
template <class G>
__device__ inline void target_row(const G& g, Long i) {
  g.result.write(i, named_place(g, i, g.size.integer()));
}
// The number, in row-major order, of the element of `shape`.
template <class G>
__device__ inline void target_element(const G& g, Long i) {
  const Place e(g.index.slot, i);
  const Long dim = g.dim.integer();
  Long at = 0;
  for (Long d = 0; d < g.shape.rank(); ++d) {
    const Long size = g.shape.size(d);
    at = at * size + (d == dim ? named_place(g, i, size) : e.at(d));
  }
  g.result.write(i, at);
}

// The element that is named becomes a number, which no order changes.
template <class G>
__device__ inline void set_element(const G& g, Long i) {
  const Place e(g.index.slot, i);
  const Long dim = g.dim.integer();
  Long at = 0;
  for (Long d = 0; d < g.result.rank(); ++d) {
    const Long own =
        d == dim ? wrapped_index(g.index.flat(i), g.result.size(d)) : e.at(d);
    at += own * g.result.stride(d);
  }
  using V = typename decltype(g.result)::Value;
  g.result.store(at, number_as<V>(g.value));
}

// Row k of the source along `dim` goes to a row of the result; of the other
// axes, `column` is the place.
template <class G>
struct IndexedRows {
  using V = typename decltype(G::result)::Value;
  const G& g;
  const Long dim, from, to;
  const V alpha;

  __device__ inline IndexedRows(const G& call, Long column)
      : g(call),
        dim(g.dim.integer()),
        from(row_of(g.source, g.source.slot, dim, column)),
        to(row_of(g.result, g.source.slot, dim, column)),
        alpha(number_as<V>(g.alpha)) {}
  __device__ inline V value(Long k) const {
    const V v = g.source.load(from + k * g.source.stride(dim));
    return g.how.integer() == 1 ? static_cast<V>(v * alpha) : v;
  }
  __device__ inline Long place(Long target) const {
    return to + target * g.result.stride(dim);
  }
};

// Element k of the index's shape goes to an element of the result.
template <class G>
struct NamedElements {
  using V = typename decltype(G::result)::Value;
  const G& g;

  __device__ inline NamedElements(const G& call, Long) : g(call) {}
  __device__ inline V value(Long k) const {
    if constexpr (decltype(g.source)::missing) {
      return number_as<V>(g.alpha);
    } else {
      const Place e(g.index.slot, k);
      Long at = 0;
      for (int d = 0; d < g.index.slot.rank; ++d) {
        at += e.index[d] * g.source.slot.strides[d];
      }
      return g.source.load(at);
    }
  }
  __device__ inline Long place(Long target) const {
    return g.result.place(target);
  }
};

// What the elements from position k on that go to the same place give, up to
// the end of the chunk; k becomes the first position of others.
template <class W, class G>
__device__ inline auto ordered_part(const G& g, const W& w, Long& k) {
  using V = typename W::V;
  const Long target = g.targets.flat(k), count = g.targets.numel();
  const Long chunk = (k / kOrderedChunk + 1) * kOrderedChunk;
  const Long end = chunk < count ? chunk : count;
  V all = w.value(g.order.flat(k));
  for (++k; k < end && g.targets.flat(k) == target; ++k) {
    all = combined(g.how.integer(), all, w.value(g.order.flat(k)));
  }
  return all;
}

// What chunk c + 1 begins with, where that goes on with the chunk before it.
template <template <class> class W, class G>
__device__ inline void lead_at(const G& g, Long i) {
  const Long width = g.width.integer(), column = i % width;
  Long k = (i / width + 1) * kOrderedChunk;
  if (g.targets.flat(k - 1) != g.targets.flat(k)) return;
  g.lead.write(i, ordered_part(g, W<G>(g, column), k));
}

// The first position from `from` on whose place is another than its own.
template <class G>
__device__ inline Long segment_end(const G& g, Long from) {
  const Long target = g.targets.flat(from);
  Long low = from, high = g.targets.numel();
  while (high - low > 1) {
    const Long middle = low + (high - low) / 2;
    if (g.targets.flat(middle) == target) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return high;
}

template <template <class> class W, class G>
__device__ inline void segment_at(const G& g, Long i) {
  using V = typename W<G>::V;
  const Long width = g.width.integer(), column = i % width, first = i / width;
  const Long target = g.targets.flat(first), count = g.targets.numel();
  if (first > 0 && g.targets.flat(first - 1) == target) return;
  const W<G> w(g, column);
  Long k = first;
  V all = ordered_part(g, w, k);
  while (k % kOrderedChunk == 0 && k < count && g.targets.flat(k) == target) {
    const Long lead = (k / kOrderedChunk - 1) * width + column;
    all = combined(g.how.integer(), all, static_cast<V>(g.lead.flat(lead)));
    k += kOrderedChunk;
    if (k > count || g.targets.flat(k - 1) != target) break;
  }
  const Long to = w.place(target);
  g.result.store(
      to, static_cast<V>(combined(g.how.integer(), g.result.load(to), all)));
  if constexpr (!decltype(g.seen)::missing) {
    if (column > 0) return;
    const Long mark = g.seen.place(target);
    g.seen.store(mark, g.seen.load(mark) + segment_end(g, first) - first);
  }
}

}  // namespace taeda
