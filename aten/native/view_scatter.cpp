// Copies of a tensor with a part replaced, and zeros with a part given: the
// derivatives of views.
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/view.h>
#include <taeda/gen/native/as_strided_scatter.h>
#include <taeda/gen/native/diag.h>
#include <taeda/gen/native/diag_embed.h>
#include <taeda/gen/native/diagonal_backward.h>
#include <taeda/gen/native/diagonal_scatter.h>
#include <taeda/gen/native/select_backward.h>
#include <taeda/gen/native/select_scatter.h>
#include <taeda/gen/native/slice_backward.h>
#include <taeda/gen/native/slice_scatter.h>
#include <taeda/gen/native/unfold_backward.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/diag_embed.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/slice.h>

namespace taeda::native {

namespace {

Tensor zeros_for(const Tensor& grad, IntArrayRef sizes) {
  Tensor out = make_tensor("zeros", sizes, grad.dtype(), grad.device());
  zero_fill(out);
  return out;
}

void put(const Tensor& part, const Tensor& src) {
  TAEDA_CHECK(part.sizes() == src.sizes(),
              "expected src to have a size equal to the slice of self. src "
              "size = ",
              src.sizes(),
              ", slice size = ",
              part.sizes());
  ops::copy_(part, src);
}

}  // namespace

Tensor select_backward(const Tensor& grad_output,
                       ArrayRef<int64_t> input_sizes,
                       int64_t dim,
                       int64_t index) {
  Tensor out = zeros_for(grad_output, input_sizes);
  ops::copy_(ops::select(out, dim, index), grad_output);
  return out;
}

Tensor slice_backward(const Tensor& grad_output,
                      ArrayRef<int64_t> input_sizes,
                      int64_t dim,
                      int64_t start,
                      int64_t end,
                      int64_t step) {
  Tensor out = zeros_for(grad_output, input_sizes);
  ops::copy_(ops::slice(out, dim, start, end, step), grad_output);
  return out;
}

Tensor diagonal_backward(const Tensor& grad_output,
                         ArrayRef<int64_t> input_sizes,
                         int64_t offset,
                         int64_t dim1,
                         int64_t dim2) {
  Tensor out = zeros_for(grad_output, input_sizes);
  ops::copy_(ops::diagonal(out, offset, dim1, dim2), grad_output);
  return out;
}

// Place j of every window is a slice of the input, so windows that overlap are
// added place by place.
Tensor unfold_backward(const Tensor& grad_in,
                       ArrayRef<int64_t> input_sizes,
                       int64_t dim,
                       int64_t size,
                       int64_t step) {
  Tensor out = zeros_for(grad_in, input_sizes);
  if (out.dim() == 0) {
    if (size > 0) ops::copy_(out, ops::select(grad_in, 0, 0));
    return out;
  }
  dim = wrap_dim(dim, out.dim());
  int64_t span = (grad_in.sizes()[dim] - 1) * step + 1;
  for (int64_t j = 0; j < size; ++j) {
    Tensor part = ops::slice(out, dim, j, j + span, step);
    ops::add_(part, ops::select(grad_in, -1, j), 1);
  }
  return out;
}

Tensor select_scatter(const Tensor& self,
                      const Tensor& src,
                      int64_t dim,
                      int64_t index) {
  Tensor out = ops::clone(self);
  put(ops::select(out, dim, index), src);
  return out;
}

Tensor slice_scatter(const Tensor& self,
                     const Tensor& src,
                     int64_t dim,
                     std::optional<int64_t> start,
                     std::optional<int64_t> end,
                     int64_t step) {
  Tensor out = ops::clone(self);
  put(ops::slice(out, dim, start, end, step), src);
  return out;
}

Tensor diagonal_scatter(const Tensor& self,
                        const Tensor& src,
                        int64_t offset,
                        int64_t dim1,
                        int64_t dim2) {
  Tensor out = ops::clone(self);
  put(ops::diagonal(out, offset, dim1, dim2), src);
  return out;
}

// The copy has self's strides and begins at the start of its storage.
Tensor as_strided_scatter(const Tensor& self,
                          const Tensor& src,
                          ArrayRef<int64_t> size,
                          ArrayRef<int64_t> stride,
                          std::optional<int64_t> storage_offset) {
  Tensor out = make_tensor_strided("as_strided_scatter",
                                   self.sizes(),
                                   self.strides(),
                                   self.dtype(),
                                   self.device());
  ops::copy_(out, self);
  int64_t offset =
      storage_offset.value_or(self.storage_offset()) - self.storage_offset();
  put(ops::as_strided(out, size, stride, offset), src);
  return out;
}

Tensor diag_embed(const Tensor& self,
                  int64_t offset,
                  int64_t dim1,
                  int64_t dim2) {
  int64_t rank = self.dim() + 1;
  int64_t a = wrap_dim(dim1, rank), b = wrap_dim(dim2, rank);
  TAEDA_CHECK(
      a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  int64_t size = 0;
  TAEDA_CHECK(
      offset != std::numeric_limits<int64_t>::min() &&
          !__builtin_add_overflow(self.size(-1), std::abs(offset), &size),
      "diag_embed: the offset ",
      offset,
      " is too far away");
  DimVector sizes(self.sizes());
  sizes.pop_back();
  sizes.insert(sizes.begin() + std::min(a, b), size);
  sizes.insert(sizes.begin() + std::max(a, b), size);
  Tensor out = zeros_for(self, sizes);
  ops::copy_(ops::diagonal(out, offset, a, b), self);
  return out;
}

Tensor diag(const Tensor& self, int64_t diagonal) {
  TAEDA_CHECK(self.dim() == 1 || self.dim() == 2,
              "diag(): Supports 1D or 2D tensors. Got ",
              self.dim(),
              "D");
  if (self.dim() == 1) return ops::diag_embed(self, diagonal, 0, 1);
  return ops::clone(ops::diagonal(self, diagonal, 0, 1),
                    MemoryFormat::Contiguous);
}

}  // namespace taeda::native
