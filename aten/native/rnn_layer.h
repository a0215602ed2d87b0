// Sizes of a recurrent layer, from its weights.
#pragma once

#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/blas/gemm.h>

#include <cstdint>

namespace taeda::native {

enum RnnMode : int64_t { kLstm, kGru, kTanh, kRelu };

inline int64_t gates_of(int64_t mode) {
  return mode == kLstm ? 4 : mode == kGru ? 3 : 1;
}

template <class I>
struct SizesOver {
  I input, state, hidden, gates, batch;
  SizesOver(int64_t mode,
            const Spec<I>& x,
            const Spec<I>& h0,
            const Spec<I>& w_hh)
      : input(x.sizes()[1]),
        state(h0.sizes()[1]),
        hidden(w_hh.sizes()[0] / gates_of(mode)),
        gates(w_hh.sizes()[0]),
        batch(h0.sizes()[0]) {}
};

// A tensor of integers as a list, whatever its integer dtype.
DimVector counts_of(const Tensor& batch_sizes);

}  // namespace taeda::native
