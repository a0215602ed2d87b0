// Dims as bits of a mask, and what repetitions are counted by.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>

#include <cstdint>

namespace taeda::native {

uint64_t flipped_dims(IntArrayRef dims, int64_t rank);

// Counts of repetitions are a vector of integers.
inline void check_repeats(const Tensor& repeats) {
  TAEDA_CHECK(repeats.dim() == 1,
              "repeat_interleave only accept 1D vector as repeat, got ",
              repeats);
  TAEDA_CHECK_AS(
      NotImplemented,
      repeats.dtype() == kLong || repeats.dtype() == kInt,
      "repeat_interleave: repeats has to be Long or Int tensor, got ",
      repeats.dtype());
}

}  // namespace taeda::native
