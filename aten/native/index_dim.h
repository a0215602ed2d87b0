// Sizes along a dim that a vector indexes.
#pragma once

#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/indexing.h>

#include <cstdint>

namespace taeda::native {

// A 0-d tensor counts as a row of one.
template <class I>
I dim_size(const Spec<I>& t, int64_t dim) {
  return t.dim() == 0 ? I(1) : t.sizes()[dim];
}

inline int64_t dim_size(const Tensor& t, int64_t dim) {
  return dim_size<int64_t>(Spec<int64_t>(t), dim);
}

}  // namespace taeda::native
