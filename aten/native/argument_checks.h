// Checks of what derivatives pass to kernels (a gradient, saved statistics):
// right when autograd calls, but anybody may call an operator.
#pragma once

#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>

#include <algorithm>
#include <string_view>
#include <type_traits>
#include <utility>

namespace taeda::native {

// The type of t.sizes().
template <class T>
using SizesOf = std::remove_cvref_t<decltype(std::declval<T>().sizes())>;

template <class T>
void check_shape(std::string_view op,
                 std::string_view name,
                 const T& t,
                 const SizesOf<T>& sizes) {
  TAEDA_CHECK(t.sizes() == sizes,
              op,
              ": expected ",
              name,
              " of shape ",
              sizes,
              ", got ",
              t.sizes());
}

template <class T>
void check_count(std::string_view op,
                 std::string_view name,
                 const T& t,
                 const auto& numel) {
  TAEDA_CHECK(t.numel() == numel,
              op,
              ": expected ",
              name,
              " with ",
              numel,
              " elements, got ",
              t.sizes());
}

// Whether a condition of one element holds: in all samples that a wrapper
// stands for, as far as is known where there is no data. Waits for a device.
inline bool holds_throughout(const Tensor& condition) {
  Tensor plain = innermost_value(condition);
  if (plain.is_meta()) return true;
  plain = Tensor(on_cpu(plain));
  const bool* values = plain.const_data<bool>();
  return std::all_of(values, values + plain.numel(), [](bool v) { return v; });
}

template <class T>
void check_index_dtype(std::string_view op, const T& indices) {
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
