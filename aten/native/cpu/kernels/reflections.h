// Householder reflections of one real matrix that fits the caches, and the
// rotations of an iteration for eigenvalues.
#pragma once

#include <cstdint>

namespace taeda {

// Columns that the kernels take.
inline constexpr int64_t kMostReflected = 256;

// Rows are `kRowUnit` elements apart, or a multiple of that, and begin at
// multiples of 64 bytes. Elements between the last column and the end of a row
// are read and written; they only have to be numbers.
inline constexpr int64_t kRowUnit = 16;

// The first `count` columns of the m x n matrix `a`, row-major. Reflection i is
// I - tau[i] v v^T, where v is row i of `v` (m numbers, then zeros), with zeros
// before its 1 at place i.
template <class T>
struct Reflections {
  int64_t m, n, count;
  T* a;
  int64_t lda;
  T* v;
  int64_t ldv;
  T* tau;
};

template <class T>
struct ReflectionKernels {
  // Makes the reflections that bring the first `count` columns to R, and
  // applies them to all of `a`. What stands below R's diagonal is left
  // undefined. False where a column has a NaN or numbers whose squares are not
  // representable: then `a` is lost.
  bool (*factor)(const Reflections<T>& r);
  // `a` becomes the first n columns of the reflections' product.
  void (*product)(const Reflections<T>& r);
  // A = Q T Q^T for symmetric n x n matrices (both triangles are read): d and
  // e are the diagonal of T and what stands beside it, and Q is the product
  // of reflections 0 .. n - 2 that begin at their row's next place. False as
  // above.
  bool (*tridiagonal)(const Reflections<T>& r, T* d, T* e);
  // sums[j] = sum over i < rows of factors[i] a[i * lda + j], for j < columns
  // and up to the end of a register.
  void (*combine)(int64_t rows,
                  int64_t columns,
                  const T* factors,
                  const T* a,
                  int64_t lda,
                  T* sums);
  // Turns rows k and k + 1, `step` elements apart, for each k < count in turn:
  // by [[c, s], [-s, c]].
  void (*rotate)(int64_t count,
                 T* rows,
                 int64_t step,
                 int64_t columns,
                 const T* c,
                 const T* s);
};

struct ReflectionTable {
  ReflectionKernels<float> f32;
  ReflectionKernels<double> f64;
  template <class T>
  const ReflectionKernels<T>& of() const {
    if constexpr (sizeof(T) == sizeof(float)) {
      return f32;
    } else {
      return f64;
    }
  }
};

namespace isa_default {
extern const ReflectionTable kReflections;
}
namespace isa_avx2 {
extern const ReflectionTable kReflections;
}
namespace isa_avx512 {
extern const ReflectionTable kReflections;
}

}  // namespace taeda
