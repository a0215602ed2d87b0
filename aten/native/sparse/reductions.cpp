// Sums, softmax and what gathers entries by their places.
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/gen/native/_sparse_log_softmax.h>
#include <taeda/gen/native/_sparse_log_softmax_backward_data.h>
#include <taeda/gen/native/_sparse_mm_reduce_impl.h>
#include <taeda/gen/native/_sparse_softmax.h>
#include <taeda/gen/native/_sparse_softmax_backward_data.h>
#include <taeda/gen/native/_sparse_sum.h>
#include <taeda/gen/native/embedding_sparse_backward.h>
#include <taeda/gen/ops/_log_softmax.h>
#include <taeda/gen/ops/_log_softmax_backward_data.h>
#include <taeda/gen/ops/_softmax.h>
#include <taeda/gen/ops/_softmax_backward_data.h>
#include <taeda/gen/ops/_sparse_log_softmax.h>
#include <taeda/gen/ops/_sparse_softmax.h>
#include <taeda/gen/ops/_sparse_sum.h>
#include <taeda/gen/ops/_unique2.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/coalesce.h>
#include <taeda/gen/ops/diff.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/index_add.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/linalg_vector_norm.h>
#include <taeda/gen/ops/log.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/ne.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/scatter_reduce.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sparse_mask.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/values.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros.h>

#include <limits>

namespace taeda::native {

namespace {

using Dtype = std::optional<ScalarType>;

// Sums
// ------------------------------------------------------------------------

// Along dims, of which every sparse one leaves the places.
Tensor sum_along(const Tensor& given,
                 IntArrayRef dims,
                 bool keepdim,
                 Dtype dtype) {
  Tensor self = to_coo(given);
  const SparseParts& p = parts_of(self);
  int64_t sparse = sparse_dims(self);
  // A tensor without dims is reduced along dim 0 or -1, too.
  size_t rank = static_cast<size_t>(std::max<int64_t>(self.dim(), 1));
  std::vector<bool> gone(rank, dims.empty());
  for (int64_t d : dims) {
    int64_t at = wrap_dim(d, self.dim());
    TAEDA_CHECK(!gone[static_cast<size_t>(at)],
                "sum: dim ",
                at,
                " appears multiple times in the list of dims");
    gone[static_cast<size_t>(at)] = true;
  }
  DimVector inner, sizes;
  std::vector<Tensor> rows;
  bool all_sparse = true, none_sparse = true;
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool out = gone[static_cast<size_t>(d)];
    if (!out || keepdim) sizes.push_back(out ? 1 : self.size(d));
    if (d >= sparse) {
      if (out) inner.push_back(d - sparse + 1);
    } else if (!out) {
      rows.push_back(ops::select(p.indices, 0, d));
      all_sparse = false;
    } else {
      none_sparse = false;
      if (keepdim) {
        rows.push_back(
            ops::zeros({p.values.size(0)}, kLong, {}, self.device()));
      }
    }
  }
  Tensor values = p.values;
  if (dtype) values = ops::to(values, *dtype);
  if (is_integral(values.dtype(), /*include_bool=*/true) && !dtype) {
    values = ops::to(values, kLong);
  }
  if (!inner.empty()) values = ops::sum(values, inner, keepdim);
  if (none_sparse && sparse > 0) {
    return make_coo(p.indices, values, sizes, p.coalesced);
  }
  if (all_sparse && !keepdim) return ops::sum(values, IntArrayRef{0});
  return coalesced(make_coo(ops::stack(rows), values, sizes, false));
}

Tensor sum_all(const Tensor& self, Dtype dtype) {
  return ops::sum(parts_of(self).values, dtype);
}

Tensor sum_dims(const Tensor& self,
                std::optional<IntArrayRef> dims,
                bool keepdim,
                Dtype dtype) {
  TAEDA_CHECK(is_coo(self) || keepdim,
              "reduction operations on CSR tensors with keepdim=False is "
              "unsupported");
  Tensor sum = sum_along(self, dims.value_or(IntArrayRef()), keepdim, dtype);
  return is_coo(self) || !is_sparse(sum) ? sum : to_layout_of(sum, self);
}

Tensor norm_sparse(const Tensor& self,
                   const Scalar& order,
                   std::optional<IntArrayRef> dims,
                   bool keepdim,
                   Dtype dtype) {
  TAEDA_CHECK_AS(NotImplemented,
                 !dims || dims->empty(),
                 "linalg_vector_norm: the norm of a sparse tensor along dims ",
                 dims.value_or(IntArrayRef()));
  Tensor t = is_coo(self) ? coalesced(self) : self;
  Tensor norm = ops::linalg_vector_norm(
      parts_of(t).values, order, std::nullopt, false, dtype);
  if (!keepdim) return norm;
  return ops::reshape(norm, DimVector(static_cast<size_t>(self.dim()), 1));
}

Tensor any_sparse(const Tensor& self) {
  return ops::any(parts_of(self).values);
}

// Softmax
// ---------------------------------------------------------------------

// Which entries share their place along all sparse dims but `dim`.
struct Groups {
  Tensor number;
  int64_t count;
};
Groups groups_along(const Tensor& t, int64_t dim) {
  const SparseParts& p = parts_of(t);
  std::vector<Tensor> rows;
  DimVector sizes;
  for (int64_t d = 0; d < sparse_dims(t); ++d) {
    if (d == dim) continue;
    rows.push_back(ops::select(p.indices, 0, d));
    sizes.push_back(t.size(d));
  }
  if (rows.empty()) {
    return {ops::zeros({p.values.size(0)}, kLong, {}, t.device()), 1};
  }
  auto [which, number, unused] =
      ops::_unique2(numbers_of(ops::stack(rows), sizes), true, true, false);
  return {number, which.size(0)};
}

Tensor sums_of(const Tensor& values, const Groups& g) {
  Tensor sums = ops::zeros(sizes_after(g.count, last_sizes(values, 1)),
                           values.dtype(),
                           std::nullopt,
                           values.device());
  ops::index_add_(sums, 0, g.number, values);
  return ops::index_select(sums, 0, g.number);
}

// `number` [n] with the sizes of `values` [n, ...].
Tensor beside(const Tensor& number, const Tensor& values) {
  DimVector column(static_cast<size_t>(values.dim()), 1);
  column[0] = values.size(0);
  return ops::expand(ops::reshape(number, column), values.sizes());
}

// Values less the largest of their group.
Tensor shifted(const Tensor& values, const Groups& g) {
  Tensor tops = ops::full(sizes_after(g.count, last_sizes(values, 1)),
                          Scalar(-std::numeric_limits<double>::infinity()),
                          values.dtype(),
                          std::nullopt,
                          values.device());
  tops = ops::scatter_reduce(tops, 0, beside(g.number, values), values, "amax");
  return ops::sub(values, ops::index_select(tops, 0, g.number));
}

int64_t checked_dim(std::string_view op, const Tensor& t, int64_t dim) {
  TAEDA_CHECK(is_coo(t),
              op,
              ": expected a tensor in coordinate layout, got ",
              layout_word(t.layout()));
  TAEDA_CHECK(is_floating(t.dtype()),
              op,
              ": expected a floating dtype, got ",
              dtype_name(t.dtype()));
  return wrap_dim(dim, t.dim());
}

Tensor in_dtype(const Tensor& t, Dtype dtype) {
  return dtype ? ops::to(t, *dtype) : t;
}

}  // namespace

Tensor sparse_softmax(const Tensor& self, int64_t dim, Dtype dtype) {
  return ops::_sparse_softmax(in_dtype(self, dtype), dim, false);
}
Tensor sparse_log_softmax(const Tensor& self, int64_t dim, Dtype dtype) {
  return ops::_sparse_log_softmax(in_dtype(self, dtype), dim, false);
}

Tensor sparse_softmax(const Tensor& given, int64_t dim, bool) {
  int64_t d = checked_dim("softmax", given, dim);
  Tensor self = coalesced(given);
  const Tensor& values = parts_of(self).values;
  int64_t inner = d - sparse_dims(self) + 1;
  if (inner > 0) return with_values(self, ops::_softmax(values, inner, false));
  if (values.numel() == 0) return self;
  Groups g = groups_along(self, d);
  Tensor e = ops::exp(shifted(values, g));
  return with_values(self, ops::div(e, sums_of(e, g)));
}

Tensor sparse_log_softmax(const Tensor& given, int64_t dim, bool) {
  int64_t d = checked_dim("log_softmax", given, dim);
  Tensor self = coalesced(given);
  const Tensor& values = parts_of(self).values;
  int64_t inner = d - sparse_dims(self) + 1;
  if (inner > 0) {
    return with_values(self, ops::_log_softmax(values, inner, false));
  }
  if (values.numel() == 0) return self;
  Groups g = groups_along(self, d);
  Tensor below = shifted(values, g);
  Tensor total = sums_of(ops::exp(below), g);
  return with_values(self, ops::sub(below, ops::log(total)));
}

Tensor sparse_softmax_backward(const Tensor& grad,
                               const Tensor& output,
                               int64_t dim,
                               const Tensor& self) {
  int64_t d = wrap_dim(dim, self.dim());
  const Tensor& y = parts_of(output).values;
  const Tensor here = ops::sparse_mask(grad, output);
  const Tensor& g = parts_of(here).values;
  int64_t inner = d - sparse_dims(output) + 1;
  if (inner > 0) {
    return with_values(output,
                       ops::_softmax_backward_data(g, y, inner, self.dtype()));
  }
  Tensor total = sums_of(ops::mul(g, y), groups_along(output, d));
  return with_values(output, ops::mul(y, ops::sub(g, total)));
}

Tensor sparse_log_softmax_backward(const Tensor& grad,
                                   const Tensor& output,
                                   int64_t dim,
                                   const Tensor& self) {
  int64_t d = wrap_dim(dim, self.dim());
  const Tensor& y = parts_of(output).values;
  const Tensor here = ops::sparse_mask(grad, output);
  const Tensor& g = parts_of(here).values;
  int64_t inner = d - sparse_dims(output) + 1;
  if (inner > 0) {
    return with_values(
        output, ops::_log_softmax_backward_data(g, y, inner, self.dtype()));
  }
  Tensor total = sums_of(g, groups_along(output, d));
  return with_values(output, ops::sub(g, ops::mul(ops::exp(y), total)));
}

// taeda.sparse.sum
// ------------------------------------------------------------

Tensor sparse_sum(const Tensor& self) {
  return ops::sum(ops::values(ops::coalesce(self)));
}
Tensor sparse_sum(const Tensor& self, ScalarType dtype) {
  return ops::sum(ops::values(ops::coalesce(self)), dtype);
}
Tensor sparse_sum(const Tensor& self, IntArrayRef dim, ScalarType dtype) {
  return ops::_sparse_sum(ops::to(self, dtype), dim);
}
// Integers keep their dtype here.
Tensor sparse_sum_dims(const Tensor& self, IntArrayRef dim) {
  TAEDA_CHECK_AS(NotImplemented,
                 is_sparse(self),
                 "_sparse_sum: expected a sparse tensor, got ",
                 layout_word(self.layout()));
  return sum_along(self, dim, /*keepdim=*/false, self.dtype());
}

// Products joined by a reduction
// -------------------------------------------------

std::tuple<Tensor, Tensor> sparse_mm_reduce(const Tensor& self,
                                            const Tensor& other,
                                            std::string_view reduce) {
  TAEDA_CHECK(self.layout() == Layout::SparseCsr,
              "sparse.mm: expect self to be SparseCsr, got ",
              layout_word(self.layout()));
  TAEDA_CHECK(
      self.dim() == 2 && other.dim() == 2 && self.size(1) == other.size(0),
      "mat1 and mat2 shapes cannot be multiplied (",
      self.sizes(),
      " and ",
      other.sizes(),
      ")");
  TAEDA_CHECK(reduce == "sum" || reduce == "mean" || reduce == "amax" ||
                  reduce == "amin",
              "sparse.mm: expected a reduction of sum, mean, amax, amin, got ",
              reduce);
  const Tensor coo = to_coo(self);
  const SparseParts& p = parts_of(coo);
  Tensor row = ops::select(p.indices, 0, 0);
  Tensor column = ops::select(p.indices, 0, 1);
  Tensor terms = ops::mul(ops::unsqueeze(p.values, 1),
                          ops::index_select(other, 0, column));
  Tensor out = ops::zeros({self.size(0), other.size(1)},
                          terms.dtype(),
                          std::nullopt,
                          self.device());
  Tensor origin = ops::zeros({0}, kLong, std::nullopt, self.device());
  if (reduce == "sum" || reduce == "mean") {
    ops::index_add_(out, 0, row, terms);
    if (reduce == "mean") {
      Tensor counts = ops::diff(parts_of(self).offsets);
      counts = ops::to(ops::clamp_min(counts, Scalar(1)), out.dtype());
      out = ops::div(out, ops::unsqueeze(counts, 1));
    }
    return {out, origin};
  }
  Tensor at = beside(row, terms);
  ops::scatter_reduce_(out, 0, at, terms, reduce, /*include_self=*/false);
  // The first entry that has the result.
  int64_t n = p.values.size(0);
  Tensor number = ops::arange(Scalar(n), kLong, std::nullopt, self.device());
  Tensor candidate = ops::where(ops::eq(terms, ops::index_select(out, 0, row)),
                                beside(number, terms),
                                Scalar(n));
  origin = ops::full(out.sizes(), Scalar(n), kLong, {}, self.device());
  ops::scatter_reduce_(origin, 0, at, candidate, "amin");
  return {out, origin};
}

// Gradients of tables
// ------------------------------------------------------------

Tensor embedding_sparse_backward(const Tensor& grad,
                                 const Tensor& indices,
                                 int64_t num_weights,
                                 int64_t padding_idx,
                                 bool scale_grad_by_freq) {
  TAEDA_CHECK(!scale_grad_by_freq,
              "embedding_backward: scale_grad_by_freq not supported with "
              "sparse gradients");
  int64_t width = grad.size(-1);
  // A copy: the indices may change while the gradient is kept.
  Tensor rows = ops::clone(ops::to(ops::reshape(indices, {-1}), kLong));
  Tensor values = ops::reshape(grad, {rows.numel(), width});
  if (padding_idx != -1) {
    Tensor kept =
        ops::reshape(ops::nonzero(ops::ne(rows, Scalar(padding_idx))), {-1});
    rows = ops::index_select(rows, 0, kept);
    values = ops::index_select(values, 0, kept);
  }
  return make_coo(ops::unsqueeze(rows, 0),
                  values,
                  {num_weights, width},
                  /*coalesced=*/false);
}

void add_reductions(Library& m) {
  m.impl("sum", sum_all);
  m.impl("sum.dim_IntList", sum_dims);
  m.impl("linalg_vector_norm", norm_sparse);
  m.impl("any", any_sparse);
}

}  // namespace taeda::native
