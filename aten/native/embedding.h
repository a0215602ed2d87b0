// What indices of a table must be.
#pragma once

#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/normalization.h>

#include <string_view>

namespace taeda::native {

template <class T>
void check_indices(std::string_view op, const T& indices) {
  TAEDA_CHECK(indices.dtype() == kLong || indices.dtype() == kInt,
              "Expected tensor for argument #1 'indices' to have one of the "
              "following scalar types: Long, Int; but got ",
              indices.dtype(),
              " instead (while checking arguments for ",
              op,
              ")");
}

}  // namespace taeda::native
