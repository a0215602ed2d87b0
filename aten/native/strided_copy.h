// Copies between two places of any geometry, strides of any sign.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::native {

// Strides in elements of `itemsize` bytes; the places do not overlap.
void copy_strided(char* dst,
                  IntArrayRef dst_strides,
                  const char* src,
                  IntArrayRef src_strides,
                  IntArrayRef sizes,
                  size_t itemsize);

}  // namespace taeda::native
