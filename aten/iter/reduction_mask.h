// The dims that a record of the reduction family reduces.
#pragma once

#include <taeda/aten/iter/reduce.h>

namespace taeda {

// See dim_mask; `any` and `all` of no dims, whose results are truth values,
// reduce nothing, as PyTorch's do.
inline uint64_t reduction_mask(const DtypeRule& types,
                               std::optional<IntArrayRef> dims,
                               int64_t rank) {
  if (types.out == OutKind::Bool && dims && dims->empty()) return 0;
  return dim_mask(dims, rank);
}

}  // namespace taeda
