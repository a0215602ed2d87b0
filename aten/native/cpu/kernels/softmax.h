// Softmax of one row, or of many columns that lie side by side.
#pragma once

#include <cstdint>

namespace taeda {

template <class T>
struct SoftmaxKernels {
  // n elements of one row.
  void (*row)(const T* in, T* out, int64_t n, bool log);
  // `columns` columns of n elements, `stride` elements apart.
  void (*columns)(const T* in,
                  T* out,
                  int64_t n,
                  int64_t stride,
                  int64_t columns,
                  bool log);
  // Where y, no logarithm, sums to 1 but for `rounding`, it is divided by its
  // sum first.
  void (*row_backward)(
      const T* grad, const T* y, T* out, int64_t n, bool log, T rounding);
  void (*columns_backward)(const T* grad,
                           const T* y,
                           T* out,
                           int64_t n,
                           int64_t stride,
                           int64_t columns,
                           bool log,
                           T rounding);
};

// Columns that a call may have at most.
inline constexpr int64_t kSoftmaxColumns = 256;

struct SoftmaxTable {
  SoftmaxKernels<float> f32;
  SoftmaxKernels<double> f64;
};

namespace isa_default {
extern const SoftmaxTable kSoftmaxTable;
}
namespace isa_avx2 {
extern const SoftmaxTable kSoftmaxTable;
}
namespace isa_avx512 {
extern const SoftmaxTable kSoftmaxTable;
}

}  // namespace taeda
