// Shape and stride rules that views share, as templates over the integer type.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/c10/core/strides.h>

#include <algorithm>
#include <optional>

namespace taeda::native {

// The shape with its one -1 replaced. RuntimeError "shape '[2, 3]' is invalid
// for input of size 5" when the counts do not match.
template <class Int>
SmallVector<Int, 5> infer_size(ArrayRef<Int> shape, Int numel) {
  SmallVector<Int, 5> out(shape);
  Int known = 1;
  int64_t inferred = -1;
  bool empty = false, overflow = false;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] == -1) {
      TAEDA_CHECK(inferred < 0, "only one dimension can be inferred");
      inferred = static_cast<int64_t>(d);
      continue;
    }
    TAEDA_CHECK(shape[d] >= 0, "invalid shape dimension ", shape[d]);
    empty = empty || shape[d] == 0;
    if constexpr (std::is_integral_v<Int>) {
      overflow |= __builtin_mul_overflow(known, shape[d], &known);
    } else {
      known *= shape[d];
    }
  }
  if (empty) known = 0;
  bool fits = inferred < 0 ? known == numel : known != 0 && numel % known == 0;
  if (overflow && !empty) fits = false;
  if (!fits && inferred >= 0 && known == 0 && numel == 0) {
    TAEDA_CHECK(false,
                "cannot reshape tensor of 0 elements into shape ",
                shape,
                " because the unspecified dimension size -1 can be any value "
                "and is ambiguous");
  }
  TAEDA_CHECK(fits, "shape '", shape, "' is invalid for input of size ", numel);
  if (inferred >= 0) out[static_cast<size_t>(inferred)] = numel / known;
  return out;
}

// Strides of a view of the given geometry as `shape` (same number of elements),
// if there are any: each run of old dims that lies densely behind each other
// must be covered by whole new dims.
template <class Int>
std::optional<SmallVector<Int, 5>> view_strides(ArrayRef<Int> sizes,
                                                ArrayRef<Int> strides,
                                                ArrayRef<Int> shape) {
  SmallVector<Int, 5> out(shape.size());
  bool empty = false;
  if constexpr (std::is_same_v<Int, int64_t>) {
    // The product may be beyond int64, where one of the sizes is 0.
    empty = std::ranges::find(sizes, Int(0)) != sizes.end();
  } else {
    Int numel = 1;
    for (Int s : sizes) numel *= s;
    empty = numel == 0;
  }
  if (empty) {
    if (sizes == shape) return SmallVector<Int, 5>(strides);
    return taeda::strides::contiguous(shape);
  }
  size_t left = shape.size();  // new dims not yet placed, outermost first
  Int run = 1;                 // elements of the current dense run
  Int step = sizes.empty() ? Int(1) : strides.back();
  for (size_t d = sizes.size(); d-- > 0;) {
    run *= sizes[d];
    bool run_ends =
        d == 0 || (sizes[d - 1] != 1 && strides[d - 1] != run * step);
    if (!run_ends) continue;
    Int placed = 1;
    while (left > 0 && (placed < run || shape[left - 1] == 1)) {
      out[left - 1] = placed * step;
      placed *= shape[left - 1];
      --left;
    }
    if (placed != run) return std::nullopt;
    if (d > 0) {
      step = strides[d - 1];
      run = 1;
    }
  }
  while (left > 0 && shape[left - 1] == 1) {
    out[left - 1] = 1;
    --left;
  }
  if (left > 0) return std::nullopt;
  return out;
}

}  // namespace taeda::native
