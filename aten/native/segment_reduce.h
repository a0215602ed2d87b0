// Where the segments of segment_reduce lie.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/native/scatter.h>

#include <vector>

namespace taeda::native {

// As reduce_of(), where "max" and "min" are names of two more.
Reduce segment_reduce_of(std::string_view text);

// Begin and end of each segment along the axis, row-major in the order of
// lengths or offsets, of which one is given. RuntimeError where a segment is
// not within 0..size, or where lengths do not add up to it and must.
struct Segments {
  std::vector<int64_t> begin, end;
  int64_t per_row = 0;
};
Segments segments_of(const OptionalTensor& lengths,
                     const OptionalTensor& offsets,
                     int64_t size,
                     bool must_cover);

}  // namespace taeda::native
