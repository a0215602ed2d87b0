// Eigenvalues and singular values by rotations (C. Jacobi, 1846; M. Hestenes,
// 1958): a thread for each matrix, in double.
#pragma once

#include <taeda/aten/native/cuda/factors.cuh>

namespace taeda {

inline constexpr int kMostSweeps = 60;

// The rotation of columns p and q, the second turned by a phase, under which
// `joint`, their product, vanishes; `first` and `second` are their own.
template <class V>
struct Rotation {
  double c = 1, s = 0;
  V phase = V(1);

  __device__ inline Rotation(double first, double second, V joint) {
    const double size = math::sqrt(square_of(joint));
    phase = joint / V(size);
    const double tau = (second - first) / (2 * size);
    const double away = tau < 0 ? -tau : tau;
    double t = 1 / (away + math::sqrt(1 + tau * tau));
    if (tau < 0) t = -t;
    c = 1 / math::sqrt(1 + t * t);
    s = t * c;
  }
  __device__ inline void turn(V& x, V& y, V by) const {
    const V old = x, other = y * by;
    x = V(c) * old - V(s) * other;
    y = V(s) * old + V(c) * other;
  }
  template <class M>
  __device__ inline void turn_columns(const M& m, Long p, Long q) const {
    for (Long r = 0; r < m.rows; ++r) turn(m(r, p), m(r, q), conjugate(phase));
  }
  template <class M>
  __device__ inline void turn_rows(const M& m, Long p, Long q) const {
    for (Long c = 0; c < m.columns; ++c) turn(m(p, c), m(q, c), phase);
  }
};

template <class M>
__device__ inline void swap_columns(const M& m, Long a, Long b) {
  for (Long r = 0; r < m.rows; ++r) {
    const auto held = m(r, a);
    m(r, a) = m(r, b);
    m(r, b) = held;
  }
}

// `a` begins as the Hermitian matrix and is used up, `v` as the identity; `w`
// gets the eigenvalues, from the least on.
template <class G>
__device__ inline void eigen_matrix(const G& g, Long b) {
  const Matrix a(g.a, b);
  const Matrix v(g.v, b);
  const Long n = a.rows;
  double* w = g.w.data() + b * n;
  double all = 0;
  for (Long i = 0; i < n * n; ++i) all += square_of(a.at[i]);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double off = 0;
    for (Long p = 0; p < n; ++p) {
      for (Long q = p + 1; q < n; ++q) off += square_of(a(p, q));
    }
    if (!(off > all * 1e-32)) break;
    for (Long p = 0; p < n; ++p) {
      for (Long q = p + 1; q < n; ++q) {
        if (!(square_of(a(p, q)) > all * 1e-36)) continue;
        const Rotation rotation(
            real_part(a(p, p)), real_part(a(q, q)), a(p, q));
        rotation.turn_columns(a, p, q);
        rotation.turn_rows(a, p, q);
        rotation.turn_columns(v, p, q);
      }
    }
  }
  for (Long i = 0; i < n; ++i) w[i] = real_part(a(i, i));
  for (Long i = 0; i < n; ++i) {
    Long least = i;
    for (Long k = i + 1; k < n; ++k) {
      if (w[k] < w[least]) least = k;
    }
    if (least == i) continue;
    const double held = w[i];
    w[i] = w[least];
    w[least] = held;
    swap_columns(v, i, least);
  }
}

// conj(column p) times column q, over the rows of `m`.
template <class M>
__device__ inline auto column_product(const M& m, Long p, Long q) {
  typename M::V sum = typename M::V(0);
  for (Long r = 0; r < m.rows; ++r) sum = sum + conjugate(m(r, p)) * m(r, q);
  return sum;
}

// Makes column c of `u` a unit vector that is orthogonal to those before it.
template <class M>
__device__ inline void complete_column(const M& u, Long c) {
  using V = typename M::V;
  for (Long unit = 0; unit < u.rows; ++unit) {
    for (Long r = 0; r < u.rows; ++r) u(r, c) = V(r == unit ? 1 : 0);
    for (int twice = 0; twice < 2; ++twice) {
      for (Long k = 0; k < c; ++k) {
        const V share = column_product(u, k, c);
        for (Long r = 0; r < u.rows; ++r) u(r, c) = u(r, c) - u(r, k) * share;
      }
    }
    const double size = math::sqrt(real_part(column_product(u, c, c)));
    // Some unit vector keeps at least 1 / sqrt(rows) of its length.
    if (size * size * static_cast<double>(u.rows) < 0.5) continue;
    for (Long r = 0; r < u.rows; ++r) u(r, c) = u(r, c) / V(size);
    return;
  }
}

// The first columns of `u` begin as the matrix, of at least as many rows as
// columns, `v` as the identity; `s` gets the singular values, the largest
// first.
template <class G>
__device__ inline void singular_matrix(const G& g, Long b) {
  const Matrix u(g.u, b);
  const Matrix v(g.v, b);
  using V = typename decltype(u)::V;
  const Long n = v.rows;
  double* s = g.s.data() + b * n;
  bool turned = true;
  for (int sweep = 0; sweep < kMostSweeps && turned; ++sweep) {
    turned = false;
    for (Long p = 0; p < n; ++p) {
      for (Long q = p + 1; q < n; ++q) {
        const double first = real_part(column_product(u, p, p));
        const double second = real_part(column_product(u, q, q));
        const V joint = column_product(u, p, q);
        if (!(square_of(joint) > 1e-30 * first * second)) continue;
        turned = true;
        const Rotation rotation(first, second, joint);
        rotation.turn_columns(u, p, q);
        rotation.turn_columns(v, p, q);
      }
    }
  }
  for (Long i = 0; i < n; ++i) {
    s[i] = math::sqrt(real_part(column_product(u, i, i)));
  }
  for (Long i = 0; i < n; ++i) {
    Long most = i;
    for (Long k = i + 1; k < n; ++k) {
      if (s[k] > s[most]) most = k;
    }
    if (most == i) continue;
    const double held = s[i];
    s[i] = s[most];
    s[most] = held;
    swap_columns(u, i, most);
    swap_columns(v, i, most);
  }
  for (Long c = 0; c < u.columns; ++c) {
    if (c < n && s[c] > 1e-290 && s[c] > s[0] * 1e-15) {
      for (Long r = 0; r < u.rows; ++r) u(r, c) = u(r, c) / V(s[c]);
    } else {
      complete_column(u, c);
    }
  }
}

}  // namespace taeda
