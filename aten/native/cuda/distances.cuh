// Distances between rows, and losses that compare the classes of a row.
#pragma once

#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

// A difference's part in a distance of order p, by what is done with the sum.
template <class V>
__device__ inline V norm_part(V difference, double p) {
  const V size = math::abs(difference);
  if (p == 0) return size != V(0) ? V(1) : V(0);
  if (p == 1 || math::is_inf(p)) return size;
  return p == 2 ? size * size : math::pow(size, static_cast<V>(p));
}
template <class V>
__device__ inline V norm_of(V sum, double p) {
  if (p == 2) return math::sqrt(sum);
  const bool same = p == 0 || p == 1 || math::is_inf(p);
  return same ? sum : math::pow(sum, static_cast<V>(1 / p));
}
// The distance's derivative by one difference.
template <class V>
__device__ inline V norm_slope(V difference, V distance, double p) {
  const V sign = static_cast<V>((difference > 0) - (difference < 0));
  const V size = math::abs(difference);
  if (p == 0) return V(0);
  if (p == 1) return sign;
  if (math::is_inf(p)) return size == distance ? sign : V(0);
  if (distance == 0 || (p < 1 && difference == 0)) return V(0);
  if (p == 2) return difference / distance;
  const V power = static_cast<V>(p - 1);
  return sign * math::pow(size, power) / math::pow(distance, power);
}

// Rows `i` of a and `j` of b, counted over all matrices.
template <class A, class B>
__device__ inline typename A::Value distance(
    const A& a, const B& b, Long i, Long j, double p) {
  using V = typename A::Value;
  const Long width = a.size(-1);
  V sum = V(0);
  for (Long k = 0; k < width; ++k) {
    const V part =
        norm_part<V>(a.flat(i * width + k) - b.flat(j * width + k), p);
    sum = math::is_inf(p) ? math::maximum(sum, part) : sum + part;
  }
  return norm_of(sum, p);
}

template <class G>
__device__ inline void cdist_at(const G& g, Long i) {
  const Long m = g.x2.size(-2), row = i / m, batch = row / g.x1.size(-2);
  g.result.write(i, distance(g.x1, g.x2, row, batch * m + i % m, g.p.real()));
}
template <class G>
__device__ inline void cdist_back_at(const G& g, Long i) {
  using V = typename decltype(g.x1)::Value;
  const Long width = g.x1.size(-1), m = g.x2.size(-2);
  const Long row = i / width, batch = row / g.x1.size(-2);
  const V here = g.x1.flat(i);
  V sum = V(0);
  for (Long j = 0; j < m; ++j) {
    const V slope = g.grad.flat(row * m + j);
    if (slope == V(0)) continue;
    const V other = g.x2.flat((batch * m + j) * width + i % width);
    sum += slope *
           norm_slope<V>(here - other, g.cdist.flat(row * m + j), g.p.real());
  }
  g.result.write(i, sum);
}

// The pairs (r, s) with r < s of n rows, in order.
__device__ inline Long pair_number(Long r, Long s, Long n) {
  return r * n - r * (r + 1) / 2 + s - r - 1;
}
template <class G>
__device__ inline void pdist_at(const G& g, Long i) {
  const Long n = g.self.size(0);
  Long r = 0, rest = i;
  for (; rest >= n - 1 - r; ++r) rest -= n - 1 - r;
  g.result.write(i, distance(g.self, g.self, r, r + 1 + rest, g.p.real()));
}
template <class G>
__device__ inline void pdist_back_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const Long n = g.self.size(0), width = g.self.size(1), row = i / width;
  const V here = g.self.flat(i);
  V sum = V(0);
  for (Long j = 0; j < n; ++j) {
    if (j == row) continue;
    const Long pair = j < row ? pair_number(j, row, n) : pair_number(row, j, n);
    const V slope = g.grad.flat(pair);
    if (slope == V(0)) continue;
    const V difference = here - g.self.flat(j * width + i % width);
    sum += slope * norm_slope<V>(difference, g.pdist.flat(pair), g.p.real());
  }
  g.result.write(i, sum);
}

// Losses of classes ----------------------------------------------------------

// Each row of `self` is a sample; so is a tensor of fewer axes.
struct ClassRows {
  Long classes, count;
  template <class T>
  __device__ inline explicit ClassRows(const T& self)
      : classes(self.size(-1)),
        count(self.rank() == 2 ? self.size(0) : Long(1)) {}
  // What a row's sum is multiplied by; 1 stands for the mean over rows.
  __device__ inline double scale(Long reduction) const {
    return 1.0 / (static_cast<double>(classes) *
                  static_cast<double>(reduction == 1 ? count : 1));
  }
};

// The loss of a row, or of all where the result is one number.
template <class R, class F>
__device__ inline void sum_of_rows(const R& result,
                                   const ClassRows& rows,
                                   Long i,
                                   F row) {
  using V = typename R::Value;
  if (result.rank() > 0) return result.write(i, row(i));
  V sum = V(0);
  for (Long r = 0; r < rows.count; ++r) sum += row(r);
  result.write(0, sum);
}

__device__ inline Long class_inside(Long y, Long classes) {
  require_inside(y, classes);
  return y;
}

template <class G>
__device__ inline void multi_margin_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const ClassRows rows(g.self);
  const bool plain = g.p.real() == 1;
  const V margin = static_cast<V>(g.margin.real());
  sum_of_rows(g.result, rows, i, [&](Long r) {
    const Long first = r * rows.classes;
    const Long y = class_inside(g.target.flat(r), rows.classes);
    V sum = V(0);
    for (Long k = 0; k < rows.classes; ++k) {
      const V z = margin - g.self.flat(first + y) + g.self.flat(first + k);
      if (k != y && z > V(0)) sum += plain ? z : z * z;
    }
    const double factor = g.weight.missing ? 1.0 : g.weight.flat(y);
    return static_cast<V>(sum * rows.scale(g.reduction.integer()) * factor);
  });
}
template <class G>
__device__ inline void multi_margin_back_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const ClassRows rows(g.self);
  const bool plain = g.p.real() == 1;
  const V margin = static_cast<V>(g.margin.real());
  const Long r = i / rows.classes, own = i % rows.classes;
  const Long first = r * rows.classes;
  const Long y = class_inside(g.target.flat(r), rows.classes);
  const double factor = g.weight.missing ? 1.0 : g.weight.flat(y);
  const V unit = static_cast<V>(
      rows.scale(g.reduction.integer()) * factor *
      g.grad_output.flat(g.grad_output.rank() > 0 ? r : Long(0)));
  const auto slope = [&](Long k) {
    const V z = margin - g.self.flat(first + y) + g.self.flat(first + k);
    if (k == y || !(z > V(0))) return V(0);
    return plain ? unit : V(2) * unit * z;
  };
  if (own != y) return g.result.write(i, slope(own));
  V total = V(0);
  for (Long k = 0; k < rows.classes; ++k) total += slope(k);
  g.result.write(i, -total);
}

// The classes before the first -1 are a row's targets.
template <class T>
__device__ inline Long targets_of(const T& target, Long first, Long classes) {
  Long count = 0;
  while (count < classes && target.flat(first + count) != -1) ++count;
  return count;
}

template <class G>
__device__ inline void multilabel_margin_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const ClassRows rows(g.self);
  const Long classes = rows.classes;
  sum_of_rows(g.output, rows, i, [&](Long r) {
    const Long first = r * classes;
    const Long count = targets_of(g.target, first, classes);
    for (Long k = 0; k < classes; ++k) g.is_target.write(first + k, 0);
    for (Long j = 0; j < count; ++j) {
      const Long y = class_inside(g.target.flat(first + j), classes);
      g.is_target.write(first + y, 1);
    }
    V sum = V(0);
    for (Long j = 0; j < count; ++j) {
      const V least = V(1) - g.self.flat(first + g.target.flat(first + j));
      for (Long k = 0; k < classes; ++k) {
        const V z = least + g.self.flat(first + k);
        if (g.is_target.flat(first + k) == 0 && z > V(0)) sum += z;
      }
    }
    return static_cast<V>(sum * rows.scale(g.reduction.integer()));
  });
}
template <class G>
__device__ inline void multilabel_margin_back_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const ClassRows rows(g.self);
  const Long r = i / rows.classes, own = i % rows.classes;
  const Long first = r * rows.classes;
  const Long count = targets_of(g.target, first, rows.classes);
  const V unit = static_cast<V>(
      rows.scale(g.reduction.integer()) *
      g.grad_output.flat(g.grad_output.rank() > 0 ? r : Long(0)));
  const auto active = [&](Long y, Long k) {
    const V z = V(1) - g.self.flat(first + y) + g.self.flat(first + k);
    return g.is_target.flat(first + k) == 0 && z > V(0);
  };
  Long times = 0;
  for (Long j = 0; j < count; ++j) {
    const Long y = g.target.flat(first + j);
    times += active(y, own) ? 1 : 0;
    for (Long k = 0; y == own && k < rows.classes; ++k) {
      times -= active(y, k) ? 1 : 0;
    }
  }
  g.result.write(i, unit * static_cast<V>(times));
}

}  // namespace taeda
