#pragma once

#include <stdint.h>

namespace taeda {

// The loops of one reduction at one compute type. An accumulator has the
// compute type's size; `scalars` are laid out as for pointwise kernels.
struct ReduceKernel {
  void (*init)(void* acc, int64_t n);
  // Folds n contiguous elements into acc[0].
  void (*inner)(const void* in, int64_t n, void* acc, const void* scalars);
  // Folds in[i] into acc[i].
  void (*outer)(const void* in, int64_t n, void* acc, const void* scalars);
  // acc[i] takes in other[i].
  void (*combine)(void* acc, const void* other, int64_t n);
  // out[i] from acc[i], of which each folded `count` elements.
  void (*finish)(const void* acc,
                 void* out,
                 int64_t n,
                 int64_t count,
                 const void* scalars);
};
using ReduceTable = ReduceKernel[10];

}  // namespace taeda
