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
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/zeros.h>
#include <taeda/gen/ops/zeros_like.h>
#include <taeda/gen/sym/select_scatter.h>
#include <taeda/gen/sym/slice_backward.h>
#include <taeda/gen/sym/slice_scatter.h>

namespace taeda::autograd {

namespace {

Tensor zeros_as(const Tensor& grad, SymIntArrayRef sizes) {
  return native::zeros_sized(grad, sizes);
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
                      SymIntArrayRef sizes,
                      int64_t dim,
                      const std::optional<SymInt>& start,
                      const std::optional<SymInt>& end,
                      const SymInt& step) {
  return sym::slice_backward(
      grad, sizes, dim, start.value_or(0), end.value_or(INT64_MAX), step);
}

// Several outputs ------------------------------------------------------------

Tensor split_with_sizes_backward(const Tensors& grads,
                                 SymIntArrayRef sizes,
                                 SymIntArrayRef split_sizes,
                                 int64_t dim) {
  dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  const Tensor& like = first_defined(grads);
  Tensors parts;
  for (size_t i = 0; i < grads.size(); ++i) {
    if (grads[i].defined()) {
      parts.push_back(grads[i]);
      continue;
    }
    Dims<SymInt> part(sizes);
    part[static_cast<size_t>(dim)] = split_sizes[i];
    parts.push_back(zeros_as(like, part));
  }
  return ops::cat(parts, dim);
}

Tensor split_backward(const Tensors& grads,
                      SymIntArrayRef sizes,
                      const SymInt& split_size,
                      int64_t dim) {
  dim = wrap_dim(dim, static_cast<int64_t>(sizes.size()));
  Dims<SymInt> parts(grads.size(), split_size);
  auto others = static_cast<int64_t>(grads.size() - 1);
  parts.back() = sizes[static_cast<size_t>(dim)] - split_size * SymInt(others);
  return split_with_sizes_backward(grads, sizes, parts, dim);
}

Tensor unbind_backward(const Tensors& grads, int64_t dim) {
  const Tensor& like = first_defined(grads);
  Tensors parts;
  for (const Tensor& g : grads) {
    parts.push_back(g.defined() ? g : ops::zeros_like(like));
  }
  return ops::stack(parts, dim);
}

// Scatters -------------------------------------------------------------------

Tensor select_scatter_backward(const Tensor& grad,
                               SymIntArrayRef src_sizes,
                               int64_t dim,
                               const SymInt& index) {
  return sym::select_scatter(grad, zeros_as(grad, src_sizes), dim, index);
}

Tensor slice_scatter_backward(const Tensor& grad,
                              SymIntArrayRef src_sizes,
                              int64_t dim,
                              const std::optional<SymInt>& start,
                              const std::optional<SymInt>& end,
                              const SymInt& step) {
  Tensor zero = zeros_as(grad, src_sizes);
  return sym::slice_scatter(grad, zero, dim, start, end, step);
}

Tensor diagonal_scatter_backward(const Tensor& grad,
                                 SymIntArrayRef src_sizes,
                                 int64_t offset,
                                 int64_t dim1,
                                 int64_t dim2) {
  Tensor zero = zeros_as(grad, src_sizes);
  return ops::diagonal_scatter(grad, zero, offset, dim1, dim2);
}

namespace {

// Places in memory are integers: here symbols are fixed.
DimVector fixed(SymIntArrayRef list) {
  DimVector out;
  for (const SymInt& v : list) out.push_back(v.guard());
  return out;
}
int64_t fixed(const std::optional<SymInt>& offset, int64_t otherwise) {
  return offset ? offset->guard() : otherwise;
}

// The gradient with the strides of the tensor it belongs to.
Tensor laid_out(const Tensor& grad, const TensorGeometry& input) {
  Tensor shaped = empty_beside(grad, input.sizes, input.strides);
  return ops::copy(shaped, grad);
}

}  // namespace

Tensor as_strided_of(const Tensor& grad,
                     const TensorGeometry& input,
                     SymIntArrayRef sizes,
                     SymIntArrayRef strides,
                     const std::optional<SymInt>& storage_offset) {
  int64_t offset = fixed(storage_offset, input.storage_offset);
  return ops::as_strided(laid_out(grad, input),
                         fixed(sizes),
                         fixed(strides),
                         offset - input.storage_offset);
}

Tensor as_strided_scatter_backward(
    const Tensor& grad,
    const TensorGeometry& input,
    SymIntArrayRef src_sizes,
    SymIntArrayRef sizes,
    SymIntArrayRef strides,
    const std::optional<SymInt>& storage_offset) {
  int64_t offset = fixed(storage_offset, input.storage_offset);
  return ops::as_strided_scatter(laid_out(grad, input),
                                 zeros_as(grad, src_sizes),
                                 fixed(sizes),
                                 fixed(strides),
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

// Not where each stride clears everything below it.
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

// The storage's gradient is the sum over the places that read an element; where
// several elements of the input are one of the storage, each gets its share.
Tensor as_strided_grad(const Tensor& grad,
                       const TensorGeometry& input,
                       SymIntArrayRef view_sizes,
                       SymIntArrayRef view_strides,
                       const std::optional<SymInt>& storage_offset) {
  DimVector sizes = fixed(view_sizes), strides = fixed(view_strides);
  int64_t out_offset = fixed(storage_offset, input.storage_offset);
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
