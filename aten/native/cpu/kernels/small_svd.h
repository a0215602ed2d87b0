// Singular values: Householder reflections to bidiagonal form, then the
// implicit QR iteration on it. Sources: G. H. Golub and C. Reinsch, "Singular
// value decomposition and least squares solutions" (1970); the shift is left
// out where a diagonal number is negligible, after J. Demmel and W. Kahan,
// "Accurate singular values of bidiagonal matrices" (1990).
#pragma once

#include <taeda/aten/native/cpu/kernels/matrix_sweeps.h>

TAEDA_ISA_BEGIN

namespace {

// A = U B V^H, for m >= n: the diagonal of B in d, the numbers above it in e;
// the reflections of U below a's diagonal, those of V in the columns of
// `right`, from row i + 1 of column i on.
template <class T>
TAEDA_MATRIX_FN void bidiagonalise(LaneNumber<T>* a,
                                   int m,
                                   int n,
                                   typename Lane<T>::V* d,
                                   typename Lane<T>::V* e,
                                   LaneNumber<T>* tau,
                                   LaneNumber<T>* right,
                                   LaneNumber<T>* right_tau) {
  using L = Lane<T>;
  using S = LaneNumber<T>;
  for (int k = 0; k < n; ++k) {
    S* v = a + k * m + k;
    S factor = reflect<T>(v, m - k, 1, /*flush=*/true).tau;
    tau[k] = factor;
    d[k] = L::real(v[0]);
    for (int j = k + 1; j < n; ++j) {
      apply<T>(v, m - k, L::conj(factor), a + j * m + k);
    }
    e[k] = L::splat(0);
    if (k + 1 == n) return;
    // The row's adjoint u gives G with row G = (e, 0, ...); A becomes A G.
    S* u = right + k * n + k + 1;
    for (int j = k + 1; j < n; ++j) u[j - k - 1] = L::conj(a[j * m + k]);
    S turn = reflect<T>(u, n - k - 1, 1, /*flush=*/true).tau;
    right_tau[k] = turn;
    e[k] = L::real(u[0]);
    u[0] = L::from(L::splat(1));
    S sums[kMostRows];
    for (int i = k + 1; i < m; ++i) sums[i] = S{};
    for (int j = k + 1; j < n; ++j) {
      for (int i = k + 1; i < m; ++i) {
        sums[i] = L::add_mul(sums[i], a[j * m + i], u[j - k - 1]);
      }
    }
    for (int j = k + 1; j < n; ++j) {
      S weight = L::mul(turn, L::conj(u[j - k - 1]));
      for (int i = k + 1; i < m; ++i) {
        a[j * m + i] = L::sub_mul(a[j * m + i], sums[i], weight);
      }
    }
  }
}

// The shift of each lane: 0 where a diagonal number of its block is negligible,
// because then B^H B splits there, which one step without shift brings about.
template <class T>
TAEDA_MATRIX_FN typename Lane<T>::V bidiagonal_shift(
    const Block<T>& block,
    const typename Lane<T>::V* d,
    const typename Lane<T>::V* e,
    int n) {
  using L = Lane<T>;
  using V = typename L::V;
  V last = at<T>(d, n, block.high, 0), before = at<T>(d, n, block.high, -1);
  V beside = at<T>(e, n, block.high, -1), above = at<T>(e, n, block.high, -2);
  above = block.high - block.low > 1 ? above : L::splat(0);
  V product = before * beside;
  typename L::M none = product == 0;
  V shift = wilkinson_shift<T>(before * before + above * above,
                               none ? L::splat(1) : product,
                               last * last + beside * beside);
  V largest{};
  for (int k = 0; k < n; ++k) largest = L::larger(L::abs(d[k]), largest);
  for (int k = 0; k < n; ++k) {
    typename L::M inside =
        (block.low <= L::whole(k)) & (block.high >= L::whole(k));
    none |= inside & (L::abs(d[k]) <= 4 * L::kEps * largest);
  }
  return none | ~(shift > 0) ? L::splat(0) : shift;
}

template <class T>
struct SingularVectors {
  LaneNumber<T>* u;
  int rows;  // of u
  LaneNumber<T>* v;
};

template <class T>
TAEDA_MATRIX_FN void bidiagonal_sweep(
    const Block<typename Lane<T>::Real>& block,
    typename Lane<T>::V* d,
    typename Lane<T>::V* e,
    int n,
    const SingularVectors<T>& vectors) {
  using R = typename Lane<T>::Real;
  using L = Lane<R>;
  using V = typename L::V;
  V shift = bidiagonal_shift<R>(block, d, e, n);
  V x{}, z{};
  for (int k = block.first; k < block.last; ++k) {
    typename L::M start = block.low == L::whole(k);
    typename L::M on = (block.low <= L::whole(k)) & (block.high > L::whole(k));
    // The first column of B^H B minus the shift, over d where that is 0.
    typename L::M plain = shift == 0;
    x = start ? (plain ? d[k] : d[k] * d[k] - shift) : x;
    z = start ? (plain ? e[k] : d[k] * e[k]) : z;
    Rotation<R> g = rotation<R>(x, z, on);
    if (k > block.first) e[k - 1] = on & ~start ? g.r : e[k - 1];
    V beside = g.c * e[k] - g.s * d[k];
    V top = g.c * d[k] + g.s * e[k];
    V below = g.s * d[k + 1], low = g.c * d[k + 1];
    Rotation<R> h = rotation<R>(top, below, on);
    d[k] = on ? h.r : d[k];
    e[k] = h.c * beside + h.s * low;
    d[k + 1] = h.c * low - h.s * beside;
    x = e[k];
    z = h.s * e[k + 1];
    e[k + 1] = h.c * e[k + 1];
    rotate<T>(vectors.v + k * n, vectors.v + (k + 1) * n, n, g.c, g.s);
    int m = vectors.rows;
    rotate<T>(vectors.u + k * m, vectors.u + (k + 1) * m, m, h.c, h.s);
  }
}

// Lanes whose iteration did not end.
template <class T>
TAEDA_MATRIX_FN typename Lane<T>::M diagonalise_bidiagonal(
    typename Lane<T>::V* d,
    typename Lane<T>::V* e,
    int n,
    const SingularVectors<T>& vectors) {
  using R = typename Lane<T>::Real;
  for (int step = 0; step < kSweeps * n; ++step) {
    Block<R> block = next_block<R>(d, e, n);
    if (block.last == 0) return block.high;
    bidiagonal_sweep<T>(block, d, e, n, vectors);
  }
  return next_block<R>(d, e, n).high > 0;
}

// Singular values are positive: what is negative turns with its column of U.
template <class T>
TAEDA_MATRIX_FN void make_positive(typename Lane<T>::V* d,
                                   int n,
                                   const SingularVectors<T>& vectors) {
  using L = Lane<T>;
  for (int k = 0; k < n; ++k) {
    auto sign = d[k] < 0 ? L::Base::splat(-1) : L::Base::splat(1);
    d[k] *= sign;
    for (int i = 0; i < vectors.rows; ++i) {
      LaneNumber<T>& x = vectors.u[k * vectors.rows + i];
      x = L::times(x, sign);
    }
  }
}

struct Svd {
  template <class T, int N>
  static void run(const SmallBatch<T>& batch) {
    using L = Lane<T>;
    using R = typename L::Real;
    const int m = N == 0 ? batch.rows : N, n = N == 0 ? batch.columns : N;
    constexpr int kSize = kRoom<N>;
    LaneNumber<T> a[kSize * kSize], u[kSize * kSize];
    LaneNumber<T> packed[kSize * kSize], v[kSize * kSize];
    LaneNumber<T> tau[kSize], right_tau[kSize];
    typename L::V d[kSize], e[kSize];
    typename L::M place[kSize];
    const SingularVectors<T> vectors = {u, m, v};
    for (int64_t i = 0; i < batch.count; i += L::kCount) {
      load<T>(a, batch.a, i, batch.count, m, n);
      PowerScale<T> scale = scale_by_power<T>(a, m * n);
      bidiagonalise<T>(a, m, n, d, e, tau, packed, right_tau);
      accumulate<T>(a, m, n, 0, tau, u, batch.right);
      accumulate<T>(packed, n, n - 1, 1, right_tau, v, n);
      typename L::M undecided = diagonalise_bidiagonal<T>(d, e, n, vectors);
      make_positive<T>(d, n, vectors);
      falling_places<R>(d, n, place);
      for (int k = 0; k < n; ++k) d[k] *= scale.up;
      store_sorted<R>(batch.numbers, d, place, i, batch.count, n);
      for (int k = n; k < batch.right; ++k) place[k] = L::whole(k);
      store<T>(batch.first, u, i, batch.count, m, batch.right, place);
      store<T>(batch.second, v, i, batch.count, n, n, place);
      store_report<T>(
          batch.report, L::whole(0), undecided | scale.bad, i, batch.count);
    }
  }

  template <class T>
  TAEDA_MATRIX_FN void falling_places(const typename Lane<T>::V* d,
                                      int n,
                                      typename Lane<T>::M* place) {
    typename Lane<T>::V negative[kMostRows];
    for (int k = 0; k < n; ++k) negative[k] = -d[k];
    sorted_places<T>(negative, n, place);
  }
};

}  // namespace

TAEDA_ISA_END
