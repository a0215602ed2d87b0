// LU decompositions with partial pivoting, and what follows from them.
#pragma once

#include <taeda/aten/math/log.h>
#include <taeda/aten/native/cpu/kernels/matrix_blocks.h>

TAEDA_ISA_BEGIN

namespace {

// What elimination finds out for each lane.
template <class T>
struct LuState {
  typename Lane<T>::M info{}, undecided{};
  typename Lane<T>::M
      odd{};  // whether rows were exchanged an odd number of times
};

// The rows k and `pivot` of Count columns of a change places.
template <class T, int Count>
TAEDA_MATRIX_FN void exchange_columns(LaneNumber<T>* a,
                                      int rows,
                                      int k,
                                      typename Lane<T>::M pivot) {
  using L = Lane<T>;
  LaneNumber<T> top[Count], chosen[Count];
  for (int j = 0; j < Count; ++j) chosen[j] = top[j] = a[j * rows + k];
  for (int i = k + 1; i < rows; ++i) {
    typename L::M here = pivot == L::whole(i);
    for (int j = 0; j < Count; ++j) {
      LaneNumber<T> x = a[j * rows + i];
      chosen[j] = L::pick(here, x, chosen[j]);
      a[j * rows + i] = L::pick(here, top[j], x);
    }
  }
  for (int j = 0; j < Count; ++j) a[j * rows + k] = chosen[j];
}

// The same of the columns start .. columns - 1, some at a time so that masks
// are computed less often.
template <class T>
TAEDA_MATRIX_FN void exchange(LaneNumber<T>* a,
                              int rows,
                              int k,
                              typename Lane<T>::M pivot,
                              int start,
                              int columns) {
  int j = start;
  for (; j + 4 <= columns; j += 4) {
    exchange_columns<T, 4>(a + j * rows, rows, k, pivot);
  }
  for (; j < columns; ++j) {
    exchange_columns<T, 1>(a + j * rows, rows, k, pivot);
  }
}

// Gaussian elimination of a (rows x columns) in place, applied to b (rows x
// right) as well. Exchanges reach the columns of a from `keep * k` on: with
// keep = 0 all of L is put in order. inverses[k] becomes 1 / U_kk, 0 for 0.
template <class T>
TAEDA_MATRIX_FN LuState<T> eliminate(LaneNumber<T>* a,
                                     int rows,
                                     int columns,
                                     int keep,
                                     LaneNumber<T>* b,
                                     int right,
                                     LaneNumber<T>* inverses,
                                     typename Lane<T>::M* pivots) {
  using L = Lane<T>;
  using S = LaneNumber<T>;
  LuState<T> state;
  int steps = rows < columns ? rows : columns;
  for (int k = 0; k < steps; ++k) {
    typename L::V best = L::size(a[k * rows + k]);
    typename L::M pivot = L::whole(k);
    for (int i = k + 1; i < rows; ++i) {
      typename L::V size = L::size(a[k * rows + i]);
      pivot = size > best ? L::whole(i) : pivot;
      best = L::larger(size, best);
    }
    pivots[k] = pivot;
    state.odd ^= pivot != L::whole(k);
    exchange<T>(a, rows, k, pivot, keep * k, columns);
    if (right > 0) exchange<T>(b, rows, k, pivot, 0, right);
    typename L::M zero = best == 0;
    state.info = zero & (state.info == 0) ? L::whole(k + 1) : state.info;
    state.undecided |= ~zero & ~((best >= L::kLeast) & (best <= L::kMost));
    S inverse = L::pick(zero, S{}, L::inverse(a[k * rows + k]));
    inverses[k] = inverse;
    for (int i = k + 1; i < rows; ++i) {
      a[k * rows + i] = L::mul(a[k * rows + i], inverse);
    }
    for (int j = k + 1; j < columns; ++j) {
      S top = a[j * rows + k];
      for (int i = k + 1; i < rows; ++i) {
        a[j * rows + i] = L::sub_mul(a[j * rows + i], a[k * rows + i], top);
      }
    }
    for (int j = 0; j < right; ++j) {
      S top = b[j * rows + k];
      for (int i = k + 1; i < rows; ++i) {
        b[j * rows + i] = L::sub_mul(b[j * rows + i], a[k * rows + i], top);
      }
    }
  }
  return state;
}

struct Lu {
  template <class T, int N>
  static void run(const SmallBatch<T>& batch) {
    using L = Lane<T>;
    const int m = N == 0 ? batch.rows : N, n = N == 0 ? batch.columns : N;
    const int k = m < n ? m : n;
    LaneNumber<T> a[kRoom<N> * kRoom<N>], inverses[kRoom<N>];
    typename L::M pivots[kRoom<N>];
    for (int64_t i = 0; i < batch.count; i += L::kCount) {
      load<T>(a, batch.a, i, batch.count, m, n);
      typename L::M bad = not_finite<T>(a, m * n);
      auto state = eliminate<T>(a, m, n, 0, nullptr, 0, inverses, pivots);
      store<T>(batch.first, a, i, batch.count, m, n);
      store_report<T>(
          batch.report, state.info, state.undecided | bad, i, batch.count);
      for (int l = 0; l < L::kCount && i + l < batch.count; ++l) {
        for (int p = 0; p < k; ++p) {
          batch.pivots[(i + l) * k + p] = static_cast<int>(pivots[p][l]) + 1;
        }
      }
    }
  }
};

// A diagonal's product, its sign by the exchanges.
template <class T>
TAEDA_MATRIX_FN LaneNumber<T> signed_one(const LuState<T>& state) {
  using L = Lane<T>;
  return L::from(state.odd ? L::splat(-1) : L::splat(1));
}

// The determinant, or its sign and the logarithm of its magnitude.
template <bool Log>
struct Det {
  template <class T, int N>
  static void run(const SmallBatch<T>& batch) {
    using L = Lane<T>;
    const int n = N == 0 ? batch.rows : N;
    LaneNumber<T> a[kRoom<N> * kRoom<N>], inverses[kRoom<N>];
    typename L::M pivots[kRoom<N>];
    for (int64_t i = 0; i < batch.count; i += L::kCount) {
      load<T>(a, batch.a, i, batch.count, n, n);
      typename L::M bad = not_finite<T>(a, n * n);
      auto state = eliminate<T>(a, n, n, 1, nullptr, 0, inverses, pivots);
      LaneNumber<T> product = signed_one<T>(state);
      typename L::V logs{};
      for (int k = 0; k < n; ++k) {
        LaneNumber<T> factor = a[k * n + k];
        if constexpr (Log) {
          typename L::V size = magnitude<T>(factor);
          factor = direction<T>(factor, size);
          logs += logarithm<T>(size);
        }
        product = L::mul(product, factor);
      }
      store_values<T>(batch.first.data, product, i, batch.count);
      if constexpr (Log) {
        store_values<typename L::Real>(batch.numbers, logs, i, batch.count);
      }
      store_report<T>(
          batch.report, L::whole(0), state.undecided | bad, i, batch.count);
    }
  }

  // |x|; squares of complex pivots are representable in lanes that are decided.
  template <class T>
  TAEDA_MATRIX_FN typename Lane<T>::V magnitude(const LaneNumber<T>& x) {
    if constexpr (!Lane<T>::kComplex) return Lane<T>::abs(x);
    return Lane<T>::sqrt(Lane<T>::square(x));
  }

  // x / |x|, exactly 1 or -1 for real numbers; 0 for 0.
  template <class T>
  TAEDA_MATRIX_FN LaneNumber<T> direction(const LaneNumber<T>& x,
                                          typename Lane<T>::V size) {
    using L = Lane<T>;
    if constexpr (L::kComplex) {
      return L::times(x, size == 0 ? L::splat(0) : 1 / size);
    } else {
      return size == 0 ? L::splat(0) : L::signed_as(L::splat(1), x);
    }
  }

  template <class T>
  TAEDA_MATRIX_FN typename Lane<T>::V logarithm(typename Lane<T>::V x) {
    for (int l = 0; l < kLaneCount<T>; ++l) x[l] = math::log(x[l]);
    return x;
  }
};

struct Solve {
  template <class T, int N>
  static void run(const SmallBatch<T>& batch) {
    using L = Lane<T>;
    const int n = N == 0 ? batch.rows : N, right = batch.right;
    LaneNumber<T> a[kRoom<N> * kRoom<N>], b[kRoom<N> * kMostRows];
    LaneNumber<T> inverses[kRoom<N>];
    typename L::M pivots[kRoom<N>];
    for (int64_t i = 0; i < batch.count; i += L::kCount) {
      load<T>(a, batch.a, i, batch.count, n, n);
      load<T>(b, batch.b, i, batch.count, n, right);
      typename L::M bad = not_finite<T>(a, n * n) | not_finite<T>(b, n * right);
      auto state = eliminate<T>(a, n, n, 1, b, right, inverses, pivots);
      int j = 0;
      for (; j + 4 <= right; j += 4) back<T, 4>(a, n, b + j * n, inverses);
      for (; j < right; ++j) back<T, 1>(a, n, b + j * n, inverses);
      store<T>(batch.first, b, i, batch.count, n, right);
      store_report<T>(
          batch.report, state.info, state.undecided | bad, i, batch.count);
    }
  }

  // U X = X in place, for Count columns of X.
  template <class T, int Count>
  TAEDA_MATRIX_FN void back(const LaneNumber<T>* a,
                            int n,
                            LaneNumber<T>* x,
                            const LaneNumber<T>* inverses) {
    using L = Lane<T>;
    for (int i = n - 1; i >= 0; --i) {
      LaneNumber<T> sums[Count];
      for (int c = 0; c < Count; ++c) sums[c] = x[c * n + i];
      for (int k = i + 1; k < n; ++k) {
        LaneNumber<T> factor = a[k * n + i];
        for (int c = 0; c < Count; ++c) {
          sums[c] = L::sub_mul(sums[c], factor, x[c * n + k]);
        }
      }
      for (int c = 0; c < Count; ++c) {
        x[c * n + i] = L::mul(sums[c], inverses[i]);
      }
    }
  }
};

}  // namespace

TAEDA_ISA_END
