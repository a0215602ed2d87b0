// Eigenvalues of Hermitian matrices: Householder reflections to tridiagonal
// form, then the implicit QR iteration with Wilkinson's shift. Sources: G. H.
// Golub and C. F. Van Loan, "Matrix Computations", 4th edition, 8.3.
#pragma once

#include <taeda/aten/native/cpu/kernels/matrix_sweeps.h>

TAEDA_ISA_BEGIN

namespace {

// A = Q T Q^H from the lower triangle: T in d and e, the reflections below the
// diagonal of a and in tau.
template <class T>
TAEDA_MATRIX_FN void tridiagonalise(LaneNumber<T>* a,
                                    int n,
                                    typename Lane<T>::V* d,
                                    typename Lane<T>::V* e,
                                    LaneNumber<T>* tau) {
  using L = Lane<T>;
  using S = LaneNumber<T>;
  S w[kMostRows];
  for (int k = 0; k + 1 < n; ++k) {
    d[k] = L::real(a[k * n + k]);
    S* v = a + k * n;
    S factor = reflect<T>(v + k + 1, n - k - 1, 1, /*flush=*/true).tau;
    tau[k] = factor;
    e[k] = L::real(v[k + 1]);
    v[k + 1] = L::from(L::splat(1));
    // w = tau A v - (tau / 2) (w^H v) v; A becomes A - v w^H - w v^H.
    for (int i = k + 1; i < n; ++i) w[i] = S{};
    for (int j = k + 1; j < n; ++j) {
      const S* column = a + j * n;
      S below = L::mul(L::from(L::real(column[j])), v[j]);
      for (int i = j + 1; i < n; ++i) {
        w[i] = L::add_mul(w[i], column[i], v[j]);
        below = L::add_mul(below, L::conj(column[i]), v[i]);
      }
      w[j] = w[j] + below;
    }
    S product{};
    for (int i = k + 1; i < n; ++i) {
      w[i] = L::mul(w[i], factor);
      product = L::add_mul(product, L::conj(w[i]), v[i]);
    }
    S half = L::mul(L::times(factor, L::splat(0.5)), product);
    for (int i = k + 1; i < n; ++i) w[i] = L::sub_mul(w[i], half, v[i]);
    for (int j = k + 1; j < n; ++j) {
      S wj = L::conj(w[j]), vj = L::conj(v[j]);
      for (int i = j; i < n; ++i) {
        S x = L::sub_mul(a[j * n + i], v[i], wj);
        a[j * n + i] = L::sub_mul(x, w[i], vj);
      }
    }
  }
  d[n - 1] = L::real(a[n * n - 1]);
  e[n - 1] = L::splat(0);
}

// One step from block.first to block.last; q's columns turn along.
template <class T>
TAEDA_MATRIX_FN void tridiagonal_sweep(
    const Block<typename Lane<T>::Real>& block,
    typename Lane<T>::V* d,
    typename Lane<T>::V* e,
    int n,
    LaneNumber<T>* q) {
  using R = typename Lane<T>::Real;
  using L = Lane<R>;
  using V = typename L::V;
  V shift = wilkinson_shift<R>(at<R>(d, n, block.high, -1),
                               at<R>(e, n, block.high, -1),
                               at<R>(d, n, block.high, 0));
  V x{}, z{};
  for (int k = block.first; k < block.last; ++k) {
    typename L::M start = block.low == L::whole(k);
    typename L::M on = (block.low <= L::whole(k)) & (block.high > L::whole(k));
    x = start ? d[k] - shift : x;
    z = start ? e[k] : z;
    Rotation<R> g = rotation<R>(x, z, on);
    if (k > block.first) e[k - 1] = on & ~start ? g.r : e[k - 1];
    V cc = g.c * g.c, ss = g.s * g.s, cs = g.c * g.s;
    V above = d[k], below = d[k + 1], beside = e[k];
    d[k] = cc * above + 2 * cs * beside + ss * below;
    d[k + 1] = ss * above - 2 * cs * beside + cc * below;
    e[k] = cs * (below - above) + (cc - ss) * beside;
    x = e[k];
    z = g.s * e[k + 1];
    e[k + 1] = g.c * e[k + 1];
    rotate<T>(q + k * n, q + (k + 1) * n, n, g.c, g.s);
  }
}

// Lanes whose iteration did not end.
template <class T>
TAEDA_MATRIX_FN typename Lane<T>::M diagonalise(typename Lane<T>::V* d,
                                                typename Lane<T>::V* e,
                                                int n,
                                                LaneNumber<T>* q) {
  using R = typename Lane<T>::Real;
  for (int step = 0; step < kSweeps * n; ++step) {
    Block<R> block = next_block<R>(d, e, n);
    if (block.last == 0) return block.high;
    tridiagonal_sweep<T>(block, d, e, n, q);
  }
  return next_block<R>(d, e, n).high > 0;
}

struct Eigh {
  template <class T, int N>
  static void run(const SmallBatch<T>& batch) {
    using L = Lane<T>;
    using R = typename L::Real;
    const int n = N == 0 ? batch.rows : N;
    constexpr int kSize = kRoom<N>;
    LaneNumber<T> a[kSize * kSize], q[kSize * kSize], tau[kSize];
    typename L::V d[kSize], e[kSize];
    typename L::M place[kSize];
    for (int64_t i = 0; i < batch.count; i += L::kCount) {
      load<T>(a, batch.a, i, batch.count, n, n);
      drop_upper<T>(a, n);
      PowerScale<T> scale = scale_by_power<T>(a, n * n);
      tridiagonalise<T>(a, n, d, e, tau);
      accumulate<T>(a, n, n - 1, 1, tau, q, n);
      typename L::M undecided = diagonalise<T>(d, e, n, q);
      sorted_places<R>(d, n, place);
      for (int k = 0; k < n; ++k) d[k] *= scale.up;
      store_sorted<R>(batch.numbers, d, place, i, batch.count, n);
      store<T>(batch.first, q, i, batch.count, n, n, place);
      store_report<T>(
          batch.report, L::whole(0), undecided | scale.bad, i, batch.count);
    }
  }

  // What is not read counts as 0, imaginary parts of the diagonal too.
  template <class T>
  TAEDA_MATRIX_FN void drop_upper(LaneNumber<T>* a, int n) {
    using L = Lane<T>;
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < j; ++i) a[j * n + i] = LaneNumber<T>{};
      a[j * n + j] = L::from(L::real(a[j * n + j]));
    }
  }
};

}  // namespace

TAEDA_ISA_END
