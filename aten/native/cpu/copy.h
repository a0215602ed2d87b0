// What copy_into (aten/iter/copy.h) is made of on the CPU.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

// The elements of src, broadcast and converted. The two may only overlap where
// they are the same elements; lazy bits are not looked at.
void copy_elements(const TensorBase& dst, const TensorBase& src);

// Whether negation is the change of a bit, of the elements or their parts.
bool has_sign_bits(ScalarType t);

// The elements of src, conjugated, negated or both. Both tensors are of one
// dtype with sign bits and size, and contiguous; they may be the same.
void copy_changing_signs(const TensorBase& dst,
                         const TensorBase& src,
                         bool conj,
                         bool neg);

// Lazy conjugation and negation resolved into a contiguous tensor's own memory.
void apply_lazy_bits(const TensorBase& t, bool conj, bool neg);

}  // namespace taeda
