// Checks of what derivatives pass to kernels (a gradient, saved statistics):
// right when autograd calls, but anybody may call an operator.
#pragma once

#include <taeda/aten/core/tensor_base.h>

#include <string_view>

namespace taeda::native {

inline void check_shape(std::string_view op,
                        std::string_view name,
                        const Tensor& t,
                        IntArrayRef sizes) {
  TAEDA_CHECK(t.sizes() == sizes,
              op,
              ": expected ",
              name,
              " of shape ",
              sizes,
              ", got ",
              t.sizes());
}

inline void check_count(std::string_view op,
                        std::string_view name,
                        const Tensor& t,
                        int64_t numel) {
  TAEDA_CHECK(t.numel() == numel,
              op,
              ": expected ",
              name,
              " with ",
              numel,
              " elements, got ",
              t.sizes());
}

inline void check_index_dtype(std::string_view op, const Tensor& indices) {
  TAEDA_CHECK(indices.dtype() == kLong,
              op,
              ": expected indices of dtype int64, got ",
              indices.dtype());
}

// Which of the gradients are wanted, one entry each.
inline void check_mask(std::string_view op, ArrayRef<bool> mask, size_t size) {
  TAEDA_CHECK(mask.size() == size,
              op,
              ": expected output_mask of length ",
              size,
              ", got ",
              mask.size());
}

}  // namespace taeda::native
