// Views: the same storage under another geometry.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/geometry.h>
#include <taeda/gen/native/as_strided.h>
#include <taeda/gen/native/reshape.h>
#include <taeda/gen/native/transpose.h>
#include <taeda/gen/native/view.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/view.h>

namespace taeda::native {

Tensor view(const Tensor& self, ArrayRef<int64_t> size) {
  DimVector shape = infer_size<int64_t>(size, self.numel());
  auto strides = view_strides<int64_t>(self.sizes(), self.strides(), shape);
  TAEDA_CHECK(strides.has_value(),
              "view size is not compatible with input tensor's size and stride "
              "(at least one dimension spans across two contiguous subspaces). "
              "Use .reshape(...) instead. (view: self has shape ",
              self.sizes(),
              " and strides ",
              self.strides(),
              ", asked for ",
              IntArrayRef(shape),
              ")");
  return make_view(self, shape, *strides, self.storage_offset());
}

Tensor reshape(const Tensor& self, ArrayRef<int64_t> size) {
  DimVector shape = infer_size<int64_t>(size, self.numel());
  if (view_strides<int64_t>(self.sizes(), self.strides(), shape)) {
    return ops::view(self, shape);
  }
  return ops::view(ops::clone(self, MemoryFormat::Contiguous), shape);
}

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim(dim0, self.dim());
  dim1 = wrap_dim(dim1, self.dim());
  DimVector sizes(self.sizes()), strides(self.strides());
  if (dim0 != dim1) {
    std::swap(sizes[dim0], sizes[dim1]);
    std::swap(strides[dim0], strides[dim1]);
  }
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor as_strided(const Tensor& self,
                  ArrayRef<int64_t> size,
                  ArrayRef<int64_t> stride,
                  std::optional<int64_t> storage_offset) {
  TAEDA_CHECK(size.size() == stride.size(),
              "as_strided: mismatch in length of strides and shape, got ",
              stride,
              " and ",
              size);
  int64_t offset = storage_offset.value_or(self.storage_offset());
  TAEDA_CHECK(
      offset >= 0, "as_strided: Negative storage_offset not supported, got ", offset);
  for (int64_t s : stride) {
    TAEDA_CHECK(s >= 0,
                "as_strided: Negative strides are not supported at the moment, "
                "got strides: ",
                stride);
  }
  checked_numel("as_strided", size);
  size_t needed = required_bytes(size, stride, offset, self.itemsize());
  TAEDA_CHECK(self.is_meta() || needed <= self.storage()->nbytes(),
              "setStorage: sizes ",
              size,
              ", strides ",
              stride,
              ", storage offset ",
              offset,
              ", and itemsize ",
              self.itemsize(),
              " requiring a storage size of ",
              needed,
              " are out of bounds for storage of size ",
              self.storage()->nbytes());
  return make_view(self, size, stride, offset);
}

}  // namespace taeda::native
