// Element-wise copy with conversion: the one path behind copy_, to, contiguous,
// clone and the derived out= forms.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

// dst and src have sizes that broadcast; src may be of any dtype. Does not
// touch version counters.
TAEDA_API void copy_into(const TensorBase& dst,
                         const TensorBase& src,
                         bool non_blocking = false);
TAEDA_API void fill_with(const TensorBase& dst, const Scalar& value);
// The same with zeros.
TAEDA_API void zero_fill(const TensorBase& dst);

// Copies between two places of any geometry that do not overlap; strides in
// elements, of any sign.
TAEDA_API void copy_strided(char* dst,
                            IntArrayRef dst_strides,
                            const char* src,
                            IntArrayRef src_strides,
                            IntArrayRef sizes,
                            ScalarType dtype);

// The same elements on the CPU: `t` itself where it is there.
TAEDA_API TensorBase on_cpu(const TensorBase& t);

// A row-major copy of `t`, or `t` itself if it is contiguous (and has no lazy
// conjugation or negation).
TAEDA_API TensorBase contiguous(const TensorBase& t);
// `t` in another dtype; `t` itself if it has it.
TAEDA_API TensorBase cast(const TensorBase& t, ScalarType dtype);
TAEDA_API TensorBase contiguous_as(const TensorBase& t, ScalarType dtype);

// Converts n elements: strides in bytes, a zero source stride repeats one.
// Destination may not overlap the source.
using ConvertFn = void (*)(const void* src,
                           int64_t src_stride,
                           void* dst,
                           int64_t dst_stride,
                           int64_t n);
TAEDA_API ConvertFn convert_function(ScalarType from, ScalarType to);

}  // namespace taeda
