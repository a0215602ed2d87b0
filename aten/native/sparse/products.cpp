// Products of matrices of which one or both are sparse.
#include <taeda/aten/native/sparse/device_products.h>
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/gen/native/_sparse_addmm.h>
#include <taeda/gen/native/_sparse_mm.h>
#include <taeda/gen/native/_sparse_sparse_matmul.h>
#include <taeda/gen/native/hspmm.h>
#include <taeda/gen/native/smm.h>
#include <taeda/gen/native/sparse_sampled_addmm.h>
#include <taeda/gen/native/sspaddmm.h>
#include <taeda/gen/ops/_convert_indices_from_coo_to_csr.h>
#include <taeda/gen/ops/_sparse_addmm.h>
#include <taeda/gen/ops/_sparse_mm_reduce_impl.h>
#include <taeda/gen/ops/_sparse_sparse_matmul.h>
#include <taeda/gen/ops/_unique2.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/index_add.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/repeat_interleave.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/searchsorted.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sspaddmm.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/t.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/zeros.h>

#include <atomic>

namespace taeda::native {

namespace {

constinit std::atomic<const SparseProducts*> products_on_cuda{nullptr};

// A matrix's entries by rows, whatever its layout.
struct InRows {
  Tensor offsets, places, values;
};
InRows in_rows(const Tensor& t) {
  if (t.layout() == Layout::SparseCsr) {
    const SparseParts& p = parts_of(t);
    return {p.offsets, p.indices, p.values};
  }
  const Tensor coo = coalesced(to_coo(t));
  const SparseParts& p = parts_of(coo);
  Tensor rows = ops::select(p.indices, 0, 0);
  return {ops::_convert_indices_from_coo_to_csr(rows, t.size(0)),
          ops::select(p.indices, 0, 1),
          p.values};
}

// A matrix's entries, whatever its layout.
struct Triples {
  Tensor row, column, values;
};
Triples triples_of(const Tensor& t) {
  const Tensor coo = to_coo(t);
  const SparseParts& p = parts_of(coo);
  return {ops::select(p.indices, 0, 0), ops::select(p.indices, 0, 1), p.values};
}

void check_product(const Tensor& a, const Tensor& b) {
  TAEDA_CHECK(a.dim() == 2 && b.dim() == 2,
              "mm: expected matrices, got ",
              a,
              " and ",
              b);
  TAEDA_CHECK(a.size(1) == b.size(0),
              "mat1 and mat2 shapes cannot be multiplied (",
              a.size(0),
              "x",
              a.size(1),
              " and ",
              b.size(0),
              "x",
              b.size(1),
              ")");
  TAEDA_CHECK(a.dtype() == b.dtype() || !is_sparse(a) || !is_sparse(b),
              "mat1 dtype ",
              type_name(a.dtype()),
              " does not match mat2 dtype ",
              type_name(b.dtype()));
  TAEDA_CHECK(a.dtype() == b.dtype(),
              "mat1 and mat2 must have the same dtype, but got ",
              type_name(a.dtype()),
              " and ",
              type_name(b.dtype()));
  for (const Tensor* t : {&a, &b}) {
    TAEDA_CHECK(!is_sparse(*t) || (sparse_dims(*t) == 2 && dense_dims(*t) == 0),
                "mm: expected a matrix with two sparse and no dense dims, got ",
                sparse_dims(*t),
                " sparse and ",
                dense_dims(*t),
                " dense");
  }
}

// Each entry adds its multiple of a row of `b` to a row of the result.
Tensor times_strided(const Tensor& a, const Tensor& b) {
  if (const SparseProducts* own = sparse_products_of(b)) {
    InRows rows = in_rows(a);
    return own->times(rows.offsets, rows.places, rows.values, b);
  }
  Triples t = triples_of(a);
  Tensor out =
      ops::zeros({a.size(0), b.size(1)}, a.dtype(), std::nullopt, a.device());
  Tensor rows =
      ops::mul(ops::unsqueeze(t.values, 1), ops::index_select(b, 0, t.column));
  ops::index_add_(out, 0, t.row, rows);
  return out;
}

// Every entry of `a` with every entry of the row of `b` that its column names.
Tensor sparse_by_sparse(const Tensor& a, const Tensor& b) {
  Triples x = triples_of(a);
  Triples y = triples_of(coalesced(to_coo(b)));
  Tensor from = ops::searchsorted(ops::contiguous(y.row), x.column);
  Tensor to = ops::searchsorted(
      ops::contiguous(y.row), x.column, false, /*right=*/true);
  Tensor counts = ops::sub(to, from);
  Tensor left = ops::repeat_interleave(counts);
  Tensor before = ops::sub(ops::cumsum(counts, 0), counts);
  Tensor right =
      ops::arange(Scalar(left.size(0)), kLong, std::nullopt, a.device());
  right = ops::sub(right, ops::index_select(ops::sub(before, from), 0, left));
  Tensor values = ops::mul(ops::index_select(x.values, 0, left),
                           ops::index_select(y.values, 0, right));
  DimVector sizes{a.size(0), b.size(1)};
  Tensor places = ops::stack({ops::index_select(x.row, 0, left),
                              ops::index_select(y.column, 0, right)});
  return coalesced(make_coo(places, values, sizes, /*coalesced=*/false));
}

Tensor in_matrix_layout(const Tensor& product, const Tensor& like) {
  if (is_coo(like)) return product;
  bool by_columns = like.layout() == Layout::SparseCsc;
  return compress(product,
                  {by_columns ? Layout::SparseCsr : like.layout(),
                   block_of(like),
                   0,
                   parts_of(like).offsets.dtype()});
}

Tensor mm_sparse(const Tensor& a, const Tensor& b) {
  check_product(a, b);
  if (is_sparse(a) && is_sparse(b)) {
    return in_matrix_layout(sparse_by_sparse(a, b), a);
  }
  if (is_sparse(a)) return times_strided(a, b);
  return ops::t(times_strided(ops::t(b), ops::t(a)));
}

// A strided or sparse tensor times a number.
Tensor times(const Tensor& t, const Scalar& by) {
  return by.equal(1.0) ? t : ops::mul(t, by);
}

Tensor addmm_sparse(const Tensor& self,
                    const Tensor& mat1,
                    const Tensor& mat2,
                    const Scalar& beta,
                    const Scalar& alpha) {
  Tensor product = times(mm_sparse(mat1, mat2), alpha);
  if (is_sparse(self)) {
    return ops::add(times(self, beta), to_layout_of(product, self));
  }
  Tensor start = ops::expand(self, product.sizes());
  // With beta 0 not even NaN counts.
  if (beta.equal(0.0)) return to_strided(product);
  return ops::add(times(start, beta), product);
}

Tensor mv_sparse(const Tensor& self, const Tensor& vec) {
  bool fits = self.dim() == 2 && vec.dim() == 1 && self.size(1) == vec.size(0);
  TAEDA_CHECK(fits || !is_coo(self),
              "mv: expected self.size(-1) == vec.size(-1), got ",
              self.sizes(),
              " and ",
              vec.sizes());
  TAEDA_CHECK(fits,
              "size mismatch, got input (",
              self.sizes(),
              "), vec (",
              vec.sizes(),
              ")");
  return ops::select(mm_sparse(self, ops::unsqueeze(vec, 1)), 1, 0);
}

Tensor addmv_sparse(const Tensor& self,
                    const Tensor& mat,
                    const Tensor& vec,
                    const Scalar& beta,
                    const Scalar& alpha) {
  Tensor product = times(mv_sparse(mat, vec), alpha);
  if (beta.equal(0.0)) return product;
  return ops::add(times(self, beta), product);
}

// A batch of sparse matrices is one whose blocks lie on the diagonal.
Tensor bmm_sparse(const Tensor& self, const Tensor& mat2) {
  TAEDA_CHECK(is_sparse(self) && !is_sparse(mat2) && self.dim() == 3 &&
                  mat2.dim() == 3 && self.size(0) == mat2.size(0) &&
                  self.size(2) == mat2.size(1),
              "bmm_sparse: expected a sparse [b, n, k] and a strided [b, k, m] "
              "tensor, got ",
              self,
              " and ",
              mat2);
  int64_t b = self.size(0), n = self.size(1), k = self.size(2);
  const Tensor coo = to_coo(self);
  const SparseParts& p = parts_of(coo);
  Tensor batch = ops::select(p.indices, 0, 0);
  auto numbered = [&](int64_t d, int64_t size) {
    return ops::add(ops::mul(batch, Scalar(size)),
                    ops::select(p.indices, 0, d));
  };
  Tensor diagonal = make_coo(ops::stack({numbered(1, n), numbered(2, k)}),
                             p.values,
                             {b * n, b * k},
                             p.coalesced);
  Tensor rows = ops::reshape(mat2, {b * k, mat2.size(2)});
  return ops::reshape(mm_sparse(diagonal, rows), {b, n, mat2.size(2)});
}

Tensor matmul_sparse(const Tensor& self, const Tensor& other) {
  if (self.dim() == 2 && other.dim() == 2) return mm_sparse(self, other);
  if (self.dim() == 2 && other.dim() == 1) return mv_sparse(self, other);
  if (self.dim() == 1 && other.dim() == 2) {
    return mv_sparse(ops::t(other), self);
  }
  if (!is_sparse(self) && self.dim() > 2 && other.dim() == 2) {
    DimVector sizes(self.sizes());
    int64_t k = sizes.back();
    Tensor rows =
        ops::reshape(self, {self.numel() / std::max<int64_t>(k, 1), k});
    sizes.back() = other.size(1);
    return ops::reshape(mm_sparse(rows, other), sizes);
  }
  return bmm_sparse(self, other);
}

Tensor linear_sparse(const Tensor& input,
                     const Tensor& weight,
                     const OptionalTensor& bias) {
  Tensor out = matmul_sparse(input, ops::t(weight));
  return bias ? ops::add(out, *bias) : out;
}

}  // namespace

// Operators of sparse tensors alone
// -----------------------------------------------

Tensor sparse_mm(const Tensor& sparse, const Tensor& dense) {
  if (is_sparse(sparse) && is_sparse(dense)) {
    return ops::_sparse_sparse_matmul(sparse, dense);
  }
  Tensor t = ops::zeros({1, 1}, sparse.dtype(), {}, sparse.device());
  if (is_sparse(sparse)) {
    return ops::_sparse_addmm(t, sparse, dense, Scalar(0), Scalar(1));
  }
  Tensor flipped = ops::_sparse_addmm(t,
                                      ops::transpose(dense, 0, 1),
                                      ops::transpose(sparse, 0, 1),
                                      Scalar(0),
                                      Scalar(1));
  return ops::transpose(flipped, 0, 1);
}

Tensor sparse_mm(const Tensor& sparse,
                 const Tensor& dense,
                 std::string_view reduce) {
  return std::get<0>(ops::_sparse_mm_reduce_impl(sparse, dense, reduce));
}

Tensor sparse_addmm(const Tensor& self,
                    const Tensor& mat1,
                    const Tensor& mat2,
                    const Scalar& beta,
                    const Scalar& alpha) {
  return addmm_sparse(self, mat1, mat2, beta, alpha);
}

Tensor sparse_sparse_matmul(const Tensor& self, const Tensor& other) {
  TAEDA_CHECK(is_sparse(self) && is_sparse(other),
              "_sparse_sparse_matmul: expected two sparse matrices, got "
              "layouts ",
              layout_word(self.layout()),
              " and ",
              layout_word(other.layout()));
  return mm_sparse(self, other);
}

namespace {

// The entries of `self` in a product, from rows that are looked up for each.
Tensor sampled(const Tensor& self, const Tensor& mat1, const Tensor& mat2) {
  const Tensor coo = to_coo(self);
  const Tensor& places = parts_of(coo).indices;
  int64_t k = mat1.size(-1), batch = self.dim() - 2;
  Tensor number =
      numbers_of(ops::narrow(places, 0, 0, batch), first_sizes(self, batch));
  auto rows = [&](const Tensor& t, int64_t at) {
    Tensor row = ops::add(ops::mul(number, Scalar(t.size(-2))),
                          ops::select(places, 0, at));
    int64_t lines = t.size(-2);
    for (int64_t i = 0; i < batch; ++i) lines *= t.sizes()[i];
    return ops::index_select(ops::reshape(t, {lines, k}), 0, row);
  };
  Tensor products = ops::mul(rows(mat1, batch),
                             rows(ops::transpose(mat2, -2, -1), batch + 1));
  return ops::reshape(ops::sum(products, IntArrayRef{1}),
                      parts_of(self).values.sizes());
}

}  // namespace

void set_sparse_products_on_cuda(const SparseProducts* products) {
  products_on_cuda.store(products, std::memory_order_release);
}

const SparseProducts* sparse_products_of(const Tensor& t) {
  ScalarType d = t.dtype();
  bool has = d == kFloat || d == kDouble || d == kHalf || d == kBFloat16 ||
             d == kComplexFloat || d == kComplexDouble;
  if (!has || !t.device().is_cuda()) return nullptr;
  return products_on_cuda.load(std::memory_order_acquire);
}

Tensor sparse_sampled_addmm(const Tensor& self,
                            const Tensor& mat1,
                            const Tensor& mat2,
                            const Scalar& beta,
                            const Scalar& alpha) {
  TAEDA_CHECK(
      self.layout() == Layout::SparseCsr,
      "sampled_addmm: Expected self to have sparse csr layout, but got ",
      layout_word(self.layout()));
  TAEDA_CHECK(!is_sparse(mat1) && !is_sparse(mat2),
              "sampled_addmm: Expected mat1 and mat2 to have strided layout");
  int64_t d = self.dim();
  TAEDA_CHECK(
      mat1.dim() == d && mat2.dim() == d && mat1.size(-1) == mat2.size(-2) &&
          mat1.size(-2) == self.size(-2) && mat2.size(-1) == self.size(-1),
      "sampled_addmm: mat1 and mat2 shapes cannot be multiplied (",
      mat1.sizes(),
      " and ",
      mat2.sizes(),
      ") for self of shape ",
      self.sizes());
  const SparseProducts* own = d == 2 ? sparse_products_of(mat1) : nullptr;
  Tensor sums =
      own == nullptr
          ? sampled(self, mat1, mat2)
          : own->sampled(
                parts_of(self).offsets, parts_of(self).indices, mat1, mat2);
  sums = scaled(sums, alpha);
  const Tensor& values = parts_of(self).values;
  if (!beta.equal(0.0)) sums = ops::add(sums, scaled(values, beta));
  return with_values(self, sums);
}

Tensor hspmm(const Tensor& mat1, const Tensor& mat2) {
  check_product(mat1, mat2);
  TAEDA_CHECK(is_coo(mat1) && !is_sparse(mat2),
              "hspmm: expected a coordinate and a strided matrix");
  Triples t = triples_of(mat1);
  auto [rows, at, unused] = ops::_unique2(t.row, true, true, false);
  Tensor values = ops::zeros(
      {rows.size(0), mat2.size(1)}, mat1.dtype(), std::nullopt, mat1.device());
  ops::index_add_(values,
                  0,
                  at,
                  ops::mul(ops::unsqueeze(t.values, 1),
                           ops::index_select(mat2, 0, t.column)));
  return make_coo(ops::unsqueeze(rows, 0),
                  values,
                  {mat1.size(0), mat2.size(1)},
                  /*coalesced=*/true);
}

Tensor smm(const Tensor& self, const Tensor& mat2) {
  Tensor zero = ops::zeros({1}, self.dtype(), std::nullopt, self.device());
  Tensor none =
      empty_coo({self.size(0), mat2.size(1)}, 2, self.dtype(), self.device());
  return ops::sspaddmm(none, self, mat2, Scalar(0), Scalar(1));
}

Tensor sspaddmm(const Tensor& self,
                const Tensor& mat1,
                const Tensor& mat2,
                const Scalar& beta,
                const Scalar& alpha) {
  TAEDA_CHECK(is_coo(self), "sspaddmm: expected self in coordinate layout");
  Tensor rows = hspmm(mat1, mat2);
  const SparseParts& p = parts_of(rows);
  int64_t n = p.values.size(0), m = mat2.size(1);
  Tensor columns = ops::arange(Scalar(m), kLong, std::nullopt, self.device());
  Tensor row = ops::repeat_interleave(ops::select(p.indices, 0, 0), m);
  Tensor column = ops::reshape(ops::expand(columns, {n, m}), {-1});
  const SparseParts& own = parts_of(self);
  return make_coo(ops::cat({own.indices, ops::stack({row, column})}, 1),
                  ops::cat({scaled(own.values, beta),
                            scaled(ops::reshape(p.values, {-1}), alpha)},
                           0),
                  self.sizes(),
                  /*coalesced=*/false);
}

void add_products(Library& m) {
  m.impl("mm", mm_sparse);
  m.impl("addmm", addmm_sparse);
  m.impl("mv", mv_sparse);
  m.impl("addmv", addmv_sparse);
  m.impl("bmm", bmm_sparse);
  m.impl("matmul", matmul_sparse);
  m.impl("linear", linear_sparse);
}

}  // namespace taeda::native
