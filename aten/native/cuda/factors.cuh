// Factors of matrices, a block for each: small ones lie in its shared memory.
// LAPACK's conventions decide signs and the order of rows, so that results are
// the CPU's.
#pragma once

#include <taeda/aten/native/cuda/factor_calls.cuh>
#include <taeda/aten/native/cuda/loops.cuh>

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
__device__ inline RealOf<V> real_part(V v) {
  if constexpr (kIsComplex<V>) {
    return v.real();
  } else {
    return v;
  }
}
template <class V>
__device__ inline RealOf<V> square_of(V v) {
  if constexpr (kIsComplex<V>) {
    return v.real() * v.real() + v.imag() * v.imag();
  } else {
    return v * v;
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

// The threads of a block, which compute a matrix together.
template <int kThreads>
struct Team {
  static constexpr int kWarps = kThreads / 32;
  const int lane = static_cast<int>(threadIdx.x);

  __device__ inline void sync() const { __syncthreads(); }
  // f(i) for each i, and f(row, column) for each place of a tile.
  template <class F>
  __device__ inline void each(int begin, int end, F f) const {
    for (int i = begin + lane; i < end; i += kThreads) f(i);
  }
  template <class F>
  __device__ inline void tile(
      int first_row, int rows, int first_column, int columns, F f) const {
    const int height = rows - first_row;
    const int all = height > 0 ? height * (columns - first_column) : 0;
    for (int i = lane; i < all; i += kThreads) {
      const int c = i / height;
      f(first_row + i - c * height, first_column + c);
    }
  }
  // All get the fold of what each has.
  template <class T, class F>
  __device__ inline T fold(T value, F combine) const {
    alignas(16) __shared__ unsigned char memory[(kWarps + 1) * sizeof(T)];
    return meet<kThreads, 1, false>(value, lane, 0, memory, combine);
  }
  template <class T>
  __device__ inline T sum(T value) const {
    return fold(value, [](T a, T b) { return a + b; });
  }
};

// A matrix column by column.
template <class V>
struct Columns {
  using Value = V;
  V* at;
  int rows, columns;
  Long leading;
  __device__ inline V& operator()(int r, int c) const {
    return at[c * leading + r];
  }
};

// Matrix `number` of those behind each other at `data`.
template <class V>
__device__ inline Columns<V> matrix_at(void* data,
                                       Long number,
                                       Long rows,
                                       Long columns) {
  return {static_cast<V*>(data) + number * rows * columns,
          static_cast<int>(rows),
          static_cast<int>(columns),
          rows};
}

// Where a block keeps what it works on: shared memory of kElements, from which
// parts are taken; without any, what is given stays where it is. Columns begin
// at odd places, so that threads beside each other read different banks.
template <class V, int kElements>
struct Store {
  V* next;
  __device__ inline Store() {
    alignas(16) __shared__ unsigned char memory[(kElements + 1) * sizeof(V)];
    next = reinterpret_cast<V*>(memory);
  }
  template <class T>
  __device__ inline Columns<V> load(const T& team, const Columns<V>& from) {
    if constexpr (kElements == 0) {
      return from;
    } else {
      const Columns<V> held{next, from.rows, from.columns, from.rows | 1};
      next += held.leading * from.columns;
      team.tile(0, from.rows, 0, from.columns, [&](int r, int c) {
        held(r, c) = from(r, c);
      });
      return held;
    }
  }
  // What has been loaded is to be there, and no longer used by anyone.
  template <class T>
  static __device__ inline void store(const T& team,
                                      const Columns<V>& from,
                                      const Columns<V>& to) {
    if constexpr (kElements != 0) {
      team.tile(0, to.rows, 0, to.columns, [&](int r, int c) {
        to(r, c) = from(r, c);
      });
    }
  }
};

// f(number) for each matrix of this block, which waits in between.
template <class T, class F>
__device__ inline void each_matrix(const T& team, Long count, F f) {
  for (Long b = blockIdx.x; b < count; b += gridDim.x) {
    f(b);
    team.sync();
  }
}

// One triangle is read, the other becomes 0.
template <class V, int kThreads, int kElements>
__device__ inline void cholesky_kernel(const FactorCall& call) {
  using R = RealOf<V>;
  const Team<kThreads> team;
  const bool upper = call.upper != 0;
  each_matrix(team, call.count, [&](Long b) {
    Store<V, kElements> memory;
    const auto given = matrix_at<V>(call.a, b, call.rows, call.columns);
    const auto l = memory.load(team, given);
    const int n = l.rows;
    const auto entry = [&](int r, int c) -> V& {
      return upper ? l(c, r) : l(r, c);
    };
    team.sync();
    int failed = 0;
    for (int c = 0; c < n; ++c) {
      const R rest = real_part(entry(c, c));
      team.sync();
      // NaN too.
      if (!(rest > R(0))) {
        failed = c + 1;
        break;
      }
      const R root = math::sqrt(rest);
      team.each(c, n, [&](int r) {
        entry(r, c) = r == c ? V(root) : entry(r, c) / V(root);
      });
      team.sync();
      team.tile(c + 1, n, c + 1, n, [&](int r, int k) {
        if (r < k) return;
        // An upper factor holds the conjugates of what a lower one would.
        const V own = entry(r, c), other = entry(k, c);
        const V product =
            upper ? conjugate(other) * own : own * conjugate(other);
        entry(r, k) = entry(r, k) - product;
      });
      team.sync();
    }
    team.tile(0, n, 0, n, [&](int r, int c) {
      if (r < c) entry(r, c) = V(0);
    });
    team.sync();
    memory.store(team, l, given);
    if (team.lane == 0) call.info[b] = failed;
  });
}

// The row from `k` on whose pivot is the largest, the first of equals.
template <class T, class M>
__device__ inline int pivot_row(const T& team, const M& a, int k) {
  using R = RealOf<typename M::Value>;
  R largest = R(-1);
  int row = a.rows;
  team.each(k, a.rows, [&](int r) {
    const R size = pivot_size(a(r, k));
    if (size > largest) {
      largest = size;
      row = r;
    }
  });
  const R all = team.fold(largest, [](R p, R q) { return p < q ? q : p; });
  if (largest != all) row = a.rows;
  row = team.fold(row, [](int p, int q) { return p < q ? p : q; });
  return row < a.rows ? row : k;  // of NaN alone
}

// Exchanges rows and eliminates; `x` has as many rows, and goes along. The
// number of the first pivot that is 0, from 1 on.
template <class T, class M>
__device__ inline int eliminate(const T& team,
                                const M& a,
                                const M& x,
                                int* pivots) {
  using V = typename M::Value;
  const int steps = a.rows < a.columns ? a.rows : a.columns;
  int singular = 0;
  for (int k = 0; k < steps; ++k) {
    const int pivot = pivot_row(team, a, k);
    if (pivots != nullptr && team.lane == 0) pivots[k] = pivot + 1;
    const V head = a(pivot, k);
    team.sync();
    if (head == V(0)) {
      if (singular == 0) singular = k + 1;
      continue;
    }
    if (pivot != k) {
      team.each(0, a.columns + x.columns, [&](int i) {
        const M& m = i < a.columns ? a : x;
        const int c = i < a.columns ? i : i - a.columns;
        const V held = m(k, c);
        m(k, c) = m(pivot, c);
        m(pivot, c) = held;
      });
      team.sync();
    }
    team.each(k + 1, a.rows, [&](int r) { a(r, k) = a(r, k) / head; });
    team.sync();
    team.tile(k + 1, a.rows, k + 1, a.columns + x.columns, [&](int r, int i) {
      const M& m = i < a.columns ? a : x;
      const int c = i < a.columns ? i : i - a.columns;
      m(r, c) = m(r, c) - a(r, k) * m(k, c);
    });
    team.sync();
  }
  return singular;
}

// a x = x, of a triangle.
template <class T, class M>
__device__ inline void substitute(
    const T& team, const M& a, const M& x, bool upper, bool unit) {
  using V = typename M::Value;
  const int n = a.rows;
  for (int step = 0; step < n; ++step) {
    const int k = upper ? n - 1 - step : step;
    if (!unit) {
      const V own = a(k, k);
      team.each(0, x.columns, [&](int c) { x(k, c) = x(k, c) / own; });
      team.sync();
    }
    team.tile(
        upper ? 0 : k + 1, upper ? k : n, 0, x.columns, [&](int r, int c) {
          x(r, c) = x(r, c) - a(r, k) * x(k, c);
        });
    team.sync();
  }
}

// Pivots count from 1 on.
template <class V, int kThreads, int kElements>
__device__ inline void lu_kernel(const FactorCall& call) {
  const Team<kThreads> team;
  const Long steps = call.rows < call.columns ? call.rows : call.columns;
  each_matrix(team, call.count, [&](Long b) {
    Store<V, kElements> memory;
    const auto given = matrix_at<V>(call.a, b, call.rows, call.columns);
    const auto a = memory.load(team, given);
    const Columns<V> nothing{nullptr, a.rows, 0, 0};
    team.sync();
    const int singular = eliminate(team, a, nothing, call.pivots + b * steps);
    memory.store(team, a, given);
    if (team.lane == 0) call.info[b] = singular;
  });
}

// `other` begins as the right sides and ends as the solutions; `a` is used up
// where it is not held.
template <class V, int kThreads, int kElements>
__device__ inline void solve_kernel(const FactorCall& call) {
  const Team<kThreads> team;
  each_matrix(team, call.count, [&](Long b) {
    Store<V, kElements> memory;
    const auto sides = matrix_at<V>(call.other, b, call.rows, call.right);
    const auto a =
        memory.load(team, matrix_at<V>(call.a, b, call.rows, call.columns));
    const auto x = memory.load(team, sides);
    team.sync();
    const int singular = eliminate(team, a, x, nullptr);
    if (singular == 0) {
      substitute(team, a, x, /*upper=*/true, /*unit=*/false);
      memory.store(team, x, sides);
    }
    if (team.lane == 0) call.info[b] = singular;
  });
}

// Blocks beside each other have `width` of the columns each.
template <class V, int kThreads, int kElements>
__device__ inline void triangles_kernel(const FactorCall& call) {
  const Team<kThreads> team;
  const Long first = blockIdx.y * call.width, rest = call.right - first;
  each_matrix(team, call.count, [&](Long b) {
    Store<V, kElements> memory;
    Columns<V> sides = matrix_at<V>(call.other, b, call.rows, call.right);
    sides.at += first * sides.leading;
    sides.columns = static_cast<int>(rest < call.width ? rest : call.width);
    const auto a =
        memory.load(team, matrix_at<V>(call.a, b, call.rows, call.columns));
    const auto x = memory.load(team, sides);
    team.sync();
    substitute(team, a, x, call.upper != 0, call.unit != 0);
    memory.store(team, x, sides);
  });
}

// Applies I - tau v v^H to the columns of `a` from `begin` on, a thread for
// each; v has a 1 at row k and, below it, column k of `a`.
template <class T, class M, class V>
__device__ inline void reflect(
    const T& team, const M& a, int k, int begin, V tau) {
  team.each(begin, a.columns, [&](int c) {
    V sum = a(k, c);
    for (int r = k + 1; r < a.rows; ++r) {
      sum = sum + conjugate(a(r, k)) * a(r, c);
    }
    sum = sum * tau;
    a(k, c) = a(k, c) - sum;
    for (int r = k + 1; r < a.rows; ++r) a(r, c) = a(r, c) - a(r, k) * sum;
  });
}

// `a` ends as R with the reflections below; their factors are `numbers`.
template <class V, int kThreads, int kElements>
__device__ inline void reflections_kernel(const FactorCall& call) {
  using R = RealOf<V>;
  const Team<kThreads> team;
  const int steps =
      static_cast<int>(call.rows < call.columns ? call.rows : call.columns);
  each_matrix(team, call.count, [&](Long b) {
    Store<V, kElements> memory;
    const auto given = matrix_at<V>(call.a, b, call.rows, call.columns);
    const auto a = memory.load(team, given);
    V* taus = static_cast<V*>(call.numbers) + b * steps;
    team.sync();
    for (int k = 0; k < steps; ++k) {
      const V head = a(k, k);
      R below = R(0);
      team.each(k + 1, a.rows, [&](int r) { below += square_of(a(r, k)); });
      below = team.sum(below);
      V tau = V(0);
      const R real = real_part(head);
      if (below > R(0) || square_of(head) != real * real) {
        R size = math::sqrt(square_of(head) + below);
        if (real >= R(0)) size = -size;
        tau = (V(size) - head) / V(size);
        const V scale = V(1) / (head - V(size));
        team.sync();
        team.each(k, a.rows, [&](int r) {
          a(r, k) = r == k ? V(size) : a(r, k) * scale;
        });
        team.sync();
        reflect(team, a, k, k + 1, conjugate(tau));
      }
      if (team.lane == 0) taus[k] = tau;
      team.sync();
    }
    memory.store(team, a, given);
  });
}

// `a` begins with the reflections in its first columns, `right` of them, and
// ends as the first columns of their product.
template <class V, int kThreads, int kElements>
__device__ inline void orthogonal_kernel(const FactorCall& call) {
  const Team<kThreads> team;
  const int steps = static_cast<int>(call.right);
  each_matrix(team, call.count, [&](Long b) {
    Store<V, kElements> memory;
    const auto given = matrix_at<V>(call.a, b, call.rows, call.columns);
    const auto a = memory.load(team, given);
    const V* taus = static_cast<const V*>(call.numbers) + b * steps;
    team.sync();
    team.tile(0, a.rows, steps, a.columns, [&](int r, int c) {
      a(r, c) = V(r == c ? 1 : 0);
    });
    team.sync();
    for (int k = steps - 1; k >= 0; --k) {
      const V tau = taus[k];
      // What stands in row k of later columns is part of R.
      team.each(k + 1, a.columns, [&](int c) { a(k, c) = V(0); });
      team.sync();
      reflect(team, a, k, k + 1, tau);
      team.sync();
      team.each(0, a.rows, [&](int r) {
        a(r, k) = r < k ? V(0) : r == k ? V(1) - tau : V(0) - tau * a(r, k);
      });
      team.sync();
    }
    memory.store(team, a, given);
  });
}

}  // namespace taeda
