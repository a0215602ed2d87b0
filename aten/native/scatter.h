// Combining elements into the positions that an index holds.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/iter/output.h>

namespace taeda::native {

// `reduce`: sum, prod, mean, amax or amin; checks the index against self only.
void scatter_reduced(const Tensor& self,
                     int64_t dim,
                     const Tensor& index,
                     const Tensor& src,
                     std::string_view reduce,
                     bool include_self);

enum class Reduce { Sum, Prod, Mean, Max, Min };

Reduce reduce_of(std::string_view text);

Reduce old_reduce_of(std::string_view text);

}  // namespace taeda::native
