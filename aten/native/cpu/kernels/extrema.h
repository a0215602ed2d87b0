// Where the largest or smallest element is.
#pragma once

#include <cstdint>

namespace taeda {

inline constexpr int64_t kExtremumColumns = 256;

// The first place of the extremum; the first NaN where there is one.
template <class T>
struct ExtremumKernels {
  int64_t (*row)(const T* in, int64_t n, bool largest);
  void (*columns)(const T* in,
                  int64_t n,
                  int64_t stride,
                  int64_t columns,
                  bool largest,
                  T* values,
                  int64_t* indices);
  // The first place whose value is better than `bound`, which is no NaN; n
  // where there is none. NaN counts as the largest.
  int64_t (*beyond)(const T* in, int64_t n, T bound, bool largest);
};

struct ExtremumTable {
  ExtremumKernels<float> f32;
  ExtremumKernels<double> f64;
  ExtremumKernels<int64_t> i64;
};

namespace isa_default {
extern const ExtremumTable kExtremumTable;
}
namespace isa_avx2 {
extern const ExtremumTable kExtremumTable;
}
namespace isa_avx512 {
extern const ExtremumTable kExtremumTable;
}

}  // namespace taeda
