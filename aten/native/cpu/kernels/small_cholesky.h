// Cholesky factors, and systems of triangular matrices.
#pragma once

#include <taeda/aten/native/cpu/kernels/matrix_blocks.h>

TAEDA_ISA_BEGIN

namespace {

struct Cholesky {
  template <class T, int N>
  static void run(const SmallBatch<T>& batch) {
    using L = Lane<T>;
    const int n = N == 0 ? batch.rows : N;
    LaneNumber<T> a[kRoom<N> * kRoom<N>];
    for (int64_t i = 0; i < batch.count; i += L::kCount) {
      load<T>(a, batch.a, i, batch.count, n, n);
      typename L::M failed = factor<T>(a, n);
      store<T>(batch.first, a, i, batch.count, n, n);
      store_report<T>(batch.report, L::whole(0), failed, i, batch.count);
    }
  }

  // Column j of A, rows i .. i + Count - 1, less what the columns of L before
  // it account for; sums stay in registers.
  template <class T, int Count>
  TAEDA_MATRIX_FN void subtract(LaneNumber<T>* a, int n, int i, int j) {
    using L = Lane<T>;
    LaneNumber<T> sums[Count];
    for (int c = 0; c < Count; ++c) sums[c] = a[j * n + i + c];
    for (int k = 0; k < j; ++k) {
      LaneNumber<T> factor = L::conj(a[k * n + j]);
      for (int c = 0; c < Count; ++c) {
        sums[c] = L::sub_mul(sums[c], a[k * n + i + c], factor);
      }
    }
    for (int c = 0; c < Count; ++c) a[j * n + i + c] = sums[c];
  }

  // L in place, zeros above it. Lanes where a diagonal element is not positive
  // or not finite.
  template <class T>
  TAEDA_MATRIX_FN typename Lane<T>::M factor(LaneNumber<T>* a, int n) {
    using L = Lane<T>;
    typename L::M failed{};
    for (int j = 0; j < n; ++j) {
      LaneNumber<T>* column = a + j * n;
      int i = j;
      for (; i + 4 <= n; i += 4) subtract<T, 4>(a, n, i, j);
      for (; i < n; ++i) subtract<T, 1>(a, n, i, j);
      typename L::V pivot = L::real(column[j]);
      failed |= ~((pivot > 0) & (pivot < L::kHuge));
      typename L::V root = L::sqrt(pivot), inverse = 1 / root;
      column[j] = L::from(root);
      for (i = 0; i < j; ++i) column[i] = LaneNumber<T>{};
      for (i = j + 1; i < n; ++i) column[i] = L::times(column[i], inverse);
    }
    return failed;
  }
};

// 1 / L_kk, and the lanes where that is not a good number.
template <class T>
TAEDA_MATRIX_FN typename Lane<T>::M invert_diagonal(const LaneNumber<T>* a,
                                                    int n,
                                                    LaneNumber<T>* inverses) {
  using L = Lane<T>;
  typename L::M bad{};
  for (int k = 0; k < n; ++k) {
    typename L::V size = L::size(a[k * n + k]);
    bad |= ~((size >= L::kLeast) & (size <= L::kMost));
    inverses[k] = L::inverse(a[k * n + k]);
  }
  return bad;
}

// L X = X in place, for Count columns of X: sums stay in registers, and each
// element of L is read once for all columns.
template <class T, int Count>
TAEDA_MATRIX_FN void forward(const LaneNumber<T>* a,
                             int n,
                             LaneNumber<T>* x,
                             const LaneNumber<T>* inverses) {
  using L = Lane<T>;
  for (int i = 0; i < n; ++i) {
    LaneNumber<T> sums[Count];
    for (int c = 0; c < Count; ++c) sums[c] = x[c * n + i];
    for (int k = 0; k < i; ++k) {
      LaneNumber<T> factor = a[k * n + i];
      for (int c = 0; c < Count; ++c) {
        sums[c] = L::sub_mul(sums[c], factor, x[c * n + k]);
      }
    }
    for (int c = 0; c < Count; ++c) {
      x[c * n + i] =
          inverses == nullptr ? sums[c] : L::mul(sums[c], inverses[i]);
    }
  }
}

struct Triangular {
  template <class T, int N>
  static void run(const SmallBatch<T>& batch) {
    using L = Lane<T>;
    const int n = N == 0 ? batch.rows : N, right = batch.right;
    LaneNumber<T> a[kRoom<N> * kRoom<N>], b[kRoom<N> * kMostRows];
    LaneNumber<T> inverses[kRoom<N>];
    for (int64_t i = 0; i < batch.count; i += L::kCount) {
      load<T>(a, batch.a, i, batch.count, n, n);
      load<T>(b, batch.b, i, batch.count, n, right);
      typename L::M bad = invert_diagonal<T>(a, n, inverses);
      if (batch.unit) bad = typename L::M{};
      const LaneNumber<T>* scale = batch.unit ? nullptr : inverses;
      int j = 0;
      for (; j + 4 <= right; j += 4) forward<T, 4>(a, n, b + j * n, scale);
      for (; j < right; ++j) forward<T, 1>(a, n, b + j * n, scale);
      bad |= not_finite<T>(b, n * right);
      store<T>(batch.first, b, i, batch.count, n, right);
      store_report<T>(batch.report, L::whole(0), bad, i, batch.count);
    }
  }
};

}  // namespace

TAEDA_ISA_END
