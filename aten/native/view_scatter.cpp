// Copies of a tensor with a part replaced, and zeros with a part given: the
// derivatives of views.
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
#include <taeda/gen/ops/zero.h>

namespace taeda::native {

namespace {

void put(const Tensor& part, const Tensor& src) {
  TAEDA_CHECK(part.sizes() == src.sizes(),
              "expected src to have a size equal to the slice of self. src "
              "size = ",
              src.sizes(),
              ", slice size = ",
              part.sizes());
  ops::copy_(part, src);
}

// How many elements of memory a tensor reaches over.
int64_t reach(IntArrayRef sizes, IntArrayRef strides) {
  int64_t last = 0;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return 0;
    last += (sizes[d] - 1) * strides[d];
  }
  return last + 1;
}

// The result lies as self does, gaps between its elements included; where
// elements of self are one in memory, it is dense.
template <class I>
void plan_as(const Spec<I>& self, Plan<I>& plan) {
  for (int64_t d = 0; d < self.dim(); ++d) {
    auto at = static_cast<size_t>(d);
    if (self.strides()[at] == 0 && self.sizes()[at] > 1) {
      return plan.set_like(0, self, self.dtype());
    }
  }
  plan.set(0, self.sizes(), self.strides(), self.dtype());
}

}  // namespace

template <class I>
void select_backward_shape(const Spec<I>& grad_output,
                           ArrayRef<I> input_sizes,
                           int64_t,
                           I,
                           Plan<I>& plan) {
  plan.set(0, input_sizes, grad_output.dtype());
}
TAEDA_SHAPE(select_backward_shape);
void select_backward_into(const Tensor& grad_output,
                          ArrayRef<int64_t>,
                          int64_t dim,
                          int64_t index,
                          const Tensor& out) {
  ops::zero_(out);
  ops::copy_(ops::select(out, dim, index), grad_output);
}

template <class I>
void slice_backward_shape(const Spec<I>& grad_output,
                          ArrayRef<I> input_sizes,
                          int64_t,
                          I,
                          I,
                          I,
                          Plan<I>& plan) {
  plan.set(0, input_sizes, grad_output.dtype());
}
TAEDA_SHAPE(slice_backward_shape);
void slice_backward_into(const Tensor& grad_output,
                         ArrayRef<int64_t>,
                         int64_t dim,
                         int64_t start,
                         int64_t end,
                         int64_t step,
                         const Tensor& out) {
  ops::zero_(out);
  ops::copy_(ops::slice(out, dim, start, end, step), grad_output);
}

template <class I>
void diagonal_backward_shape(const Spec<I>& grad_output,
                             ArrayRef<I> input_sizes,
                             int64_t,
                             int64_t,
                             int64_t,
                             Plan<I>& plan) {
  plan.set(0, input_sizes, grad_output.dtype());
}
TAEDA_SHAPE(diagonal_backward_shape);
void diagonal_backward_into(const Tensor& grad_output,
                            ArrayRef<int64_t>,
                            int64_t offset,
                            int64_t dim1,
                            int64_t dim2,
                            const Tensor& out) {
  ops::zero_(out);
  ops::copy_(ops::diagonal(out, offset, dim1, dim2), grad_output);
}

template <class I>
void unfold_backward_shape(const Spec<I>& grad_in,
                           ArrayRef<I> input_sizes,
                           int64_t,
                           int64_t size,
                           int64_t step,
                           Plan<I>& plan) {
  TAEDA_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  TAEDA_CHECK_AS(Value, step > 0, "step is ", step, " but must be > 0");
  plan.set(0, input_sizes, grad_in.dtype());
}
TAEDA_SHAPE(unfold_backward_shape);
// Place j of every window is a slice of the input, so windows that overlap are
// added place by place.
void unfold_backward_into(const Tensor& grad_in,
                          ArrayRef<int64_t>,
                          int64_t dim,
                          int64_t size,
                          int64_t step,
                          const Tensor& out) {
  ops::zero_(out);
  if (out.dim() == 0) {
    if (size > 0) ops::copy_(out, ops::select(grad_in, 0, 0));
    return;
  }
  dim = wrap_dim(dim, out.dim());
  int64_t span = (grad_in.sizes()[dim] - 1) * step + 1;
  for (int64_t j = 0; j < size; ++j) {
    Tensor part = ops::slice(out, dim, j, j + span, step);
    ops::add_(part, ops::select(grad_in, -1, j), 1);
  }
}

template <class I>
void select_scatter_shape(
    const Spec<I>& self, const Spec<I>&, int64_t dim, I, Plan<I>& plan) {
  wrap_dim(dim, self.dim());
  plan_as(self, plan);
}
TAEDA_SHAPE(select_scatter_shape);
void select_scatter_into(const Tensor&,
                         const Tensor& src,
                         int64_t dim,
                         int64_t index,
                         const Tensor& out) {
  put(ops::select(out, dim, index), src);
}

template <class I>
void slice_scatter_shape(const Spec<I>& self,
                         const Spec<I>&,
                         int64_t dim,
                         std::optional<I>,
                         std::optional<I>,
                         I,
                         Plan<I>& plan) {
  wrap_dim(dim, self.dim());
  plan_as(self, plan);
  plan.make_out_row_major(0);
}
TAEDA_SHAPE(slice_scatter_shape);
void slice_scatter_into(const Tensor&,
                        const Tensor& src,
                        int64_t dim,
                        std::optional<int64_t> start,
                        std::optional<int64_t> end,
                        int64_t step,
                        const Tensor& out) {
  put(ops::slice(out, dim, start, end, step), src);
}

template <class I>
void diagonal_scatter_shape(const Spec<I>& self,
                            const Spec<I>&,
                            int64_t,
                            int64_t,
                            int64_t,
                            Plan<I>& plan) {
  plan_as(self, plan);
}
TAEDA_SHAPE(diagonal_scatter_shape);
void diagonal_scatter_into(const Tensor&,
                           const Tensor& src,
                           int64_t offset,
                           int64_t dim1,
                           int64_t dim2,
                           const Tensor& out) {
  put(ops::diagonal(out, offset, dim1, dim2), src);
}

template <class I>
void as_strided_scatter_shape(const Spec<I>& self,
                              const Spec<I>&,
                              ArrayRef<I> size,
                              ArrayRef<I> stride,
                              std::optional<I>,
                              Plan<I>& plan) {
  TAEDA_CHECK(
      size.size() == stride.size(),
      "as_strided_scatter: mismatch in length of strides and shape, got ",
      stride,
      " and ",
      size);
  plan_as(self, plan);
}
TAEDA_SHAPE(as_strided_scatter_shape);
void as_strided_scatter_into(const Tensor& self,
                             const Tensor& src,
                             ArrayRef<int64_t> size,
                             ArrayRef<int64_t> stride,
                             std::optional<int64_t> storage_offset,
                             const Tensor& out) {
  int64_t offset = storage_offset.value_or(self.storage_offset());
  int64_t shift = offset - self.storage_offset();
  bool inside =
      shift >= 0 && self.strides() == out.strides() &&
      shift + reach(size, stride) <= reach(self.sizes(), self.strides());
  if (inside) {
    put(ops::as_strided(out, size, stride, shift + out.storage_offset()), src);
    return;
  }
  // Places of self's storage that self does not have count too.
  int64_t all = static_cast<int64_t>(self.storage()->nbytes()) /
                static_cast<int64_t>(self.itemsize());
  Tensor whole = ops::clone(ops::as_strided(self, {all}, {1}, 0),
                            MemoryFormat::Contiguous);
  put(ops::as_strided(whole, size, stride, offset), src);
  ops::copy_(out,
             ops::as_strided(
                 whole, self.sizes(), self.strides(), self.storage_offset()));
}

template <class I>
void diag_embed_shape(const Spec<I>& self,
                      int64_t offset,
                      int64_t dim1,
                      int64_t dim2,
                      Plan<I>& plan) {
  int64_t rank = self.dim() + 1;
  int64_t a = wrap_dim(dim1, rank), b = wrap_dim(dim2, rank);
  TAEDA_CHECK(
      a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  constexpr int64_t kFar = std::numeric_limits<int64_t>::max() / 2;
  TAEDA_CHECK(offset > -kFar && offset < kFar,
              "diag_embed: the offset ",
              offset,
              " is too far away");
  I size = self.size(-1) + std::abs(offset);
  Dims<I> sizes(self.sizes());
  sizes.pop_back();
  sizes.insert(sizes.begin() + std::min(a, b), size);
  sizes.insert(sizes.begin() + std::max(a, b), size);
  plan.set(0, sizes, self.dtype());
}
TAEDA_SHAPE(diag_embed_shape);
void diag_embed_into(const Tensor& self,
                     int64_t offset,
                     int64_t dim1,
                     int64_t dim2,
                     const Tensor& out) {
  ops::zero_(out);
  ops::copy_(ops::diagonal(out, offset, dim1, dim2), self);
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
