// Pooling of channels that lie side by side, per ISA level.
#pragma once

#include <taeda/aten/native/cpu/kernels/float_table.h>
#include <taeda/aten/native/cpu/kernels/lanes.h>

#include <cstdint>

namespace taeda {

template <class T>
struct PoolKernels {
  using A = lane_sum_t<T>;
  // Where x is above best (or NaN): best = x and at = index.
  void (*max_step)(
      const T* x, A* best, int32_t* at, int32_t index, int64_t channels);
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
