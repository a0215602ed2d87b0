// Geometries of single views, shared by the views and their in-place forms.
#pragma once

#include <taeda/aten/iter/spec.h>
#include <taeda/aten/iter/view_geometry.h>

namespace taeda::native {

using Geometry = ViewGeometry<int64_t>;

// A view that is one of several results of a call.
Tensor make_view_of_many(const Tensor& self,
                         IntArrayRef sizes,
                         IntArrayRef strides,
                         int64_t offset);

// Views of a tensor with symbols among its sizes.
Tensor view_as_real_sized(const Tensor& self);
Tensor view_as_complex_sized(const Tensor& self);
Tensor _conj_sized(const Tensor& self);
Tensor _neg_view_sized(const Tensor& self);

}  // namespace taeda::native
