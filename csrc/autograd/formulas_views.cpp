#include <taeda/csrc/autograd/formulas_views.h>

#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/as_strided.h>
#include <taeda/gen/ops/as_strided_scatter.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/copy.h>
#include <taeda/gen/ops/diagonal_scatter.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/fill.h>
#include <taeda/gen/ops/index_add.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/select_scatter.h>
#include <taeda/gen/ops/slice_backward.h>
#include <taeda/gen/ops/slice_scatter.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/zeros.h>

namespace taeda::autograd {

namespace {

Tensor zeros_as(const Tensor& grad, IntArrayRef sizes) {
  return ops::zeros(
      sizes, grad.dtype(), std::nullopt, grad.device(), std::nullopt);
}

const Tensor& first_defined(const Tensors& grads) {
  for (const Tensor& g : grads) {
    if (g.defined()) return g;
  }
  return grads[0];
}

}  // namespace

Tensor permute_backward(const Tensor& grad, IntArrayRef dims) {
  DimVector inverse(dims.size());
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], static_cast<int64_t>(dims.size()));
    inverse[static_cast<size_t>(d)] = static_cast<int64_t>(i);
  }
  return ops::permute(grad, inverse);
}

Tensor slice_backward(const Tensor& grad,
                      IntArrayRef sizes,
                      int64_t dim,
                      std::optional<int64_t> start,
                      std::optional<int64_t> end,
                      int64_t step) {
  return ops::slice_backward(
      grad, sizes, dim, start.value_or(0), end.value_or(INT64_MAX), step);
}

// Several outputs ------------------------------------------------------------

Tensor split_with_sizes_backward(const Tensors& grads,
                                 IntArrayRef sizes,
                                 IntArrayRef split_sizes,
                                 int64_t dim) {
  dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  const Tensor& like = first_defined(grads);
  Tensors parts;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) {
      parts.push_back(grads[i]);
      continue;
    }
    DimVector part(sizes);
    part[static_cast<size_t>(dim)] = split_sizes[i];
    parts.push_back(zeros_as(like, part));
  }
  return ops::cat(parts, dim);
}

Tensor split_backward(const Tensors& grads,
                      IntArrayRef sizes,
                      int64_t split_size,
                      int64_t dim) {
  dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  DimVector parts(grads.size(), split_size);
  int64_t whole = sizes[static_cast<size_t>(dim)];
  parts.back() = whole - split_size * static_cast<int64_t>(grads.size() - 1);
  return split_with_sizes_backward(grads, sizes, parts, dim);
}

Tensor unbind_backward(const Tensors& grads, int64_t dim) {
  const Tensor& like = first_defined(grads);
  Tensors parts;
  for (const Tensor& g : grads) {
    parts.push_back(g.defined() ? g : zeros_as(like, like.sizes()));
  }
  return ops::stack(parts, dim);
}

// Scatters -------------------------------------------------------------------

Tensor select_scatter_backward(const Tensor& grad,
                               IntArrayRef src_sizes,
                               int64_t dim,
                               int64_t index) {
  return ops::select_scatter(grad, zeros_as(grad, src_sizes), dim, index);
}

Tensor slice_scatter_backward(const Tensor& grad,
                              IntArrayRef src_sizes,
                              int64_t dim,
                              std::optional<int64_t> start,
                              std::optional<int64_t> end,
                              int64_t step) {
  Tensor zero = zeros_as(grad, src_sizes);
  return ops::slice_scatter(grad, zero, dim, start, end, step);
}

Tensor diagonal_scatter_backward(const Tensor& grad,
                                 IntArrayRef src_sizes,
                                 int64_t offset,
                                 int64_t dim1,
                                 int64_t dim2) {
  Tensor zero = zeros_as(grad, src_sizes);
  return ops::diagonal_scatter(grad, zero, offset, dim1, dim2);
}

namespace {

// The gradient with the strides of the tensor it belongs to.
Tensor laid_out(const Tensor& grad, const TensorGeometry& input) {
  Tensor shaped = empty_beside(grad, input.sizes, input.strides);
  return ops::copy(shaped, grad);
}

}  // namespace

Tensor as_strided_of(const Tensor& grad,
                     const TensorGeometry& input,
                     IntArrayRef sizes,
                     IntArrayRef strides,
                     std::optional<int64_t> storage_offset) {
  int64_t offset = storage_offset.value_or(input.storage_offset);
  return ops::as_strided(
      laid_out(grad, input), sizes, strides, offset - input.storage_offset);
}

Tensor as_strided_scatter_backward(const Tensor& grad,
                                   const TensorGeometry& input,
                                   IntArrayRef src_sizes,
                                   IntArrayRef sizes,
                                   IntArrayRef strides,
                                   std::optional<int64_t> storage_offset) {
  int64_t offset = storage_offset.value_or(input.storage_offset);
  return ops::as_strided_scatter(laid_out(grad, input),
                                 zeros_as(grad, src_sizes),
                                 sizes,
                                 strides,
                                 offset - input.storage_offset);
}

// as_strided
// ------------------------------------------------------------------------

namespace {

int64_t end_of(IntArrayRef sizes, IntArrayRef strides, int64_t offset) {
  int64_t end = offset + 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 0) return offset;
    end += (sizes[d] - 1) * strides[d];
  }
  return end;
}

// Whether two places of the geometry may be one element: not when each stride
// clears everything below it.
bool may_overlap(IntArrayRef sizes, IntArrayRef strides) {
  SmallVector<std::pair<int64_t, int64_t>, 8> dims;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] > 1) dims.push_back({strides[d], sizes[d]});
  }
  std::sort(dims.begin(), dims.end());
  int64_t reach = 0;
  for (auto [stride, size] : dims) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

Tensor places(const Tensor& like,
              int64_t count,
              IntArrayRef sizes,
              IntArrayRef strides,
              int64_t offset) {
  Tensor all = ops::arange(
      Scalar(count), kLong, std::nullopt, like.device(), std::nullopt);
  return ops::reshape(ops::as_strided(all, sizes, strides, offset), {-1});
}

}  // namespace

// The storage's gradient is the sum over the places that read an element; where
// several elements of the input are one of the storage, each gets its share.
Tensor as_strided_grad(const Tensor& grad,
                       const TensorGeometry& input,
                       IntArrayRef sizes,
                       IntArrayRef strides,
                       std::optional<int64_t> storage_offset) {
  int64_t out_offset = storage_offset.value_or(input.storage_offset);
  int64_t first = std::min(out_offset, input.storage_offset);
  int64_t out_start = out_offset - first;
  int64_t in_start = input.storage_offset - first;
  int64_t count = std::max(end_of(sizes, strides, out_start),
                           end_of(input.sizes, input.strides, in_start));
  Tensor index = places(grad, count, sizes, strides, out_start);
  Tensor flat = ops::index_add(
      zeros_as(grad, {count}), 0, index, ops::reshape(grad, {-1}));
  if (may_overlap(input.sizes, input.strides)) {
    Tensor in = places(grad, count, input.sizes, input.strides, in_start);
    auto numbers = [&](IntArrayRef shape) {
      ScalarType type = real_type_of(grad.dtype());
      return ops::zeros(shape, type, std::nullopt, grad.device(), std::nullopt);
    };
    Tensor ones = numbers(in.sizes());
    ops::fill_(ones, Scalar(1));
    Tensor shares = ops::index_add(numbers({count}), 0, in, ones);
    flat = ops::div(flat, ops::clamp_min(shares, Scalar(1)));
  }
  return ops::as_strided(flat, input.sizes, input.strides, in_start);
}

}  // namespace taeda::autograd
