// A hash of all elements: shapes.
#include <taeda/aten/native/dim_rules.h>
#include <taeda/gen/native/hash_tensor.h>

#include <algorithm>

namespace taeda::native {

template <class I>
void hash_tensor_shape(const Spec<I>& self,
                       IntArrayRef dim,
                       bool keepdim,
                       int64_t mode,
                       Plan<I>& plan) {
  TAEDA_CHECK(mode == 0, "Unknown hash_tensor mode: ", mode);
  if (is_complex(self.dtype()))
    not_implemented_for("hash_tensor", self.dtype());
  DimVector dims;
  for (int64_t d : dim) dims.push_back(wrap_dim(d, self.dim()));
  if (dim.empty()) {
    TAEDA_CHECK(self.numel() != 0,
                "hash_tensor: Expected reduction dim to be specified for "
                "input.numel() == 0. Specify the reduction dim with the 'dim' "
                "argument.");
    for (int64_t d = 0; d < self.dim(); ++d) dims.push_back(d);
  }
  Dims<I> sizes;
  for (int64_t d = 0; d < self.dim(); ++d) {
    auto times = std::count(dims.begin(), dims.end(), d);
    TAEDA_CHECK(times < 2, "dim ", d, " appears multiple times in the list");
    if (times == 0) {
      sizes.push_back(self.size(d));
    } else {
      TAEDA_CHECK_AS(Index,
                     self.size(d) != 0,
                     "hash_tensor(): Expected reduction dim ",
                     d,
                     " to have non-zero size.");
      if (keepdim) sizes.push_back(1);
    }
  }
  plan.set(0, sizes, kUInt64);
}
TAEDA_SHAPE(hash_tensor_shape);

}  // namespace taeda::native
