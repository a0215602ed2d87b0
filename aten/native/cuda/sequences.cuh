// Rows that are joined over bags of indices, and the lattices of sequences.
#pragma once

#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

// Bags -----------------------------------------------------------------------

enum BagMode { kBagSum = 0, kBagMean = 1, kBagMax = 2 };

// Where bag b begins, and the next one; the last ends with the indices.
template <class G>
__device__ inline Long bag_begin(const G& g, Long b) {
  const Long count = g.indices.numel();
  const Long at = b < g.offsets.numel() ? g.offsets.flat(b) : count;
  require_inside(at, b == 0 ? 1 : count + 1);
  return at;
}

// A thread for each column of each bag.
template <class G>
__device__ inline void bag_at(const G& g, Long i) {
  using V = typename decltype(g.weight)::Value;
  const Long width = g.weight.size(1), b = i / width, column = i % width;
  const Long from = bag_begin(g, b), to = bag_begin(g, b + 1);
  const Long mode = g.mode.integer(), padding = g.padding_idx.integer();
  V sum = V(0);
  Long size = 0, where = 0;
  for (Long k = from; k < to; ++k) {
    const Long row = g.indices.flat(k);
    require_inside(row, g.weight.size(0));
    if (column == 0) g.bag_of.write(k, b);
    if (row == padding) continue;
    const V value = g.weight.at(row, column);
    if (mode == kBagMax) {
      if (size == 0 || value > sum) {
        sum = value;
        where = row;
      }
    } else if constexpr (decltype(g.factors)::missing) {
      sum = static_cast<V>(sum + value);
    } else {
      sum = static_cast<V>(sum + value * g.factors.flat(k));
    }
    ++size;
  }
  if (mode == kBagMean && size > 0) sum = sum / static_cast<V>(size);
  g.result.write(i, sum);
  if constexpr (!decltype(g.maxima)::missing) g.maxima.write(i, where);
  if (column == 0) g.sizes.write(b, size);
}

// What each use of a row has for its gradient; of the largest (maxima), what
// each bag has for the element that it chose.
template <class G>
__device__ inline void bag_back_at(const G& g, Long i) {
  using V = typename decltype(g.grad)::Value;
  const Long width = g.grad.size(1), column = i % width, k = i / width;
  if (g.mode.integer() == kBagMax) {
    g.result.write(i, g.bag_size.flat(k) > 0 ? g.grad.at(k, column) : V(0));
    return;
  }
  const Long b = g.offset2bag.flat(k);
  V value = V(0);
  if (g.indices.flat(k) != g.padding_idx.integer() && b < g.grad.size(0)) {
    value = g.grad.at(b, column);
    if constexpr (!decltype(g.per_sample_weights)::missing) {
      value *= static_cast<V>(g.per_sample_weights.flat(k));
    }
    if (g.mode.integer() == kBagMean) {
      value /= static_cast<V>(g.bag_size.flat(b));
    }
  }
  g.result.write(i, value);
}

template <class G>
__device__ inline void bag_factor_back_at(const G& g, Long i) {
  using V = typename decltype(g.grad)::Value;
  const Long row = g.indices.flat(i), b = g.offset2bag.flat(i);
  V sum = V(0);
  if (row != g.padding_idx.integer() && b < g.grad.size(0)) {
    require_inside(row, g.weight.size(0));
    for (Long j = 0; j < g.grad.size(1); ++j) {
      sum += g.grad.at(b, j) * g.weight.at(row, j);
    }
  }
  g.result.write(i, sum);
}

// Connectionist temporal classification (Graves et al., 2006), in log space
// ----

template <class V>
__device__ inline V log_add(V a, V b, V c) {
  const V most = math::maximum(math::maximum(a, b), c);
  if (most == -math::kInfinity<V>) return most;
  return most + math::log(math::exp(a - most) + math::exp(b - most) +
                          math::exp(c - most));
}

// Sequence b: labels with blanks before, between and behind them are states.
template <class G>
struct Lattice {
  using V = typename decltype(G::log_probs)::Value;
  static constexpr V kNever = -math::kInfinity<V>;
  const G& g;
  const Long b, first, length, steps, classes, blank, row;

  __device__ inline Lattice(const G& call, Long number)
      : g(call),
        b(number),
        first(g.first.flat(b)),
        length(g.target_lengths.flat(b)),
        steps(g.input_lengths.flat(b)),
        classes(g.log_probs.size(2)),
        blank(g.blank.integer()),
        row(g.alpha.size(2)) {
    for (Long i = 0; i < length; ++i) {
      require_inside(g.targets.flat(first + i), classes);
    }
  }
  __device__ inline Long states() const { return 2 * length + 1; }
  __device__ inline Long label(Long s) const {
    return s % 2 == 0 ? blank : g.targets.flat(first + s / 2);
  }
  // Whether a path may go from state s - 2 to s: between unlike labels.
  __device__ inline bool skips(Long s) const {
    return s % 2 == 1 && s >= 2 && label(s) != label(s - 2);
  }
  __device__ inline V prob(Long t, Long c) const {
    return g.log_probs.at(t, b, c);
  }
  __device__ inline Long alpha_at(Long t, Long s) const {
    return (b * g.alpha.size(1) + t) * row + s;
  }
};

// `alpha` begins as log(0).
template <class G>
__device__ inline void ctc_at(const G& g, Long b) {
  const Lattice<G> q(g, b);
  using V = typename Lattice<G>::V;
  constexpr V kNever = Lattice<G>::kNever;
  if (q.steps == 0) return g.loss.write(b, q.length == 0 ? V(0) : -kNever);
  g.alpha.write(q.alpha_at(0, 0), q.prob(0, q.blank));
  if (q.length > 0) g.alpha.write(q.alpha_at(0, 1), q.prob(0, q.label(1)));
  for (Long t = 1; t < q.steps; ++t) {
    for (Long s = 0; s < q.states(); ++s) {
      const Long from = q.alpha_at(t - 1, s);
      const V before = s > 0 ? g.alpha.flat(from - 1) : kNever;
      const V skipped = q.skips(s) ? g.alpha.flat(from - 2) : kNever;
      g.alpha.write(
          q.alpha_at(t, s),
          log_add(g.alpha.flat(from), before, skipped) + q.prob(t, q.label(s)));
    }
  }
  const Long last = q.alpha_at(q.steps - 1, q.states() - 1);
  const V all = g.alpha.flat(last);
  g.loss.write(
      b, -(q.length > 0 ? log_add(all, g.alpha.flat(last - 1), kNever) : all));
}

// `beta` has two rows of states for each sequence; `result` begins as 0.
template <class G>
__device__ inline void ctc_back_at(const G& g, Long b) {
  const Lattice<G> q(g, b);
  using V = typename Lattice<G>::V;
  constexpr V kNever = Lattice<G>::kNever;
  const V loss = g.loss.flat(b), unit = g.grad.flat(b);
  if (g.zero_infinity.truth() && loss == -kNever) return;
  const Long last = q.states() - 1;
  for (Long t = q.steps - 1; t >= 0; --t) {
    const Long own = (2 * b + t % 2) * q.row, next = (4 * b + 1) * q.row - own;
    for (Long c = 0; c < q.classes; ++c) {
      g.result.store(g.result.place_of(t, b, c), kNever);
    }
    for (Long s = last; s >= 0; --s) {
      V sum = s + 1 >= last ? V(0) : kNever;
      if (t + 1 < q.steps) {
        const bool skips = s + 2 <= last && q.skips(s + 2);
        sum = log_add(g.beta.flat(next + s),
                      s < last ? g.beta.flat(next + s + 1) : kNever,
                      skips ? g.beta.flat(next + s + 2) : kNever);
      }
      const Long c = q.label(s), to = g.result.place_of(t, b, c);
      const V value = sum + q.prob(t, c);
      g.beta.write(own + s, value);
      const V through = g.alpha.flat(q.alpha_at(t, s)) + value;
      g.result.store(to, log_add(g.result.load(to), through, kNever));
    }
    for (Long c = 0; c < q.classes; ++c) {
      const Long to = g.result.place_of(t, b, c);
      const V prob = q.prob(t, c);
      const V share = math::exp(g.result.load(to) + loss - prob);
      g.result.store(to, (math::exp(prob) - share) * unit);
    }
  }
}

}  // namespace taeda
