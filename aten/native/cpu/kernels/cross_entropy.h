// Rows of logits against class targets, per ISA level.
#pragma once

#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/half.h>

#include <cstdint>

namespace taeda {

template <class T, class A>
struct CrossEntropyKernels {
  // The logarithm of the sum of exponentials of each row.
  void (*log_sum_exp)(const T* x, A* out, int64_t rows, int64_t n);
  // dx = factor (softmax(x) - onehot(target)); factor 0 where none counts.
  void (*backward)(const T* x,
                   const A* log_sum_exp,
                   const int64_t* target,
                   const A* factor,
                   T* dx,
                   int64_t rows,
                   int64_t n);
};

struct CrossEntropyTable {
  CrossEntropyKernels<float, float> f32;
  CrossEntropyKernels<double, double> f64;
  CrossEntropyKernels<BFloat16, float> bf16;
  CrossEntropyKernels<Half, float> f16;
};

namespace isa_default {
extern const CrossEntropyTable kCrossEntropyTable;
}
namespace isa_avx2 {
extern const CrossEntropyTable kCrossEntropyTable;
}
namespace isa_avx512 {
extern const CrossEntropyTable kCrossEntropyTable;
}

}  // namespace taeda
