// QR decompositions by Householder reflections, with LAPACK's signs.
#pragma once

#include <taeda/aten/native/cpu/kernels/matrix_reflections.h>

TAEDA_ISA_BEGIN

namespace {

struct Qr {
  template <class T, int N>
  static void run(const SmallBatch<T>& batch) {
    using L = Lane<T>;
    const int m = N == 0 ? batch.rows : N, n = N == 0 ? batch.columns : N;
    const int k = m < n ? m : n;
    LaneNumber<T> a[kRoom<N> * kRoom<N>], q[kRoom<N> * kRoom<N>];
    LaneNumber<T> tau[kRoom<N>];
    for (int64_t i = 0; i < batch.count; i += L::kCount) {
      load<T>(a, batch.a, i, batch.count, m, n);
      typename L::M bad = not_finite<T>(a, m * n);
      for (int c = 0; c < k; ++c) {
        LaneNumber<T>* v = a + c * m + c;
        Reflection<T> h = reflect<T>(v, m - c, 1, /*flush=*/false);
        tau[c] = h.tau;
        bad |= h.bad;
        for (int j = c + 1; j < n; ++j) {
          apply<T>(v, m - c, L::conj(h.tau), a + j * m + c);
        }
      }
      if (batch.first.data != nullptr) {
        accumulate<T>(a, m, k, 0, tau, q, batch.right);
        store<T>(batch.first, q, i, batch.count, m, batch.right);
      }
      store_upper<T>(batch, a, i, m, n);
      store_report<T>(batch.report, L::whole(0), bad, i, batch.count);
    }
  }

  // R with as many rows as Q has columns.
  template <class T>
  TAEDA_MATRIX_FN void store_upper(const SmallBatch<T>& batch,
                                   LaneNumber<T>* a,
                                   int64_t first,
                                   int m,
                                   int n) {
    int rows = batch.right;
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < rows; ++i) {
        a[j * rows + i] = i <= j ? a[j * m + i] : LaneNumber<T>{};
      }
    }
    store<T>(batch.second, a, first, batch.count, rows, n);
  }
};

}  // namespace

TAEDA_ISA_END
