// Eigenpairs in single precision made as good as their rounding.
#pragma once

#include <taeda/aten/native/blas/lapack.h>
#include <taeda/c10/util/complex.h>

#include <cmath>
#include <type_traits>
#include <vector>

namespace taeda::native {

inline double length(complex<double> z) { return std::sqrt(norm(z)); }

// A column as LAPACK normalises it: of length 1, its largest component as it
// was turned before.
inline void normalise(std::vector<complex<double>>& column,
                      const complex<float>* before) {
  using C = complex<double>;
  double square = 0;
  size_t largest = 0;
  for (size_t i = 0; i < column.size(); ++i) {
    square += norm(column[i]);
    if (norm(before[i]) > norm(before[largest])) largest = i;
  }
  C old(before[largest]), now = column[largest];
  C turn = old / now * (length(now) / length(old) / std::sqrt(square));
  for (C& x : column) x = x * turn;
  if (old.imag() == 0) column[largest] = C(column[largest].real(), 0);
}

// out += A V; as many operations as numbers of A have.
template <typename T>
void add_product(size_t n,
                 const T* a,
                 const complex<double>* v,
                 complex<double>* out) {
  using C = complex<double>;
  for (size_t j = 0; j < n; ++j) {
    for (size_t k = 0; k < n; ++k) {
      C x = v[k + j * n];
      for (size_t i = 0; i < n; ++i) {
        C& sum = out[i + j * n];
        if constexpr (std::is_same_v<T, float>) {
          double factor = a[i + k * n];
          sum =
              C(sum.real() + factor * x.real(), sum.imag() + factor * x.imag());
        } else {
          sum = sum + C(a[i + k * n]) * x;
        }
      }
    }
  }
}

// Newton's step in double precision from the pairs that LAPACK found, which
// keeps their order: with R = V^-1 A V, column j of V moves by
// R_ij / (R_jj - R_ii) along column i. Where that is no small step, eigenvalues
// are equal but for roundings, and LAPACK's vectors as good as others.
template <typename T>
void refine_pairs(blas::Int n,
                  const T* matrix,
                  complex<float>* w,
                  complex<float>* vectors) {
  using C = complex<double>;
  constexpr bool kReal = std::is_same_v<T, float>;
  // Smaller steps are less than a rounding: exact zeros stay.
  constexpr double kLargestStep = 1e-3, kSmallestStep = 1e-10;
  size_t size = static_cast<size_t>(n);
  std::vector<C> v(vectors, vectors + size * size), lu = v, r(v.size());
  add_product(size, matrix, v.data(), r.data());
  std::vector<blas::Int> pivots(size);
  blas::Int info = 0;
  blas::lapack<C>().getrf(&n, &n, lu.data(), &n, pivots.data(), &info);
  if (info != 0) return;
  blas::lapack<C>().getrs(
      "N", &n, &n, lu.data(), &n, pivots.data(), r.data(), &n, &info, 1);
  auto step = [&](size_t i, size_t j) {
    return r[i + j * size] / (r[j + j * size] - r[i + i * size]);
  };
  auto refined = [&](size_t j, std::vector<C>& column) {
    column.assign(&v[j * size], &v[j * size] + size);
    for (size_t i = 0; i < size; ++i) {
      if (i == j) continue;
      C s = step(i, j);
      double moved = length(s);
      if (!(moved <= kLargestStep)) return false;
      if (moved < kSmallestStep) continue;
      for (size_t k = 0; k < size; ++k) {
        column[k] = column[k] + s * v[k + i * size];
      }
    }
    normalise(column, vectors + j * size);
    return true;
  };
  std::vector<C> column;
  for (size_t j = 0; j < size; ++j) {
    bool real = kReal && w[j].imag() == 0;
    // Of a conjugate pair the first decides.
    if (kReal && w[j].imag() < 0) continue;
    if (!refined(j, column)) continue;
    C value = r[j + j * size];
    if (real) value = C(value.real(), 0);
    if (length(value - C(w[j])) >= kSmallestStep * length(value)) {
      w[j] = complex<float>(value);
    }
    for (size_t k = 0; k < size; ++k) {
      complex<float> x(real ? C(column[k].real(), 0) : column[k]);
      vectors[k + j * size] = x;
      if (kReal && !real) vectors[k + (j + 1) * size] = conj(x);
    }
    if (kReal && !real) w[j + 1] = conj(w[j]);
  }
}

}  // namespace taeda::native
