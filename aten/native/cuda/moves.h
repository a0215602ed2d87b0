// Copies that keep the bits of elements.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::cuda {

// Copies where it is quicker in larger words or by tiles; false where neither
// applies. Both tensors are on the current device, `dst` without elements that
// lie over each other; `src` broadcasts.
bool run_move(const TensorBase& dst, const TensorBase& src);

// How device text names a word of so many bytes.
const char* word_of(int64_t bytes);

}  // namespace taeda::cuda
