// Combining elements into the positions that an index holds.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::native {

// `reduce`: sum, prod, mean, amax or amin; checks the index against self only.
void scatter_reduced(const Tensor& self,
                     int64_t dim,
                     const Tensor& index,
                     const Tensor& src,
                     std::string_view reduce,
                     bool include_self);

}  // namespace taeda::native
