// Systems of equations in their plain form: a thread for each matrix.
#pragma once

#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

template <class V>
__device__ inline double size_of(V v) {
  if constexpr (kIsComplex<V>) {
    return static_cast<double>(v.real()) * v.real() +
           static_cast<double>(v.imag()) * v.imag();
  } else {
    return v < 0 ? -static_cast<double>(v) : static_cast<double>(v);
  }
}

// a x = b with rows exchanged for the largest pivot; x begins as b, and `a` is
// used up. `info` is the number of the first pivot that is 0, from 1 on. Both
// lie row-major.
template <class G>
__device__ inline void solve_matrix(const G& g, Long batch) {
  const Long n = g.a.size(-1), columns = g.x.size(-1);
  auto* a = g.a.data() + batch * n * n;
  auto* x = g.x.data() + batch * n * columns;
  using V = typename decltype(g.a)::Stored;
  Long singular = 0;
  for (Long k = 0; k < n && singular == 0; ++k) {
    Long pivot = k;
    for (Long r = k + 1; r < n; ++r) {
      if (size_of(a[r * n + k]) > size_of(a[pivot * n + k])) pivot = r;
    }
    if (size_of(a[pivot * n + k]) == 0) {
      singular = k + 1;
      break;
    }
    for (Long c = 0; c < n && pivot != k; ++c) {
      const V held = a[k * n + c];
      a[k * n + c] = a[pivot * n + c];
      a[pivot * n + c] = held;
    }
    for (Long c = 0; c < columns && pivot != k; ++c) {
      const V held = x[k * columns + c];
      x[k * columns + c] = x[pivot * columns + c];
      x[pivot * columns + c] = held;
    }
    for (Long r = k + 1; r < n; ++r) {
      const V share = a[r * n + k] / a[k * n + k];
      for (Long c = k; c < n; ++c) {
        a[r * n + c] = a[r * n + c] - share * a[k * n + c];
      }
      for (Long c = 0; c < columns; ++c) {
        x[r * columns + c] = x[r * columns + c] - share * x[k * columns + c];
      }
    }
  }
  g.info.write(batch, singular);
  if (singular != 0) return;
  for (Long c = 0; c < columns; ++c) {
    for (Long r = n - 1; r >= 0; --r) {
      V value = x[r * columns + c];
      for (Long k = r + 1; k < n; ++k) {
        value = value - a[r * n + k] * x[k * columns + c];
      }
      x[r * columns + c] = value / a[r * n + r];
    }
  }
}

}  // namespace taeda
