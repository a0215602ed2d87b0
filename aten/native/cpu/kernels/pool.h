// Pooling of channels that lie side by side, per ISA level.
#pragma once

#include <taeda/aten/native/cpu/kernels/float_table.h>
#include <taeda/aten/native/cpu/kernels/lanes.h>

#include <cstdint>

namespace taeda {

template <class T>
struct PoolKernels {
  // The maxima of one window, or its last NaN, and which of `places` (at least
  // one) they lie at. x and y have a row of channels a place.
  void (*max_window)(const T* x,
                     const int32_t* places,
                     int64_t count,
                     int64_t channels,
                     T* y,
                     int64_t* index);
};

using PoolTable = FloatTable<PoolKernels>;

namespace isa_default {
extern const PoolTable kPoolTable;
}
namespace isa_avx2 {
extern const PoolTable kPoolTable;
}
namespace isa_avx512 {
extern const PoolTable kPoolTable;
}

}  // namespace taeda
