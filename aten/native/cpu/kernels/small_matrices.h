// Batches of small matrices, several of them side by side in a register.
#pragma once

#include <taeda/c10/util/complex.h>

#include <cstdint>
#include <type_traits>

namespace taeda {

// Rows and columns that the kernels take.
inline constexpr int kMostRows = 16;

// In a report, where other values are LAPACK's info: lanes cannot decide this
// matrix (it has infinite numbers or NaN, or numbers whose squares are not
// representable, or iterations did not end), so it is LAPACK's to do.
inline constexpr int kUndecided = -1;

// Element (i, j) of matrix k stands at items[k] + i * row + j * column. No
// items: the identity.
template <class T>
struct MatrixItems {
  const T* const* items = nullptr;
  int64_t row = 0, column = 0;
  bool conj = false;
};

// Element (i, j) of matrix k goes to data + k * step + i * row + j * column.
// Q may be left out (no data).
template <class T>
struct MatrixResults {
  T* data = nullptr;
  int64_t row = 0, column = 0, step = 0;
  bool conj = false;
};

template <class T>
struct RealPart {
  using type = T;
};
template <class T>
struct RealPart<complex<T>> {
  using type = T;
};

// One part of a batch. Each kernel says which of the results it gives.
template <class T>
struct SmallBatch {
  int64_t count = 0;
  int rows = 0, columns = 0;  // of a
  int right = 0;              // columns of b, or of the first result
  MatrixItems<T> a, b;
  MatrixResults<T> first, second;
  typename RealPart<T>::type* numbers = nullptr;  // some for each matrix
  int* pivots = nullptr;                          // min(rows, columns) each
  int* report = nullptr;                          // one each; always there
  bool unit = false;
};

template <class T>
using SmallKernel = void (*)(const SmallBatch<T>& batch);

// `lanes`: the number of matrices computed at once.
template <class T>
struct SmallSystems {
  int lanes;
  // P A = L U as LAPACK packs it in `first`, and `pivots`.
  SmallKernel<T> lu;
  // The determinant in `first`.
  SmallKernel<T> det;
  // The determinant over its magnitude in `first`, the magnitude's logarithm
  // in `numbers`.
  SmallKernel<T> slogdet;
  // X with A X = B in `first`.
  SmallKernel<T> solve;
  // L with A = L L^H in `first`; reads the lower triangle.
  SmallKernel<T> cholesky;
  // X with L X = B in `first`, L being the lower triangle of a, with ones on
  // its diagonal where `unit`.
  SmallKernel<T> triangular;
};

template <class T>
struct SmallSpectra {
  int lanes;
  // Q of `right` columns in `first`, R of as many rows in `second`.
  SmallKernel<T> qr;
  // Eigenvectors in `first`, eigenvalues rising in `numbers`; reads the lower
  // triangle.
  SmallKernel<T> eigh;
  // For rows >= columns: U of `right` columns in `first`, V in `second`,
  // singular values falling in `numbers`.
  SmallKernel<T> svd;
};

template <template <class> class Kernels>
struct SmallTable {
  Kernels<float> f32;
  Kernels<double> f64;
  Kernels<complex<float>> c64;
  Kernels<complex<double>> c128;
  template <class T>
  const Kernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else if constexpr (std::is_same_v<T, double>) {
      return f64;
    } else if constexpr (std::is_same_v<T, complex<float>>) {
      return c64;
    } else {
      return c128;
    }
  }
};

namespace isa_default {
extern const SmallTable<SmallSystems> kSmallSystems;
extern const SmallTable<SmallSpectra> kSmallSpectra;
}  // namespace isa_default
namespace isa_avx2 {
extern const SmallTable<SmallSystems> kSmallSystems;
extern const SmallTable<SmallSpectra> kSmallSpectra;
}  // namespace isa_avx2
namespace isa_avx512 {
extern const SmallTable<SmallSystems> kSmallSystems;
extern const SmallTable<SmallSpectra> kSmallSpectra;
}  // namespace isa_avx512

}  // namespace taeda
