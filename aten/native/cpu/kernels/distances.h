// Distances of rows of two matrices, per ISA level.
#pragma once

#include <cstdint>

namespace taeda {

// Which norm of the difference a distance is.
enum class NormKind : uint8_t { kZero, kOne, kTwo, kMax, kAny };

template <class T>
struct RowDistances {
  NormKind kind;
  T p;  // of kAny
  int64_t width;

  // Where the distance of rows i and j stands: at out + i * step + j.
  // Of pairs only j > i is wanted, and the rows lie behind each other.
  bool pairs;
  int64_t step;
};

template <class T>
struct DistanceKernels {
  // Rows [begin, end) of a from the m rows of b.
  void (*distances)(const RowDistances<T>& how,
                    const T* a,
                    int64_t begin,
                    int64_t end,
                    const T* b,
                    int64_t m,
                    T* out);
  // to = sum of g[j] times the derivative of row's distance d[j] from row j
  // of b.
  void (*slopes)(const RowDistances<T>& how,
                 const T* row,
                 const T* b,
                 int64_t m,
                 const T* g,
                 const T* d,
                 T* to);
  // The sum of squares of each of n rows.
  void (*squares)(const T* x, int64_t n, int64_t width, T* out);
  // Note [Distances by products]. out holds -2 times the products of row with
  // the rows of b and becomes the distances; `a2` and `b2` are sums of squares.
  void (*finish)(const T* row,
                 T a2,
                 const T* b,
                 const T* b2,
                 int64_t m,
                 int64_t width,
                 T* out);
};

struct DistanceTable {
  DistanceKernels<float> f32;
  DistanceKernels<double> f64;
  const DistanceKernels<float>& of(float) const { return f32; }
  const DistanceKernels<double>& of(double) const { return f64; }
};

namespace isa_default {
extern const DistanceTable kDistanceTable;
}
namespace isa_avx2 {
extern const DistanceTable kDistanceTable;
}
namespace isa_avx512 {
extern const DistanceTable kDistanceTable;
}

}  // namespace taeda
