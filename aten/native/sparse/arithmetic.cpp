// Sums, products and quotients element by element.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/gen/ops/_sparse_broadcast_to.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/conj_physical.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/index.h>
#include <taeda/gen/ops/index_add.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/pow.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sparse_mask.h>
#include <taeda/gen/ops/view.h>

namespace taeda::native {

namespace {

bool is_number(const Tensor& t) { return !is_sparse(t) && t.dim() == 0; }

// Sums
// -------------------------------------------------------------------------

Tensor add_coo(const Tensor& a, const Tensor& b, const Scalar& alpha) {
  TAEDA_CHECK(a.sizes() == b.sizes(),
              "add: expected sizes of 'self' and 'other' to match, but ",
              a.sizes(),
              " != ",
              b.sizes());
  // Of a tensor without entries it says nothing which dims are sparse.
  const Tensor& like = parts_of(a).values.size(0) == 0 ? b : a;
  int64_t dims = sparse_dims(like);
  auto with_dims = [&](const Tensor& t) {
    return parts_of(t).values.size(0) > 0
               ? to_coo(t, dims)
               : empty_coo(t.sizes(), dims, t.dtype(), t.device());
  };
  Tensor self = with_dims(a), other = with_dims(b);
  const SparseParts &p = parts_of(self), &q = parts_of(other);
  // In the sum's dtype: uint8 has no negative elements.
  ScalarType common = promote_types(p.values.dtype(), q.values.dtype());
  Tensor values =
      q.values.dtype() == common ? q.values : ops::_to_copy(q.values, common);
  Tensor addend = scaled(values, alpha);
  Tensor joined = make_coo(ops::cat({p.indices, q.indices}, 1),
                           ops::cat({p.values, addend}, 0),
                           a.sizes(),
                           /*coalesced=*/false);
  return p.coalesced && q.coalesced ? coalesced(joined) : joined;
}

// Adds to memory that is row-major over the sparse dims.
void add_into(const Tensor& out, const Tensor& sparse, const Scalar& alpha) {
  Tensor coo = to_coo(sparse);
  const SparseParts& p = parts_of(coo);
  int64_t named = sparse_dims(coo);
  IntArrayRef outer = first_sizes(coo, named);
  DimVector rows = sizes_after(product_of(outer), last_sizes(coo, named));
  ops::index_add_(
      ops::view(out, rows), 0, numbers_of(p.indices, outer), p.values, alpha);
}
bool adds_in_place(const Tensor& out, const Tensor& sparse) {
  return out.is_contiguous() && out.sizes() == sparse.sizes() &&
         out.dtype() == sparse.dtype() && out.dtype() != kBool;
}

void check_no_broadcast(const Tensor& self, const Tensor& sparse) {
  TAEDA_CHECK(
      self.sizes() == sparse.sizes(),
      "add: expected 'self' and 'other' to have same size, but self has "
      "size ",
      self.sizes(),
      " while other has size ",
      sparse.sizes(),
      " (a strided and a sparse tensor are not broadcast)");
}

Tensor add_sparse(const Tensor& self,
                  const Tensor& other,
                  const Scalar& alpha) {
  if (is_sparse(self) && is_sparse(other)) {
    if (is_coo(self) && is_coo(other)) return add_coo(self, other, alpha);
    Tensor sum =
        add_coo(coalesced(to_coo(self)), coalesced(to_coo(other)), alpha);
    return to_layout_of(sum, self);
  }
  if (is_sparse(self)) {
    TAEDA_CHECK(!is_coo(self),
                "add(sparse, dense) is not supported. Use add(dense, sparse) "
                "instead.");
    return ops::add(to_strided(self), other, alpha);
  }
  if (adds_in_place(self, other)) {
    Tensor sum = ops::clone(self);
    add_into(sum, other, alpha);
    return sum;
  }
  check_no_broadcast(self, other);
  return ops::add(self, to_strided(other), alpha);
}

// A sparse gradient is added to its rows alone.
void add_sparse_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  if (is_sparse(self)) {
    TAEDA_CHECK(is_sparse(other),
                "add(sparse, dense) is not supported. Use add(dense, sparse) "
                "instead.");
    Tensor sum = add_sparse(self, other, alpha);
    check_castable("add_", sum.dtype(), self.dtype());
    set_parts(self, sum);
  } else if (adds_in_place(self, other)) {
    add_into(self, other, alpha);
    self.impl()->bump_version();
  } else {
    check_no_broadcast(self, other);
    ops::add_(self, to_strided(other), alpha);
  }
}

Tensor sub_sparse(const Tensor& self,
                  const Tensor& other,
                  const Scalar& alpha) {
  return add_sparse(self, other, -alpha);
}
void sub_sparse_(const Tensor& self, const Tensor& other, const Scalar& alpha) {
  add_sparse_(self, other, -alpha);
}

// Products
// ---------------------------------------------------------------------

// The elements of a strided tensor at places [dims, n].
Tensor elements_at(const Tensor& t, const Tensor& places) {
  std::vector<OptionalTensor> rows;
  for (int64_t d = 0; d < places.size(0); ++d) {
    rows.emplace_back(ops::select(places, 0, d));
  }
  if (rows.empty()) {
    return ops::expand(t, sizes_after(places.size(1), t.sizes()));
  }
  return ops::index(t, rows);
}

// Entries that both have.
Tensor mul_coo(const Tensor& a, const Tensor& b) {
  Tensor left = coalesced(a), right = coalesced(to_coo(b, sparse_dims(a)));
  const SparseParts &p = parts_of(left), &q = parts_of(right);
  IntArrayRef outer = first_sizes(a, sparse_dims(a));
  Found found =
      find_numbers(numbers_of(q.indices, outer), numbers_of(p.indices, outer));
  Tensor both = ops::reshape(ops::nonzero(found.is_there), {-1});
  Tensor values = ops::mul(
      ops::index_select(p.values, 0, both),
      ops::index_select(q.values, 0, ops::index_select(found.at, 0, both)));
  return make_coo(
      ops::index_select(p.indices, 1, both), values, a.sizes(), true);
}

Tensor mul_by_strided(const Tensor& sparse, const Tensor& strided) {
  DimVector sizes =
      broadcast_shapes<int64_t>("mul", sparse.sizes(), strided.sizes());
  Tensor other = ops::expand(strided, sizes);
  const SparseParts* p = &parts_of(sparse);
  if (!is_coo(sparse)) {
    const Tensor factors = ops::sparse_mask(other, sparse);
    return with_values(sparse, ops::mul(p->values, parts_of(factors).values));
  }
  Tensor t = sparse;
  if (t.sizes() != IntArrayRef(sizes)) {
    t = ops::_sparse_broadcast_to(t, sizes);
    p = &parts_of(t);
  }
  Tensor factors = elements_at(other, p->indices);
  return with_values(t, ops::mul(p->values, factors));
}

Tensor mul_sparse(const Tensor& self, const Tensor& other) {
  const Tensor& sparse = is_sparse(self) ? self : other;
  const Tensor& factor = is_sparse(self) ? other : self;
  if (is_number(factor)) {
    return with_values(sparse, ops::mul(parts_of(sparse).values, factor));
  }
  if (!is_sparse(factor)) return mul_by_strided(sparse, factor);
  DimVector sizes =
      broadcast_shapes<int64_t>("mul", self.sizes(), other.sizes());
  auto spread = [&](const Tensor& t) {
    if (t.sizes() == IntArrayRef(sizes)) return to_coo(t);
    return ops::_sparse_broadcast_to(to_coo(t), sizes);
  };
  Tensor product = mul_coo(spread(self), spread(other));
  return is_coo(self) ? product : to_layout_of(product, self);
}

Tensor mul_number(const Tensor& self, const Scalar& other) {
  return with_values(self, ops::mul(parts_of(self).values, other));
}
Tensor div_number(const Tensor& self, const Scalar& other) {
  return with_values(self, ops::div(parts_of(self).values, other));
}
Tensor div_sparse(const Tensor& self, const Tensor& other) {
  TAEDA_CHECK(is_sparse(self) && is_number(other),
              "Sparse division requires a scalar or zero-dim dense tensor "
              "divisor (got shape ",
              other.sizes(),
              " for divisor)");
  return with_values(self, ops::div(parts_of(self).values, other));
}
// At once: the parts of a sparse tensor are never conjugated lazily.
Tensor conj_sparse(const Tensor& self) {
  return with_values(self, ops::conj_physical(parts_of(self).values));
}
Tensor neg_sparse(const Tensor& self) {
  return with_values(self, ops::neg(parts_of(self).values));
}

Tensor pow_number(const Tensor& self, const Scalar& exponent) {
  TAEDA_CHECK(exponent.is_complex() || exponent.to_double() > 0,
              "pow: a sparse tensor to the power of ",
              exponent,
              " has no zeros left");
  Tensor t = is_coo(self) ? coalesced(self) : self;
  return with_values(t, ops::pow(parts_of(t).values, exponent));
}
Tensor add_number(const Tensor&, const Scalar&, const Scalar&) {
  throw_error(ErrorKind::Runtime,
              "add(sparse, dense) is not supported. Use add(dense, sparse) "
              "instead.");
}

}  // namespace

void add_arithmetic(Library& m) {
  m.impl("add.Tensor", add_sparse);
  m.impl("add_.Tensor", add_sparse_);
  m.impl("sub.Tensor", sub_sparse);
  m.impl("sub_.Tensor", sub_sparse_);
  m.impl("mul.Tensor", mul_sparse);
  m.impl("mul.Scalar", mul_number);
  m.impl("div.Tensor", div_sparse);
  m.impl("div.Scalar", div_number);
  m.impl("_conj", conj_sparse);
  m.impl("neg", neg_sparse);
  m.impl("pow.Tensor_Scalar", pow_number);
  m.impl("add.Scalar", add_number);
  m.impl("sub.Scalar", add_number);
}

}  // namespace taeda::native
