// What the parts of a sparse tensor must satisfy. All throw RuntimeError.
#pragma once

#include <taeda/aten/native/sparse/sparse_tensor.h>

namespace taeda::native {

// That sizes go together: what every constructor asks.
void check_coo_sizes(const Tensor& indices,
                     const Tensor& values,
                     IntArrayRef size);
void check_compressed_sizes(const Tensor& offsets,
                            const Tensor& indices,
                            const Tensor& values,
                            IntArrayRef size,
                            Layout layout);
// The same, and that the places lie within the shape, in order.
void check_coo_parts(const Tensor& indices,
                     const Tensor& values,
                     IntArrayRef size,
                     bool is_coalesced);
void check_compressed_parts(const Tensor& offsets,
                            const Tensor& indices,
                            const Tensor& values,
                            IntArrayRef size,
                            Layout layout);

}  // namespace taeda::native
