// What copy_into (aten/iter/copy.h) is made of on the CPU.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

// The elements of src, broadcast and converted. The two may only overlap where
// they are the same elements; lazy bits are not looked at.
void copy_elements(const TensorBase& dst, const TensorBase& src);

// Lazy conjugation and negation resolved into a copy's own memory.
void apply_lazy_bits(const TensorBase& t, bool conj, bool neg);

}  // namespace taeda
