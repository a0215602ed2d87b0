// Rows of normalisation layers, per ISA level.
#pragma once

#include <taeda/aten/native/cpu/kernels/float_table.h>
#include <taeda/aten/native/cpu/kernels/lanes.h>

#include <cstdint>

namespace taeda {

// Sums over one run of elements in memory.
template <class A>
struct NormSums {
  A sum;
  A dot;
};

template <class T>
struct NormKernels {
  using A = lane_sum_t<T>;
  // Normalises rows of n elements: y = (x - mean) rstd w + b. w and b may be
  // null. `centred` false is the RMS norm: mean is not written.
  void (*forward)(const T* x,
                  const A* w,
                  const A* b,
                  T* y,
                  A* mean,
                  A* rstd,
                  int64_t rows,
                  int64_t n,
                  double eps,
                  bool centred);
  // dx of the rows, and dw and db added to; each of the three may be null.
  void (*backward)(const T* dy,
                   const T* x,
                   const A* w,
                   const A* mean,
                   const A* rstd,
                   T* dx,
                   A* dw,
                   A* db,
                   int64_t rows,
                   int64_t n,
                   bool centred);
  A (*sum)(const T* x, int64_t n);
  // Sum of (x - mean)^2.
  A (*square_sum)(const T* x, A mean, int64_t n);
  // Sums of dy and of dy (x - mean).
  NormSums<A> (*grad_sums)(const T* dy, const T* x, A mean, int64_t n);
  // y = a x + b.
  void (*affine)(const T* x, A a, A b, T* y, int64_t n);
  // dx = a dy + b x + c.
  void (*affine2)(const T* dy, const T* x, A a, A b, A c, T* dx, int64_t n);
  // The same with a, b and c per element of a row, for `rows` rows.
  void (*affine_rows)(
      const T* x, const A* a, const A* b, T* y, int64_t rows, int64_t n);
  void (*affine2_rows)(const T* dy,
                       const T* x,
                       const A* a,
                       const A* b,
                       const A* c,
                       T* dx,
                       int64_t rows,
                       int64_t n);
  // Column sums over rows, added to the outputs.
  void (*sum_rows)(const T* x, A* sums, int64_t rows, int64_t n);
  void (*square_sum_rows)(
      const T* x, const A* mean, A* sums, int64_t rows, int64_t n);
  void (*grad_sum_rows)(const T* dy,
                        const T* x,
                        const A* mean,
                        A* sums,
                        A* dots,
                        int64_t rows,
                        int64_t n);
};

using NormTable = FloatTable<NormKernels>;

namespace isa_default {
extern const NormTable kNormTable;
}
namespace isa_avx2 {
extern const NormTable kNormTable;
}
namespace isa_avx512 {
extern const NormTable kNormTable;
}

}  // namespace taeda
