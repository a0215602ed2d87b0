// Where a view lies in its tensor's memory, as rules over the integer type say.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/c10/core/symbolic_geometry.h>

namespace taeda {

// Note [View rules]
// The `rule:` of a view's record is a function template over the integer type:
// it takes the geometry of the tensor and the other arguments, checks them and
// gives the geometry of the view (of each view, where there are several). It
// sees no memory; see Note [Shape rules].
template <class I>
struct ViewGeometry {
  Dims<I> sizes, strides;
  I offset = 0;

  explicit ViewGeometry(const TensorBase& t)
    requires std::is_same_v<I, int64_t>
      : sizes(t.sizes()), strides(t.strides()), offset(t.storage_offset()) {}
  explicit ViewGeometry(const TensorBase& t)
    requires std::is_same_v<I, SymInt>
      : sizes(sym_sizes(*t.impl())),
        strides(sym_strides(*t.impl())),
        offset(sym_offset(*t.impl())) {}

  int64_t dim() const { return static_cast<int64_t>(sizes.size()); }
  I numel() const {
    I product = 1;
    for (const I& n : sizes) product *= n;
    return product;
  }
  // Negative dims count from the end; IndexError outside the range.
  const I& size(int64_t d) const {
    TAEDA_CHECK_AS(Index,
                   dim() > 0,
                   "Dimension specified as ",
                   d,
                   " but tensor has no dimensions");
    return sizes[static_cast<size_t>(wrap_dim(d, dim()))];
  }
  void drop(int64_t d) {
    sizes.erase(sizes.begin() + d);
    strides.erase(strides.begin() + d);
  }

  TensorBase view_of(const TensorBase& self) const
    requires std::is_same_v<I, int64_t>
  {
    return make_view(self, sizes, strides, offset);
  }
  void apply_to(const TensorBase& self) const
    requires std::is_same_v<I, int64_t>
  {
    self.impl()->set_sizes_and_strides(sizes, strides, offset);
  }
};
template <class I>
using ViewGeometries = std::vector<ViewGeometry<I>>;

}  // namespace taeda
