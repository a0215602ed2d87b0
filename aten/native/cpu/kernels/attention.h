// Rows of attention scores, per ISA level.
#pragma once

#include <cstdint>

namespace taeda {

template <class A>
struct AttentionKernels {
  // scores = exp(scale scores + mask - top) over the first `n` of `width`
  // columns, zero behind them; returns the logarithm of the sum and gives
  // 1 / sum. mask may be null. A row without any score becomes zeros.
  A(*softmax)
  (A* scores, const A* mask, A scale, int64_t n, int64_t width, A* inverse);
  // grads = probs (grads - delta) scale.
  void (*grads)(A* grads, const A* probs, A delta, A scale, int64_t width);
  A (*dot)(const A* a, const A* b, int64_t n);
};

struct AttentionTable {
  AttentionKernels<float> f32;
  AttentionKernels<double> f64;
};

namespace isa_default {
extern const AttentionTable kAttentionTable;
}
namespace isa_avx2 {
extern const AttentionTable kAttentionTable;
}
namespace isa_avx512 {
extern const AttentionTable kAttentionTable;
}

}  // namespace taeda
