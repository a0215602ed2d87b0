// Householder reflections and plane rotations of matrices in lanes.
#pragma once

#include <taeda/aten/native/cpu/kernels/matrix_blocks.h>

TAEDA_ISA_BEGIN

namespace {

// H = I - tau v v^H with v_0 = 1, as LAPACK defines them.
template <class T>
struct Reflection {
  LaneNumber<T> tau;
  typename Lane<T>::M bad;  // lanes whose squares are not representable
};

// H with H^H x = (beta, 0, ..., 0), beta real and of the other sign than the
// real part of x_0. x becomes (beta, v_1, v_2, ...). H = I where x has that
// form already. Vectors too small to be squared count as (x_0, 0, ...), real,
// where `flush`, and are bad otherwise.
template <class T>
TAEDA_MATRIX_FN Reflection<T> reflect(LaneNumber<T>* x,
                                      int n,
                                      int step,
                                      bool flush) {
  using L = Lane<T>;
  using V = typename L::V;
  LaneNumber<T> alpha = x[0];
  V tail{}, largest = L::abs(L::imag(alpha));
  for (int i = 1; i < n; ++i) {
    tail += L::square(x[i * step]);
    largest = L::larger(L::size(x[i * step]), largest);
  }
  V square = L::square(alpha) + tail;
  constexpr typename L::Real low = L::kLow * L::kLow;
  constexpr typename L::Real high = L::kHigh * L::kHigh;
  typename L::M trivial = largest == 0;
  typename L::M fits = (square >= low) & (square <= high);
  if (flush) trivial |= square < low;
  V norm = L::sqrt(square);
  V beta = trivial ? L::real(alpha) : -L::signed_as(norm, L::real(alpha));
  // tau = (beta - alpha) / beta, v = x / (alpha - beta).
  LaneNumber<T> shift = alpha - L::from(beta);
  V safe = trivial ? L::splat(1) : beta;
  LaneNumber<T> tau = L::times(shift, -1 / safe);
  LaneNumber<T> scale = L::inverse(L::pick(trivial, L::from(safe), shift));
  tau = L::pick(trivial, LaneNumber<T>{}, tau);
  scale = L::pick(trivial, LaneNumber<T>{}, scale);
  x[0] = L::from(beta);
  for (int i = 1; i < n; ++i) x[i * step] = L::mul(x[i * step], scale);
  return {tau, ~(trivial | fits)};
}

// y becomes y - tau v (v^H y), for v_0 = 1 and the rest of v below v[0].
template <class T>
TAEDA_MATRIX_FN void apply(const LaneNumber<T>* v,
                           int n,
                           LaneNumber<T> tau,
                           LaneNumber<T>* y) {
  using L = Lane<T>;
  LaneNumber<T> sum = y[0];
  for (int i = 1; i < n; ++i) sum = L::add_mul(sum, L::conj(v[i]), y[i]);
  sum = L::mul(tau, sum);
  y[0] = y[0] - sum;
  for (int i = 1; i < n; ++i) y[i] = L::sub_mul(y[i], v[i], sum);
}

// The first `columns` columns of H_0 H_1 ... H_k-1; reflection i acts on rows
// i + offset and below, its v standing in column i of `packed`.
template <class T>
TAEDA_MATRIX_FN void accumulate(const LaneNumber<T>* packed,
                                int rows,
                                int k,
                                int offset,
                                const LaneNumber<T>* tau,
                                LaneNumber<T>* q,
                                int columns) {
  using L = Lane<T>;
  for (int j = 0; j < columns; ++j) {
    for (int i = 0; i < rows; ++i) {
      q[j * rows + i] = L::from(L::splat(i == j ? 1 : 0));
    }
  }
  for (int i = k - 1; i >= 0; --i) {
    int start = i + offset;
    const LaneNumber<T>* v = packed + i * rows + start;
    for (int j = start; j < columns; ++j) {
      apply<T>(v, rows - start, tau[i], q + j * rows + start);
    }
  }
}

// c and s with c x + s y = r, c y = s x, in the lanes `on`; c = 1 elsewhere.
template <class T>
struct Rotation {
  typename Lane<T>::V c, s, r;
};

template <class T>
TAEDA_MATRIX_FN Rotation<T> rotation(typename Lane<T>::V x,
                                     typename Lane<T>::V y,
                                     typename Lane<T>::M on) {
  using L = Lane<T>;
  typename L::V square = x * x + y * y;
  on &= square >= L::kLow * L::kLow;
  square = on ? square : L::splat(1);
  typename L::V r = L::sqrt(square), inverse = 1 / r;
  return {on ? x * inverse : L::splat(1),
          on ? y * inverse : L::splat(0),
          on ? r : x};
}

// The columns a and b become c a + s b and c b - s a.
template <class T, class V>
TAEDA_MATRIX_FN void rotate(
    LaneNumber<T>* a, LaneNumber<T>* b, int n, V c, V s) {
  using L = Lane<T>;
  for (int i = 0; i < n; ++i) {
    LaneNumber<T> x = a[i], y = b[i];
    a[i] = L::times(x, c) + L::times(y, s);
    b[i] = L::times(y, c) - L::times(x, s);
  }
}

// A power of two that brings the largest size in a matrix to [1, 2), and its
// inverse; 0 for a matrix of zeros. Lanes are bad where there is none, because
// a number is infinite, NaN or as large or small as numbers get.
template <class T>
struct PowerScale {
  typename Lane<T>::V up;
  typename Lane<T>::M bad;
};

template <class T>
TAEDA_MATRIX_FN PowerScale<T> scale_by_power(LaneNumber<T>* a, int elements) {
  using L = Lane<T>;
  typename L::V largest{};
  for (int i = 0; i < elements; ++i) {
    largest = L::larger(L::size(a[i]), largest);
  }
  typename L::M bits = typename L::M(largest) & L::kExponent;
  typename L::V down = typename L::V(L::kTwiceOne - bits);
  typename L::M bad = not_finite<T>(a, elements);
  bad |= (bits >= L::kTwiceOne) | ((bits == 0) & (largest > 0));
  for (int i = 0; i < elements; ++i) {
    a[i] = L::pick(bad, LaneNumber<T>{}, L::times(a[i], down));
  }
  return {typename L::V(bits), bad};
}

}  // namespace

TAEDA_ISA_END
