#include <taeda/csrc/autograd/formulas_indexing.h>

#include <algorithm>
#include <cmath>

#include <taeda/aten/core/level.h>
#include <taeda/csrc/autograd/variable.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/gather.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/index.h>
#include <taeda/gen/ops/index_add.h>
#include <taeda/gen/ops/index_fill.h>
#include <taeda/gen/ops/index_put.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/masked_scatter.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/put.h>
#include <taeda/gen/ops/scatter.h>
#include <taeda/gen/ops/scatter_add.h>
#include <taeda/gen/ops/scatter_reduce.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unbind.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/sym/constant_pad_nd.h>
#include <taeda/gen/sym/expand.h>
#include <taeda/gen/sym/narrow.h>
#include <taeda/gen/sym/reshape.h>
#include <taeda/gen/sym/roll.h>

namespace taeda::autograd {

namespace {

Tensor zeros_as(const Tensor& like, SymIntArrayRef sizes) {
  return native::zeros_sized(like, sizes);
}
Tensor ones_as(const Tensor& like, SymIntArrayRef sizes) {
  return ops::add(zeros_as(like, sizes), Scalar(1), 1);
}

Tensor as_dtype(const Tensor& grad, ScalarType dtype) {
  return cast_to(real_if_needed(grad, dtype), dtype);
}

}  // namespace

std::vector<Tensor> cat_backward(const Tensor& grad,
                                 const std::vector<Dims<SymInt>>& sizes,
                                 const std::vector<ScalarType>& dtypes,
                                 int64_t dim) {
  dim = wrap_dim(dim, grad.dim());
  std::vector<Tensor> out;
  SymInt start = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i].size() == 1 && sizes[i][0] == 0) {
      out.push_back(zeros_as(grad, sizes[i]));
      continue;
    }
    const SymInt& count = sizes[i][static_cast<size_t>(dim)];
    out.push_back(as_dtype(sym::narrow(grad, dim, start, count), dtypes[i]));
    start += count;
  }
  return out;
}

std::vector<Tensor> stack_backward(const Tensor& grad,
                                   const std::vector<ScalarType>& dtypes,
                                   int64_t dim) {
  std::vector<Tensor> out = ops::unbind(grad, dim);
  for (size_t i = 0; i < out.size(); ++i) out[i] = as_dtype(out[i], dtypes[i]);
  return out;
}

Tensor roll_backward(const Tensor& grad,
                     SymIntArrayRef shifts,
                     IntArrayRef dims) {
  Dims<SymInt> back(shifts);
  for (SymInt& s : back) s = -s;
  return sym::roll(grad, back, dims);
}

Tensor repeat_backward(const Tensor& grad,
                       SymIntArrayRef repeats,
                       SymIntArrayRef sizes) {
  size_t extra = repeats.size() - sizes.size();
  Dims<SymInt> split;
  DimVector summed;
  for (size_t d = 0; d < repeats.size(); ++d) {
    if (repeats[d] == 0) return zeros_as(grad, sizes);
    summed.push_back(static_cast<int64_t>(split.size()));
    split.push_back(repeats[d]);
    split.push_back(d < extra ? SymInt(1) : sizes[d - extra]);
  }
  if (summed.empty()) return grad;
  Tensor sum = ops::sum(sym::reshape(grad, split), IntArrayRef(summed));
  return sym::reshape(sum, sizes);
}

Tensor constant_pad_backward(const Tensor& grad, SymIntArrayRef pad) {
  Dims<SymInt> back(pad);
  for (SymInt& p : back) p = -p;
  return sym::constant_pad_nd(grad, back, Scalar(0));
}

namespace {

// Adds what `count` places of grad, from `start` on, give to self's: those from
// `first` on downwards, or all to that one.
void add_border(const Tensor& sum,
                const Tensor& grad,
                int64_t dim,
                int64_t start,
                int64_t count,
                int64_t first,
                bool reflected) {
  Tensor part = ops::narrow(grad, dim, start, count);
  if (!reflected && count > 1) part = ops::sum(part, {dim}, true);
  int64_t length = reflected ? count : 1;
  Tensor to = ops::arange(Scalar(first),
                          Scalar(first - length),
                          Scalar(-1),
                          kLong,
                          std::nullopt,
                          grad.device());
  ops::index_add_(sum, dim, to, part);
}

Tensor framed_backward(const Tensor& grad,
                       int64_t dim,
                       int64_t size,
                       int64_t before,
                       int64_t after,
                       bool reflected) {
  DimVector back(static_cast<size_t>(2 * (grad.dim() - dim)), 0);
  back[back.size() - 2] = -before;
  back[back.size() - 1] = -after;
  Tensor sum = ops::constant_pad_nd(grad, back, Scalar(0));
  int64_t wide = size + before + after;
  // Cut at its other end, a dim may be shorter than the border.
  if (before > 0) {
    int64_t first = reflected ? before : 0;
    add_border(sum, grad, dim, 0, std::min(before, wide), first, reflected);
  }
  if (after > 0) {
    int64_t count = std::min(after, wide);
    int64_t first = reflected ? size - 2 - (after - count) : size - 1;
    add_border(sum, grad, dim, wide - count, count, first, reflected);
  }
  return sum;
}

}  // namespace

Tensor framed_backward(const Tensor& grad,
                       SymIntArrayRef sizes,
                       SymIntArrayRef padding,
                       bool reflected) {
  Tensor out = grad;
  for (size_t i = 0; 2 * i < padding.size(); ++i) {
    int64_t before = padding[2 * i].guard(), after = padding[2 * i + 1].guard();
    if (before == 0 && after == 0) continue;
    size_t d = sizes.size() - 1 - i;
    out = framed_backward(out,
                          static_cast<int64_t>(d),
                          sizes[d].guard(),
                          before,
                          after,
                          reflected);
  }
  return out;
}

// Indexing -------------------------------------------------------------------

Tensor index_backward(const Tensor& grad,
                      SymIntArrayRef sizes,
                      ArrayRef<OptionalTensor> indices) {
  return ops::index_put(zeros_as(grad, sizes), indices, grad, true);
}

Tensor index_put_self_backward(const Tensor& grad,
                               ArrayRef<OptionalTensor> indices,
                               SymIntArrayRef,
                               bool accumulate) {
  if (accumulate) return grad;
  return ops::index_put(grad, indices, zeros_as(grad, {}), false);
}

Tensor index_put_values_backward(const Tensor& grad,
                                 ArrayRef<OptionalTensor> indices,
                                 SymIntArrayRef value_sizes) {
  Tensor values = ops::index(grad, indices);
  while (static_cast<int64_t>(value_sizes.size()) > values.dim()) {
    values = ops::unsqueeze(values, 0);
  }
  return sum_to(values, value_sizes);
}

Tensor index_select_grad(const Tensor& grad,
                         SymIntArrayRef sizes,
                         int64_t dim,
                         const Tensor& index) {
  return ops::index_add(zeros_as(grad, sizes), dim, index, grad);
}

Tensor index_add_source_backward(const Tensor& grad,
                                 SymIntArrayRef source_sizes,
                                 int64_t dim,
                                 const Tensor& index,
                                 const Scalar& alpha) {
  Tensor part = sym::reshape(ops::index_select(grad, dim, index), source_sizes);
  return alpha.equal(1.0) ? part : ops::mul(part, alpha);
}

Tensor index_copy_source_backward(const Tensor& grad,
                                  SymIntArrayRef source_sizes,
                                  int64_t dim,
                                  const Tensor& index) {
  return sym::reshape(ops::index_select(grad, dim, index), source_sizes);
}

Tensor index_fill_value_backward(const Tensor& grad,
                                 int64_t dim,
                                 const Tensor& index,
                                 ScalarType dtype) {
  // A position that is named twice counts once.
  Tensor rest = ops::index_fill(grad, dim, index, Scalar(0));
  return as_dtype(ops::sum(ops::sub(grad, rest, 1)), dtype);
}

Tensor gather_backward(const Tensor& grad,
                       SymIntArrayRef sizes,
                       int64_t dim,
                       const Tensor& index) {
  return ops::scatter_add(zeros_as(grad, sizes), dim, index, grad);
}

namespace {

using Pair = std::tuple<Tensor, Tensor>;

// The gradient goes in equal parts to all elements that are the extremum.
Pair extremum_grads(const Tensor& grad,
                    const Tensor& self,
                    int64_t dim,
                    const Tensor& index,
                    const Tensor& src,
                    const Tensor& result) {
  Tensor mine = cast_to(ops::eq(self, result), grad.dtype());
  Tensor picked = ops::gather(result, dim, index, false);
  Tensor theirs = cast_to(ops::eq(src, picked), grad.dtype());
  Tensor shares = ops::scatter_add(mine, dim, index, theirs);
  Tensor part = ops::div(grad, shares);
  return {ops::mul(mine, part),
          ops::mul(theirs, ops::gather(part, dim, index, false))};
}

// Several zeros at one place give each other second derivatives, of which the
// gradient below knows nothing: differentiating it is refused there.
Tensor without_second(const Tensor& src_grad, const Tensor& zeros) {
  if (!src_grad.requires_grad() || meets_python(zeros) || zeros.is_meta() ||
      wrapped_or_null(zeros) != nullptr ||
      !ops::item(ops::any(ops::gt(zeros, Scalar(1)))).to_bool()) {
    return src_grad;
  }
  Tensor out = detach(src_grad);
  auto node = make_intrusive<ErrorNode>(
      "Double backward is unsupported for src of scatter_reduce and "
      "index_reduce by products where several zeros come to one place");
  node->add_next_edge(gradient_edge(src_grad));
  set_history(out, node);
  return out;
}

Pair product_grads(const Tensor& grad,
                   const Tensor& self,
                   int64_t dim,
                   const Tensor& index,
                   const Tensor& src,
                   const Tensor& result) {
  Tensor zero = ops::eq(self, Scalar(0));
  // Without self the product of the others is that of a self of ones.
  Tensor others = ops::scatter_reduce(
      ops::masked_fill(self, zero, Scalar(1)), dim, index, src, "prod", true);
  Tensor self_grad =
      ops::div(ops::mul(grad, others), ops::masked_fill(self, zero, Scalar(1)));
  Tensor src_zero = ops::eq(src, Scalar(0));
  Tensor zeros = ops::scatter_add(zeros_as(src, symbolic_sizes(self)),
                                  dim,
                                  index,
                                  cast_to(src_zero, src.dtype()));
  // One zero among the sources of a place: only it has a gradient, the product
  // of all the others.
  Tensor rest = ops::scatter_reduce(self,
                                    dim,
                                    index,
                                    ops::masked_fill(src, src_zero, Scalar(1)),
                                    "prod",
                                    true);
  Tensor single = ops::gather(ops::eq(zeros, Scalar(1)), dim, index, false);
  Tensor usual =
      ops::div(ops::gather(ops::mul(grad, result), dim, index, false),
               ops::masked_fill(src, src_zero, Scalar(1)));
  Tensor lonely = ops::gather(ops::mul(grad, rest), dim, index, false);
  Tensor at_zero = cast_to(src_zero, src.dtype());
  Tensor of_single = ops::mul(cast_to(single, src.dtype()), lonely);
  Tensor src_grad = ops::add(ops::masked_fill(usual, src_zero, Scalar(0)),
                             ops::mul(at_zero, of_single),
                             1);
  return {self_grad, without_second(src_grad, zeros)};
}

Pair mean_grads(const Tensor& grad,
                int64_t dim,
                const Tensor& index,
                bool include_self) {
  Tensor start = include_self ? ones_as(grad, symbolic_sizes(grad))
                              : zeros_as(grad, symbolic_sizes(grad));
  Tensor counts =
      ops::scatter_add(start, dim, index, ones_as(grad, symbolic_sizes(index)));
  counts = ops::masked_fill(counts, ops::eq(counts, Scalar(0)), Scalar(1));
  Tensor part = ops::div(grad, counts);
  return {part, ops::gather(part, dim, index, false)};
}

}  // namespace

std::tuple<Tensor, Tensor> scatter_reduce_backward(const Tensor& grad,
                                                   const Tensor& self,
                                                   int64_t dim,
                                                   const Tensor& index,
                                                   const Tensor& src,
                                                   const std::string& reduce,
                                                   bool include_self,
                                                   const Tensor& result) {
  if (native::has_no_elements(self)) {
    return {zeros_as(self, symbolic_sizes(self)),
            zeros_as(src, symbolic_sizes(src))};
  }
  Pair grads;
  if (reduce == "sum") {
    grads = {grad, ops::gather(grad, dim, index, false)};
  } else if (reduce == "mean") {
    grads = mean_grads(grad, dim, index, include_self);
  } else {
    Tensor start = self;
    if (!include_self) {
      Scalar unit = reduce == "prod"   ? Scalar(1.0)
                    : reduce == "amax" ? Scalar(-INFINITY)
                                       : Scalar(INFINITY);
      start = ops::scatter(self, dim, index, unit);
    }
    grads = reduce == "prod"
                ? product_grads(grad, start, dim, index, src, result)
                : extremum_grads(grad, start, dim, index, src, result);
  }
  if (!include_self) {
    std::get<0>(grads) =
        ops::scatter(std::get<0>(grads), dim, index, Scalar(0));
  }
  return grads;
}

std::tuple<Tensor, Tensor> index_reduce_backward(const Tensor& grad,
                                                 const Tensor& self,
                                                 int64_t dim,
                                                 const Tensor& index,
                                                 const Tensor& source,
                                                 const std::string& reduce,
                                                 bool include_self,
                                                 const Tensor& result) {
  // Every element of a slice goes to the slice's position: a scatter.
  Dims<SymInt> line(static_cast<size_t>(source.dim()), SymInt(1));
  if (!line.empty()) {
    line[wrap_dim(dim, source.dim())] = sym_numel(*index.impl());
  }
  Tensor at = sym::expand(sym::reshape(cast_to(index, kLong), line),
                          symbolic_sizes(source));
  return scatter_reduce_backward(
      grad, self, dim, at, source, reduce, include_self, result);
}

Tensor take_backward(const Tensor& grad,
                     SymIntArrayRef sizes,
                     const Tensor& index) {
  return ops::put(zeros_as(grad, sizes), index, grad, true);
}

Tensor put_self_backward(const Tensor& grad,
                         const Tensor& index,
                         bool accumulate) {
  if (accumulate) return grad;
  return ops::put(grad, index, zeros_as(grad, symbolic_sizes(index)), false);
}

Tensor masked_select_grad(const Tensor& grad,
                          SymIntArrayRef sizes,
                          const Tensor& mask) {
  Dims<SymInt> shape =
      broadcast_shapes<SymInt>("masked_select", sizes, symbolic_sizes(mask));
  Tensor wide = ops::masked_scatter(
      zeros_as(grad, shape), sym::expand(mask, shape), grad);
  return sum_to(wide, sizes);
}

}  // namespace taeda::autograd
