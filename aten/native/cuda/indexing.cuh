// Elements that are moved to places which other tensors name.
#pragma once

#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

// What becomes of an element that is written: the numbers of Combine in
// ordered.h.
template <class V>
__device__ inline V combined(Long how, V old, V value) {
  switch (how) {
    case 1:
      return static_cast<V>(old + value);
    case 2:
      return static_cast<V>(old * value);
    case 3:
      if constexpr (kIsComplex<V>) {
        return old;
      } else {
        return math::maximum(old, value);
      }
    case 4:
      if constexpr (kIsComplex<V>) {
        return old;
      } else {
        return math::minimum(old, value);
      }
    default:
      return value;
  }
}

// A row of `t` along `dim`: where its first element lies, given the number of
// the row.
template <class T>
__device__ inline Long row_of(const T& t,
                              const Slot& shape,
                              Long dim,
                              Long row) {
  Long at = 0;
  for (Long d = shape.rank - 1; d >= 0; --d) {
    if (d == dim) continue;
    Long next = row / shape.sizes[d];
    at += (row - next * shape.sizes[d]) * t.slot.strides[d];
    row = next;
  }
  return at;
}

// result[index[i]][j] changed by source[i][j], along dim: a thread for each
// place that the other axes have, so that no two write the same element.
template <class G>
__device__ inline void scatter_row(const G& g, Long row) {
  using V = typename decltype(g.result)::Value;
  const Long dim = g.dim.integer(), size = g.result.size(dim);
  const Long to = row_of(g.result, g.index.slot, dim, row);
  const Long at = row_of(g.index, g.index.slot, dim, row);
  const Long count = g.index.size(dim), step = g.result.stride(dim);
  Long from = 0;
  if constexpr (!decltype(g.source)::missing) {
    from = row_of(g.source, g.index.slot, dim, row);
  }
  for (Long k = 0; k < count; ++k) {
    const Long found =
        wrapped_index(g.index.load(at + k * g.index.stride(dim)), size);
    const Long place = to + found * step;
    V value;
    if constexpr (decltype(g.source)::missing) {
      value = number_as<V>(g.value);
    } else {
      value = g.source.load(from + k * g.source.stride(dim));
    }
    value =
        static_cast<V>(combined(g.how.integer(), g.result.load(place), value));
    g.result.store(place, value);
    if constexpr (!decltype(g.seen)::missing) {
      Long mark =
          row_of(g.seen, g.index.slot, dim, row) + found * g.seen.stride(dim);
      g.seen.store(mark, g.seen.load(mark) + 1);
    }
  }
}

// The same for an index of one axis: row `i` of source goes to row index[i].
template <class G>
__device__ inline void index_row(const G& g, Long row) {
  using V = typename decltype(g.result)::Value;
  const Long dim = g.dim.integer();
  const Long size = g.result.size(dim);
  const Long to = row_of(g.result, g.source.slot, dim, row);
  const Long from = row_of(g.source, g.source.slot, dim, row);
  const V alpha = number_as<V>(g.value);
  for (Long k = 0; k < g.source.size(dim); ++k) {
    const Long place = wrapped_index(g.index.flat(k), size);
    const Long target = to + place * g.result.stride(dim);
    V value = g.source.load(from + k * g.source.stride(dim));
    if (g.how.integer() == 1) value = static_cast<V>(value * alpha);
    g.result.store(target,
                   static_cast<V>(combined(
                       g.how.integer(), g.result.load(target), value)));
    if constexpr (!decltype(g.seen)::missing) {
      if (row == 0) g.seen.store(place, g.seen.load(place) + 1);
    }
  }
}

// result, as one row, at index[i], as one row.
template <class G>
__device__ inline void put_at(const G& g, Long i) {
  const Long place = wrapped_index(g.index.flat(i), g.result.numel());
  g.result.store(g.result.place(place), g.source.flat(i));
}

// The same for whole rows of two axes.
template <class G>
__device__ inline void put_row(const G& g, Long i) {
  const Long width = g.result.size(1), row = i / width, column = i % width;
  g.result.store(g.result.place_of(g.index.flat(row), column),
                 g.source.flat(i));
}

// Adds the places that one index of several names, in units of `step`.
template <class G>
__device__ inline void add_places(const G& g, Long i) {
  const Place e(g.result.slot, i);
  const Long at =
      wrapped_index(g.index.broadcast(e, g.result.rank()), g.size.integer());
  g.result.write(i, g.result.flat(i) + at * g.step.integer());
}

// The i-th element that is chosen is number `places[i] - 1` of the choice.
template <class G>
__device__ inline void pick_at(const G& g, Long i) {
  if (!g.mask.flat(i)) return;
  g.result.store(g.places.flat(i) - 1, i);
}

// Numbers in row-major order as an index along each axis.
template <class G>
__device__ inline void unravel_at(const G& g, Long i) {
  const Long rank = g.sizes.size, axis = i % rank;
  Long number = g.numbers.flat(i / rank);
  for (Long d = rank - 1; d > axis; --d) number /= g.sizes[d];
  g.result.write(i, number % g.sizes[axis]);
}

// Whether an element differs from the one before it.
template <class G>
__device__ inline void start_at(const G& g, Long i) {
  g.result.write(i, i == 0 || g.self.flat(i) != g.self.flat(i - 1));
}

// -1, 0 or 1: how two rows stand to each other.
template <class T>
__device__ inline int compared(const T& t, Long a, Long b) {
  for (Long k = 0; k < t.size(1); ++k) {
    const auto x = t.at(a, k), y = t.at(b, k);
    if constexpr (!kIsComplex<typename T::Value>) {
      if (x < y || (y != y && x == x)) return -1;
      if (y < x || (x != x && y == y)) return 1;
    }
    if (x != y) return 1;
  }
  return 0;
}
template <class G>
__device__ inline void start_row(const G& g, Long i) {
  g.result.write(i, i == 0 || compared(g.self, i, i - 1) != 0);
}
// The order of rows: each finds its own place.
template <class G>
__device__ inline void order_row(const G& g, Long i) {
  Long before = 0;
  for (Long j = 0; j < g.self.size(0); ++j) {
    const int sign = compared(g.self, j, i);
    before += sign < 0 || (sign == 0 && j < i) ? 1 : 0;
  }
  g.result.write(before, i);
}

template <class G>
__device__ inline void isin_at(const G& g, Long i) {
  bool found = false;
  for (Long j = 0; j < g.other.numel() && !found; ++j) {
    found = g.self.flat(i) == g.other.flat(j);
  }
  g.result.write(i, found != g.invert.truth());
}

template <class G>
__device__ inline void complex_at(const G& g, Long i) {
  using V = typename decltype(g.a)::Value;
  g.result.write(i, complex<V>(g.a.flat(i), g.b.flat(i)));
}
template <class G>
__device__ inline void polar_at(const G& g, Long i) {
  using V = typename decltype(g.a)::Value;
  const V size = g.a.flat(i), angle = g.b.flat(i);
  g.result.write(
      i, complex<V>(size * math::cos_any(angle), size * math::sin_any(angle)));
}

}  // namespace taeda
