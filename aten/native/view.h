// Geometries of single views, shared by the views and their in-place forms.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::native {

struct Geometry {
  DimVector sizes;
  DimVector strides;
  int64_t offset = 0;
  explicit Geometry(const Tensor& t)
      : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()) {}
  Tensor view_of(const Tensor& self) const {
    return make_view(self, sizes, strides, offset);
  }
  void apply_to(const Tensor& self) const {
    self.impl()->set_sizes_and_strides(sizes, strides, offset);
  }
};

// start, end and the number of positions of a slice, as Python's rules make
// them of any numbers.
struct SliceRange {
  int64_t start;
  int64_t end;
  int64_t count;
};
SliceRange slice_range(int64_t size,
                       std::optional<int64_t> start,
                       std::optional<int64_t> end,
                       int64_t step);

// A view that is one of several results of a call.
Tensor make_view_of_many(const Tensor& self,
                         IntArrayRef sizes,
                         IntArrayRef strides,
                         int64_t offset);

}  // namespace taeda::native
