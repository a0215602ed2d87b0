// Factors of matrices in their plain form: a thread for each matrix. LAPACK's
// conventions decide signs and the order of rows, so that results are the
// CPU's.
#pragma once

#include <taeda/aten/native/cuda/systems.cuh>

namespace taeda {

template <class V>
__device__ inline V conjugate(V v) {
  if constexpr (kIsComplex<V>) {
    return V(v.real(), -v.imag());
  } else {
    return v;
  }
}
template <class V>
__device__ inline auto real_part(V v) {
  if constexpr (kIsComplex<V>) {
    return v.real();
  } else {
    return v;
  }
}
template <class V>
__device__ inline RealOf<V> square_of(V v) {
  return real_part(v * conjugate(v));
}

// Matrix `number` of a row-major tensor of them.
template <class T>
struct Matrix {
  using V = typename T::Stored;
  const Long rows, columns;
  V* const at;
  __device__ inline Matrix(const T& t, Long number)
      : rows(t.size(-2)),
        columns(t.size(-1)),
        at(t.data() + number * rows * columns) {}
  __device__ inline V& operator()(Long r, Long c) const {
    return at[r * columns + c];
  }
};
template <class T>
Matrix(const T&, Long) -> Matrix<T>;

// `l` begins as the matrix, of which one triangle is read.
template <class G>
__device__ inline void cholesky_matrix(const G& g, Long b) {
  const Matrix l(g.l, b);
  using V = typename decltype(l)::V;
  const bool upper = g.upper.truth();
  const auto entry = [&](Long r, Long c) -> V& {
    return upper ? l(c, r) : l(r, c);
  };
  for (Long c = 0; c < l.columns; ++c) {
    RealOf<V> rest = real_part(entry(c, c));
    for (Long k = 0; k < c; ++k) rest -= square_of(entry(c, k));
    if (!(rest > 0)) return g.info.write(b, c + 1);
    const RealOf<V> root = math::sqrt(rest);
    entry(c, c) = V(root);
    for (Long r = c + 1; r < l.rows; ++r) {
      // An upper factor holds the conjugates of what a lower one would.
      V sum = entry(r, c);
      for (Long k = 0; k < c; ++k) {
        const V own = entry(r, k), other = entry(c, k);
        sum = sum - (upper ? conjugate(other) * own : own * conjugate(other));
      }
      entry(r, c) = sum / V(root);
    }
    for (Long r = 0; r < c; ++r) entry(r, c) = V(0);
  }
  g.info.write(b, 0);
}

// A thread for each column of x, which begins as the right side.
template <class G>
__device__ inline void triangle_column(const G& g, Long i) {
  const Long columns = g.x.size(-1), c = i % columns;
  const Matrix a(g.a, i / columns);
  const Matrix x(g.x, i / columns);
  const bool upper = g.upper.truth(), unit = g.unitriangular.truth();
  for (Long step = 0; step < a.rows; ++step) {
    const Long r = upper ? a.rows - 1 - step : step;
    auto value = x(r, c);
    const Long end = upper ? a.rows : r;
    for (Long k = upper ? r + 1 : 0; k < end; ++k) {
      value = value - a(r, k) * x(k, c);
    }
    x(r, c) = unit ? value : value / a(r, r);
  }
}

// By which LAPACK chooses pivots.
template <class V>
__device__ inline RealOf<V> pivot_size(V v) {
  if constexpr (kIsComplex<V>) {
    return math::abs(v.real()) + math::abs(v.imag());
  } else {
    return math::abs(v);
  }
}

// `lu` begins as the matrix; pivots count from 1 on.
template <class G>
__device__ inline void lu_matrix(const G& g, Long b) {
  const Matrix a(g.lu, b);
  using V = typename decltype(a)::V;
  const Long steps = a.rows < a.columns ? a.rows : a.columns;
  Long singular = 0;
  for (Long k = 0; k < steps; ++k) {
    Long pivot = k;
    for (Long r = k + 1; r < a.rows; ++r) {
      if (pivot_size(a(r, k)) > pivot_size(a(pivot, k))) pivot = r;
    }
    g.pivots.write(b * steps + k, pivot + 1);
    if (a(pivot, k) == V(0)) {
      if (singular == 0) singular = k + 1;
      continue;
    }
    for (Long c = 0; pivot != k && c < a.columns; ++c) {
      const V held = a(k, c);
      a(k, c) = a(pivot, c);
      a(pivot, c) = held;
    }
    for (Long r = k + 1; r < a.rows; ++r) {
      const V share = a(r, k) / a(k, k);
      a(r, k) = share;
      for (Long c = k + 1; c < a.columns; ++c) {
        a(r, c) = a(r, c) - share * a(k, c);
      }
    }
  }
  g.info.write(b, singular);
}

// The rows of the identity, exchanged as pivots say; `order` is for use here.
template <class G>
__device__ inline void permutation_matrix(const G& g, Long b) {
  const Matrix p(g.p, b);
  const Long steps = g.pivots.size(-1), first = b * p.rows;
  for (Long r = 0; r < p.rows; ++r) g.order.write(first + r, r);
  for (Long k = 0; k < steps; ++k) {
    const Long with = g.pivots.flat(b * steps + k) - 1;
    require_inside(with, p.rows);
    const Long held = g.order.flat(first + k);
    g.order.write(first + k, g.order.flat(first + with));
    g.order.write(first + with, held);
  }
  for (Long r = 0; r < p.rows; ++r) {
    p(g.order.flat(first + r), r) = typename decltype(p)::V(1);
  }
}

// Applies I - tau v v^H to the columns of `to` from `begin` on; v has a 1 at
// row k and, below it, column k of `from`.
template <class M, class T, class V>
__device__ inline void reflect(
    const M& from, Long k, const T& to, Long begin, V tau) {
  for (Long c = begin; c < to.columns; ++c) {
    V sum = to(k, c);
    for (Long r = k + 1; r < from.rows; ++r) {
      sum = sum + conjugate(from(r, k)) * to(r, c);
    }
    sum = sum * tau;
    to(k, c) = to(k, c) - sum;
    for (Long r = k + 1; r < from.rows; ++r) {
      to(r, c) = to(r, c) - from(r, k) * sum;
    }
  }
}

// `a` begins as the matrix; it ends as R with the reflections below.
template <class G>
__device__ inline void reflections_matrix(const G& g, Long b) {
  const Matrix a(g.a, b);
  using V = typename decltype(a)::V;
  using R = RealOf<V>;
  const Long steps = g.tau.size(-1);
  for (Long k = 0; k < steps; ++k) {
    const V head = a(k, k);
    R below = R(0);
    for (Long r = k + 1; r < a.rows; ++r) below += square_of(a(r, k));
    const bool is_real = square_of(head) == real_part(head) * real_part(head);
    V tau = V(0);
    if (below > R(0) || !is_real) {
      R size = math::sqrt(square_of(head) + below);
      if (real_part(head) >= R(0)) size = -size;
      tau = (V(size) - head) / V(size);
      const V scale = V(1) / (head - V(size));
      for (Long r = k + 1; r < a.rows; ++r) a(r, k) = a(r, k) * scale;
      a(k, k) = V(size);
      reflect(a, k, a, k + 1, conjugate(tau));
    }
    g.tau.data()[b * steps + k] = tau;
  }
}

// `q` begins as the first columns of the identity.
template <class G>
__device__ inline void orthogonal_matrix(const G& g, Long b) {
  const Matrix from(g.from, b);
  const Matrix q(g.q, b);
  const Long steps = g.tau.size(-1);
  for (Long k = steps - 1; k >= 0; --k) {
    reflect(from, k, q, 0, g.tau.data()[b * steps + k]);
  }
}

}  // namespace taeda
