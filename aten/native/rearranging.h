// Dims as bits of a mask.
#pragma once

#include <taeda/c10/util/small_vector.h>

#include <cstdint>

namespace taeda::native {

uint64_t flipped_dims(IntArrayRef dims, int64_t rank);

}  // namespace taeda::native
