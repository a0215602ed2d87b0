// Copies whose two sides are contiguous along different dims.
#pragma once

#include <taeda/aten/iter/iteration_space.h>

namespace taeda {

// Copies operand 1 of the space to operand 0 tile by tile, where that pays:
// false (and nothing done) where the operands share their contiguous dim or
// the tiles would be slivers. Both hold elements of `itemsize` bytes and do not
// overlap.
bool copy_transposed(const IterationSpace& space,
                     char* dst,
                     const char* src,
                     size_t itemsize);

}  // namespace taeda
