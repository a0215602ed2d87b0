#include <taeda/csrc/autograd/formulas_sparse.h>

#include <taeda/aten/native/sparse/entries.h>
#include <taeda/gen/ops/_sparse_compressed_tensor_unsafe.h>
#include <taeda/gen/ops/_sparse_coo_tensor_unsafe.h>
#include <taeda/gen/ops/_values.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/clamp_max.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/diff.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/ge.h>
#include <taeda/gen/ops/index.h>
#include <taeda/gen/ops/index_add.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/lt.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/scatter_add.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sparse_mask.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/to_dense.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/values.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros.h>

#include <vector>

namespace taeda::autograd {

using native::is_coo;
using native::is_sparse;
using native::parts_of;

Tensor sparse_values_gradient(const Tensor& grad, const Tensor& result) {
  bool repeats = is_coo(result) && !parts_of(result).coalesced;
  // A sparse gradient is found at a place once, however often it is named.
  bool widens = repeats && is_sparse(grad);
  Tensor here = ops::sparse_mask(widens ? ops::to_dense(grad) : grad, result);
  return repeats ? ops::_values(here) : ops::values(here);
}

Tensor sparse_of_values(const Tensor& values, const Tensor& self) {
  const native::SparseParts& p = parts_of(self);
  if (is_coo(self)) {
    return ops::_sparse_coo_tensor_unsafe(
        p.indices, values, self.sizes(), {}, {}, {}, {}, p.coalesced);
  }
  return ops::_sparse_compressed_tensor_unsafe(
      p.offsets, p.indices, values, self.sizes(), {}, self.layout());
}

bool holds_entries(const Tensor& grad,
                   std::initializer_list<const Tensor*> others) {
  bool sparse = false;
  for (const Tensor* t : others) sparse |= t->defined() && is_sparse(*t);
  if (!sparse) return false;  // sizes may be symbols, which would be fixed
  for (const Tensor* t : others) {
    if (!t->defined() || t->sizes() != grad.sizes()) return false;
  }
  // Second derivatives record what was called.
  return sparse && !grad_enabled();
}

static Tensor values_at_entries(const Tensor& t, const Tensor& grad) {
  if (!is_sparse(grad)) return is_sparse(t) ? ops::to_dense(t) : t;
  if (t.impl() == grad.impl()) return parts_of(grad).values;
  return sparse_values_gradient(t, grad);
}

Tensor at_entries(const Tensor& grad,
                  std::initializer_list<const Tensor*> others,
                  Tensor (*derivative)(void* f,
                                       const Tensor& grad,
                                       const Tensor* others),
                  void* f) {
  std::vector<Tensor> given;
  for (const Tensor* t : others) given.push_back(values_at_entries(*t, grad));
  Tensor values = derivative(f, values_at_entries(grad, grad), given.data());
  return is_sparse(grad) ? sparse_of_values(values, grad) : values;
}

Tensor to_dense_gradient(const Tensor& grad,
                         const Tensor& self,
                         std::optional<bool> masked_grad) {
  if (masked_grad.value_or(true)) {
    Tensor mask = is_coo(self) ? native::coalesced(self) : self;
    return cast_to(ops::sparse_mask(grad, mask), self.dtype());
  }
  return native::to_layout_of(cast_to(grad, self.dtype()), self);
}

Tensor to_sparse_gradient(const Tensor& grad, const Tensor& self) {
  if (!is_sparse(self)) return ops::to_dense(grad);
  // Where both keep their entries, zeros among them stay entries.
  if (is_sparse(grad)) return native::to_layout_of(grad, self);
  return ops::sparse_mask(grad, self);
}

Tensor sparse_mask_gradient(const Tensor& grad,
                            const Tensor& self,
                            const Tensor& mask) {
  if (is_sparse(self)) return native::to_layout_of(grad, self);
  // An element that the mask names twice reached two entries.
  Tensor values = sparse_values_gradient(grad, mask);
  return ops::to_dense(sparse_of_values(values, mask));
}

Tensor spdiags_gradient(const Tensor& grad,
                        const Tensor& offsets,
                        const Tensor& diagonals) {
  Tensor lines =
      diagonals.dim() == 1 ? ops::unsqueeze(diagonals, 0) : diagonals;
  Tensor full = ops::to_dense(grad);
  int64_t n = lines.size(0), length = lines.size(1);
  Tensor column = ops::expand(
      ops::arange(Scalar(length), kLong, std::nullopt, full.device()),
      {n, length});
  Tensor shift = ops::reshape(ops::to(offsets, kLong), {-1, 1});
  Tensor row = ops::sub(column, shift);
  int64_t rows = full.size(0), columns = full.size(1);
  Tensor inside = ops::mul(ops::ge(row, Scalar(0)), ops::lt(row, Scalar(rows)));
  inside = ops::mul(inside, ops::lt(column, Scalar(columns)));
  auto within = [](const Tensor& t, int64_t size) {
    return ops::clamp_max(ops::clamp_min(t, Scalar(0)), Scalar(size - 1));
  };
  std::vector<OptionalTensor> places{within(row, rows),
                                     within(column, columns)};
  Tensor found = ops::where(inside, ops::index(full, places), Scalar(false));
  return ops::reshape(found, diagonals.sizes());
}

Tensor sparse_broadcast_gradient(const Tensor& grad, const Tensor& self) {
  Tensor sum = sum_to(ops::to_dense(grad), symbolic_sizes(self));
  return native::to_layout_of(sum, self);
}

Tensor sparse_sum_gradient(const Tensor& grad,
                           const Tensor& self,
                           IntArrayRef dims) {
  // With a place for every dim that was added up.
  Tensor wide = ops::to_dense(grad);
  std::vector<bool> gone(static_cast<size_t>(self.dim()), false);
  for (int64_t d : dims) {
    gone[static_cast<size_t>(wrap_dim(d, self.dim()))] = true;
  }
  for (size_t d = 0; d < gone.size(); ++d) {
    if (gone[d]) wide = ops::unsqueeze(wide, static_cast<int64_t>(d));
  }
  Tensor mask = is_coo(self) ? native::coalesced(self) : self;
  return ops::sparse_mask(ops::expand(wide, self.sizes()), mask);
}

Tensor masked_product_gradient(const Tensor& grad,
                               const Tensor& a,
                               const Tensor& b,
                               const Scalar& alpha) {
  Tensor product = times_scalar(ops::mm(grad, adjoint_of(b)), alpha.conj());
  Tensor mask = is_coo(a) ? native::coalesced(a) : a;
  return ops::sparse_mask(product, mask);
}

namespace {

// The entries of a CSR matrix.
struct Entries {
  Tensor row, column, values;
};
Entries entries_of(const Tensor& csr) {
  Tensor coo = native::to_coo(csr);
  const native::SparseParts& p = parts_of(coo);
  return {ops::select(p.indices, 0, 0), ops::select(p.indices, 0, 1), p.values};
}

// What of `grad` reaches each entry of `a`, one row for each: of a sum all of
// it, of a mean its share, of a largest or smallest that of the chosen alone.
Tensor grad_by_entry(const Tensor& grad,
                     const Tensor& a,
                     const Entries& e,
                     std::string_view reduce,
                     const Tensor& origin) {
  Tensor share = grad;
  if (reduce == "mean") {
    Tensor counts = ops::clamp_min(ops::diff(parts_of(a).offsets), Scalar(1));
    share = ops::div(grad, ops::unsqueeze(ops::to(counts, grad.dtype()), 1));
  }
  if (reduce == "sum" || reduce == "mean") {
    return ops::index_select(share, 0, e.row);
  }
  // One row more takes what the rows without entries would get.
  Tensor out = ops::zeros(
      {e.values.size(0) + 1, grad.size(1)}, grad.dtype(), {}, grad.device());
  out = ops::scatter_add(out, 0, origin, grad);
  return ops::index_select(
      out,
      0,
      ops::arange(
          Scalar(e.values.size(0)), kLong, std::nullopt, grad.device()));
}

}  // namespace

Tensor sparse_mm_reduce_gradient(const Tensor& grad,
                                 const Tensor& a,
                                 const Tensor& b,
                                 std::string_view reduce,
                                 const Tensor& origin) {
  Entries e = entries_of(a);
  Tensor g = grad_by_entry(grad, a, e, reduce, origin);
  Tensor terms = ops::mul(g, conj_of(ops::index_select(b, 0, e.column)));
  return sparse_of_values(ops::sum(terms, IntArrayRef{1}), a);
}

Tensor dense_mm_reduce_gradient(const Tensor& grad,
                                const Tensor& a,
                                const Tensor& b,
                                std::string_view reduce,
                                const Tensor& origin) {
  Entries e = entries_of(a);
  Tensor g = grad_by_entry(grad, a, e, reduce, origin);
  Tensor terms = ops::mul(g, ops::unsqueeze(conj_of(e.values), 1));
  Tensor out = ops::zeros(b.sizes(), grad.dtype(), {}, grad.device());
  return ops::index_add(out, 0, e.column, terms);
}

}  // namespace taeda::autograd
