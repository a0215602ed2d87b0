// Pooling of channels that lie side by side, per ISA level.
#pragma once

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

struct PoolTable {
  PoolKernels<float> f32;
  PoolKernels<double> f64;
  PoolKernels<BFloat16> bf16;
  PoolKernels<Half> f16;
  template <class T>
  const PoolKernels<T>& of() const {
    if constexpr (std::is_same_v<T, float>) {
      return f32;
    } else if constexpr (std::is_same_v<T, double>) {
      return f64;
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      return bf16;
    } else {
      return f16;
    }
  }
};

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
