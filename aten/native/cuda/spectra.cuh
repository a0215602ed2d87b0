// Eigenvalues and singular values by rotations (C. Jacobi, 1846; M. Hestenes,
// 1958), in double, a block for each matrix. The pairs of a round have no
// column in common (a tournament), so that they are turned at once.
#pragma once

#include <taeda/aten/native/cuda/factors.cuh>

namespace taeda {

inline constexpr int kMostSweeps = 60;

template <class V>
struct WideOf {
  using type = double;
};
template <class T>
struct WideOf<complex<T>> {
  using type = complex<double>;
};
template <class W, class V>
__device__ inline W double_of(V v) {
  if constexpr (kIsComplex<V>) {
    return W(v.real(), v.imag());
  } else {
    return W(v);
  }
}

// The rotation of columns p and q, the second turned by a phase, under which
// `joint`, their product, vanishes; `first` and `second` are their own.
template <class W>
struct Rotation {
  double c = 1, s = 0;
  W phase = W(1);

  __device__ inline void make(double first, double second, W joint) {
    const double size = math::sqrt(square_of(joint));
    phase = joint / W(size);
    const double tau = (second - first) / (2 * size);
    const double away = tau < 0 ? -tau : tau;
    double t = 1 / (away + math::sqrt(1 + tau * tau));
    if (tau < 0) t = -t;
    c = 1 / math::sqrt(1 + t * t);
    s = t * c;
  }
  __device__ inline void turn(W& x, W& y, W by) const {
    const W old = x, other = y * by;
    x = W(c) * old - W(s) * other;
    y = W(s) * old + W(c) * other;
  }
};

// Pair `i` of a round of columns that play each other: one stays, the others
// go around. `q` may be one beyond the last.
struct Pair {
  int p, q;
  __device__ inline Pair(int round, int i, int players) {
    const int circle = players - 1;
    const int a = i == 0 ? circle : (round + i) % circle;
    const int b = (round + circle - i) % circle;
    p = a < b ? a : b;
    q = a < b ? b : a;
  }
};

// Memory of a block: shared, or its part of `scratch`.
template <class W, int kElements>
__device__ inline W* working_memory(const FactorCall& call, Long elements) {
  if constexpr (kElements == 0) {
    return static_cast<W*>(call.scratch) + blockIdx.x * elements;
  } else {
    alignas(16) __shared__ unsigned char memory[kElements * sizeof(W)];
    return reinterpret_cast<W*>(memory);
  }
}

// How many of `values` stand before number i in order.
template <class F>
__device__ inline int place_of(int i, int count, F before) {
  int place = 0;
  for (int k = 0; k < count; ++k) {
    if (before(k, i) || (!before(i, k) && k < i)) ++place;
  }
  return place;
}

// A sweep's rotations of so many pairs are kept at once.
inline constexpr int kPairs = 32;

template <class T, class W>
__device__ inline void turn_pairs(const T& team,
                                  const Columns<W>& a,
                                  const Columns<W>& v,
                                  const Rotation<W>* rotations,
                                  int round,
                                  int first,
                                  int last,
                                  int players) {
  const int n = a.rows;
  const auto each_turned = [&](auto f) {
    team.tile(0, n, first, last, [&](int r, int i) {
      const Pair pair(round, i, players);
      const Rotation<W>& rotation = rotations[i - first];
      if (pair.q < n && rotation.s != 0) f(r, pair, rotation);
    });
    team.sync();
  };
  each_turned([&](int r, const Pair& x, const Rotation<W>& by) {
    by.turn(a(r, x.p), a(r, x.q), conjugate(by.phase));
    if (v.at != nullptr) by.turn(v(r, x.p), v(r, x.q), conjugate(by.phase));
  });
  each_turned([&](int c, const Pair& x, const Rotation<W>& by) {
    by.turn(a(x.p, c), a(x.q, c), by.phase);
    // Which the rotation was made for.
    if (c == x.q) a(x.p, c) = W(0);
    if (c == x.p) a(x.q, c) = W(0);
  });
}

// Whether what stands beside the diagonal has vanished.
template <class T, class W>
__device__ inline bool turn_to_diagonal(const T& team,
                                        const Columns<W>& a,
                                        const Columns<W>& v) {
  alignas(16) __shared__ unsigned char memory[kPairs * sizeof(Rotation<W>)];
  auto* rotations = reinterpret_cast<Rotation<W>*>(memory);
  const int n = a.rows, players = n + n % 2, pairs = players / 2;
  double all = 0;
  team.tile(0, n, 0, n, [&](int r, int c) { all += square_of(a(r, c)); });
  all = team.sum(all);
  // All that is passed over together is less than what ends the sweeps.
  const double least = all * 1e-33 / (static_cast<double>(n) * n);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    double off = 0;
    team.tile(0, n, 0, n, [&](int r, int c) {
      if (r < c) off += square_of(a(r, c));
    });
    off = team.sum(off);
    if (off <= all * 1e-32) return true;
    if (!(off > 0)) return false;  // NaN
    for (int round = 0; round < players - 1; ++round) {
      for (int first = 0; first < pairs; first += kPairs) {
        const int last = first + kPairs < pairs ? first + kPairs : pairs;
        team.each(first, last, [&](int i) {
          const Pair x(round, i, players);
          Rotation<W> made;
          if (x.q < n && square_of(a(x.p, x.q)) > least) {
            made.make(
                real_part(a(x.p, x.p)), real_part(a(x.q, x.q)), a(x.p, x.q));
          }
          rotations[i - first] = made;
        });
        team.sync();
        turn_pairs(team, a, v, rotations, round, first, last, players);
      }
    }
  }
  return false;
}

// Eigenvalues to `numbers`, from the least on, vectors over the matrices, of
// which a triangle is read.
template <class V, int kThreads, int kElements>
__device__ inline void eigen_kernel(const FactorCall& call) {
  using W = typename WideOf<V>::type;
  const Team<kThreads> team;
  const int n = static_cast<int>(call.rows);
  const Long leading = n | 1;
  W* memory = working_memory<W, kElements>(call, 2 * leading * n);
  const Columns<W> a{memory, n, n, leading};
  const Columns<W> v{
      call.vectors ? memory + leading * n : nullptr, n, n, leading};
  each_matrix(team, call.count, [&](Long b) {
    const auto given = matrix_at<V>(call.a, b, n, n);
    team.tile(0, n, 0, n, [&](int r, int c) {
      const bool own = call.upper ? r <= c : r >= c;
      W value = double_of<W>(own ? given(r, c) : conjugate(given(c, r)));
      if (r == c) value = W(real_part(value));
      a(r, c) = value;
      if (v.at != nullptr) v(r, c) = W(r == c ? 1 : 0);
    });
    team.sync();
    const bool done = turn_to_diagonal(team, a, v);
    team.each(0, n, [&](int i) {
      const int place = place_of(i, n, [&](int p, int q) {
        return real_part(a(p, p)) < real_part(a(q, q));
      });
      static_cast<RealOf<V>*>(call.numbers)[b * n + place] =
          static_cast<RealOf<V>>(real_part(a(i, i)));
      for (int r = 0; v.at != nullptr && r < n; ++r) {
        given(r, place) = static_cast<V>(v(r, i));
      }
    });
    if (team.lane == 0) call.info[b] = done ? 0 : n;
  });
}

// conj(column p) times column q, by a warp.
template <class W>
__device__ inline W column_product(const Columns<W>& m, int p, int q) {
  W sum = W(0);
  for (int r = static_cast<int>(threadIdx.x) % 32; r < m.rows; r += 32) {
    sum = sum + conjugate(m(r, p)) * m(r, q);
  }
  return meet_in_warp<32>(sum, [](W a, W b) { return a + b; });
}

// Makes the columns of `u` orthogonal to each other, `v` going along; whether
// they became so.
template <int kThreads, class W>
__device__ inline bool turn_columns(const Team<kThreads>& team,
                                    const Columns<W>& u,
                                    const Columns<W>& v) {
  const int n = v.rows, players = n + n % 2, lane = team.lane % 32;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    int turned = 0;
    for (int round = 0; round < players - 1; ++round) {
      for (int i = team.lane / 32; i < players / 2; i += kThreads / 32) {
        const Pair x(round, i, players);
        if (x.q >= n) continue;
        const double first = real_part(column_product(u, x.p, x.p));
        const double second = real_part(column_product(u, x.q, x.q));
        const W joint = column_product(u, x.p, x.q);
        const double size = square_of(joint);
        // Which is what sums of so many products are off by.
        if (size <= 1e-30 * (1 + u.rows) * first * second) continue;
        turned = 1;
        if (!(size > 0)) continue;  // NaN
        Rotation<W> by;
        by.make(first, second, joint);
        for (int r = lane; r < u.rows; r += 32) {
          by.turn(u(r, x.p), u(r, x.q), conjugate(by.phase));
        }
        for (int r = lane; r < n; r += 32) {
          by.turn(v(r, x.p), v(r, x.q), conjugate(by.phase));
        }
      }
      team.sync();
    }
    turned = team.fold(turned, [](int a, int b) { return a > b ? a : b; });
    if (turned == 0) return true;
  }
  return false;
}

// Makes column c of `u` a unit vector that is orthogonal to those before it and
// to those that are there, in a warp, each of whose threads has rows of its
// own.
template <class W, class F>
__device__ inline void complete_column(const Columns<W>& u, int c, F is_there) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (int unit = 0; unit < u.rows; ++unit) {
    for (int r = lane; r < u.rows; r += 32) u(r, c) = W(r == unit ? 1 : 0);
    for (int twice = 0; twice < 2; ++twice) {
      for (int k = 0; k < u.columns; ++k) {
        if (k == c || !(k < c || is_there(k))) continue;
        const W share = column_product(u, k, c);
        for (int r = lane; r < u.rows; r += 32) {
          u(r, c) = u(r, c) - u(r, k) * share;
        }
      }
    }
    const double square = real_part(column_product(u, c, c));
    // Some unit vector keeps at least 1 / sqrt(rows) of its length.
    if (square * u.rows < 0.5) continue;
    const double size = math::sqrt(square);
    for (int r = lane; r < u.rows; r += 32) u(r, c) = u(r, c) / W(size);
    return;
  }
}

// Of matrices with at least as many rows as columns. `numbers` gets the
// singular values, the largest first, `other` U (`right` columns) and `third`
// V^H where vectors are wanted.
template <class V, int kThreads, int kElements>
__device__ inline void singular_kernel(const FactorCall& call) {
  using W = typename WideOf<V>::type;
  const Team<kThreads> team;
  const int m = static_cast<int>(call.rows), n = static_cast<int>(call.columns);
  const int wide = static_cast<int>(call.right);
  const Long tall = m | 1, low = n | 1;
  W* memory = working_memory<W, kElements>(call, tall * wide + low * n + n);
  const Columns<W> u{memory, m, wide, tall};
  const Columns<W> v{memory + tall * wide, n, n, low};
  W* sizes = memory + tall * wide + low * n;
  each_matrix(team, call.count, [&](Long b) {
    const auto given = matrix_at<V>(call.a, b, m, n);
    team.tile(
        0, m, 0, n, [&](int r, int c) { u(r, c) = double_of<W>(given(r, c)); });
    team.tile(0, n, 0, n, [&](int r, int c) { v(r, c) = W(r == c ? 1 : 0); });
    team.sync();
    const bool done = turn_columns(team, u, v);
    for (int c = team.lane / 32; c < n; c += kThreads / 32) {
      const W square = column_product(u, c, c);
      if (team.lane % 32 == 0) sizes[c] = W(math::sqrt(real_part(square)));
    }
    team.sync();
    double largest = 0;
    for (int c = 0; c < n; ++c) {
      if (real_part(sizes[c]) > largest) largest = real_part(sizes[c]);
    }
    const auto is_there = [&](int c) {
      if (c >= n) return false;
      const double size = real_part(sizes[c]);
      return size > 1e-290 && size > largest * 1e-15;
    };
    const auto place = [&](int i) {
      return i >= n ? i : place_of(i, n, [&](int p, int q) {
        return real_part(sizes[p]) > real_part(sizes[q]);
      });
    };
    team.each(0, n, [&](int i) {
      static_cast<RealOf<V>*>(call.numbers)[b * n + place(i)] =
          static_cast<RealOf<V>>(real_part(sizes[i]));
    });
    if (team.lane == 0) call.info[b] = done ? 0 : n;
    if (call.vectors == 0) return;
    team.tile(0, m, 0, n, [&](int r, int c) {
      if (is_there(c)) u(r, c) = u(r, c) / sizes[c];
    });
    team.sync();
    if (team.lane < 32) {
      for (int c = 0; c < wide; ++c) {
        if (!is_there(c)) complete_column(u, c, is_there);
      }
    }
    team.sync();
    const auto to_u = matrix_at<V>(call.other, b, m, wide);
    const auto to_vh = matrix_at<V>(call.third, b, n, n);
    team.each(0, wide, [&](int i) {
      const int at = place(i);
      for (int r = 0; r < m; ++r) to_u(r, at) = static_cast<V>(u(r, i));
      for (int r = 0; i < n && r < n; ++r) {
        to_vh(at, r) = static_cast<V>(conjugate(v(r, i)));
      }
    });
  });
}

}  // namespace taeda
