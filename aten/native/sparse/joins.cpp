// Sparse tensors side by side.
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/zeros.h>

namespace taeda::native {

namespace {

// Places with `by` added to row `d`.
Tensor moved(const Tensor& indices, int64_t d, int64_t by) {
  Tensor places = ops::clone(indices);
  ops::add_(ops::select(places, 0, d), Scalar(by));
  return places;
}

// `values` [n, ...] among zeros, `before` of them along a dim of `size`.
Tensor padded(const Tensor& values, int64_t dim, int64_t before, int64_t size) {
  DimVector front(values.sizes()), back(values.sizes());
  size_t d = static_cast<size_t>(dim);
  back[d] = size - before - values.size(dim);
  front[d] = before;
  auto zeros = [&](const DimVector& sizes) {
    return ops::zeros(sizes, values.dtype(), std::nullopt, values.device());
  };
  return ops::cat({zeros(front), values, zeros(back)}, dim);
}

Tensor cat_sparse(TensorList tensors, int64_t dim) {
  const Tensor& first = tensors[0];
  for (const Tensor& t : tensors) {
    TAEDA_CHECK(is_coo(t) && sparse_dims(t) == sparse_dims(first),
                "concatenating sparse tensors, but a tensor of layout ",
                layout_word(t.layout()),
                " was found, or one with other sparse dims");
  }
  int64_t d = wrap_dim(dim, first.dim()), sparse = sparse_dims(first);
  DimVector sizes(first.sizes());
  int64_t total = 0;
  for (const Tensor& t : tensors) {
    TAEDA_CHECK(t.dim() == first.dim(),
                "All tensors must have the same number of dims");
    for (int64_t i = 0; i < t.dim(); ++i) {
      TAEDA_CHECK(i == d || t.size(i) == first.size(i),
                  "All tensors must have the same shape: ",
                  first.sizes(),
                  " except in dimension ",
                  d,
                  ", got ",
                  t.sizes());
    }
    total += t.size(d);
  }
  sizes[static_cast<size_t>(d)] = total;
  std::vector<Tensor> indices, values;
  int64_t before = 0;
  for (const Tensor& t : tensors) {
    const SparseParts& p = parts_of(t);
    indices.push_back(d < sparse ? moved(p.indices, d, before) : p.indices);
    values.push_back(d < sparse
                         ? p.values
                         : padded(p.values, d - sparse + 1, before, total));
    before += t.size(d);
  }
  return make_coo(
      ops::cat(indices, 1), ops::cat(values, 0), sizes, /*coalesced=*/false);
}

Tensor stack_sparse(TensorList tensors, int64_t dim) {
  std::vector<Tensor> parts;
  for (const Tensor& t : tensors) parts.push_back(ops::unsqueeze(t, dim));
  return cat_sparse(parts, wrap_dim(dim, tensors[0].dim() + 1));
}

}  // namespace

void add_joins(Library& m) {
  m.impl("cat", cat_sparse);
  m.impl("stack", stack_sparse);
}

}  // namespace taeda::native
