// Operators that ask for parts of a sparse tensor, or give it others.
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/gen/native/_coalesce.h>
#include <taeda/gen/native/_coalesced_.h>
#include <taeda/gen/native/_dimI.h>
#include <taeda/gen/native/_indices.h>
#include <taeda/gen/native/_nnz.h>
#include <taeda/gen/native/_values.h>
#include <taeda/gen/native/ccol_indices.h>
#include <taeda/gen/native/coalesce.h>
#include <taeda/gen/native/col_indices.h>
#include <taeda/gen/native/copy_sparse_to_sparse_.h>
#include <taeda/gen/native/crow_indices.h>
#include <taeda/gen/native/dense_dim.h>
#include <taeda/gen/native/indices.h>
#include <taeda/gen/native/is_coalesced.h>
#include <taeda/gen/native/row_indices.h>
#include <taeda/gen/native/sparse_dim.h>
#include <taeda/gen/native/sparse_resize_.h>
#include <taeda/gen/native/sparse_resize_and_clear_.h>
#include <taeda/gen/native/values.h>
#include <taeda/gen/ops/_coalesce.h>
#include <taeda/gen/ops/clone.h>

namespace taeda::native {

namespace {

// A handle of its own, so that the caller's history does not reach the part.
Tensor handed_out(const Tensor& part) {
  return Tensor(part.impl()->shallow_copy(/*share_version=*/true));
}

void check_coo(std::string_view op, const Tensor& t) {
  TAEDA_CHECK(is_coo(t),
              op,
              " expected sparse coordinate tensor layout but got ",
              layout_word(t.layout()));
}
void check_backend(std::string_view op, const Tensor& t, bool served) {
  TAEDA_CHECK_AS(NotImplemented,
                 served,
                 "Could not run 'aten::",
                 op,
                 "' with arguments of layout ",
                 layout_word(t.layout()));
}
void check_coalesced(std::string_view part, const Tensor& t) {
  TAEDA_CHECK(parts_of(t).coalesced,
              "Cannot get ",
              part,
              " on an uncoalesced tensor, please call .coalesce() first");
}

const SparseParts& parts_by(std::string_view op, const Tensor& t, bool rows) {
  TAEDA_CHECK(is_compressed(t.layout()) && is_by_rows(t.layout()) == rows,
              op,
              " expected sparse ",
              rows ? "row" : "column",
              " compressed tensor layout but got ",
              layout_word(t.layout()));
  return parts_of(t);
}

}  // namespace

int64_t sparse_dim(const Tensor& self) { return sparse_dims(self); }
int64_t dense_dim(const Tensor& self) { return dense_dims(self); }

int64_t sparse_nnz(const Tensor& self) {
  check_backend("_nnz", self, is_sparse(self));
  return entries_of(parts_of(self));
}

bool is_coalesced(const Tensor& self) {
  check_coo("is_coalesced", self);
  return parts_of(self).coalesced;
}

Tensor coalesce(const Tensor& self) {
  check_coo("coalesce", self);
  return parts_of(self).coalesced ? self : ops::_coalesce(self);
}
Tensor coalesce_(const Tensor& self) {
  check_coo("_coalesce", self);
  return coalesced(self);
}

void set_coalesced(const Tensor& self, bool on) {
  check_coo("_coalesced_", self);
  set_parts(self, with_order(self, on));
}

Tensor raw_indices(const Tensor& self) {
  check_backend("_indices", self, is_coo(self));
  return handed_out(parts_of(self).indices);
}
Tensor raw_values(const Tensor& self) {
  check_backend("_values", self, is_sparse(self));
  return handed_out(parts_of(self).values);
}

Tensor coalesced_indices(const Tensor& self) {
  check_coo("indices", self);
  check_coalesced("indices", self);
  return handed_out(parts_of(self).indices);
}
Tensor sparse_values(const Tensor& self) {
  TAEDA_CHECK(is_sparse(self),
              "values expected sparse tensor layout but got ",
              layout_word(self.layout()));
  if (is_coo(self)) check_coalesced("values", self);
  return handed_out(parts_of(self).values);
}

Tensor crow_indices(const Tensor& self) {
  return handed_out(parts_by("crow_indices", self, true).offsets);
}
Tensor col_indices(const Tensor& self) {
  return handed_out(parts_by("col_indices", self, true).indices);
}
Tensor ccol_indices(const Tensor& self) {
  return handed_out(parts_by("ccol_indices", self, false).offsets);
}
Tensor row_indices(const Tensor& self) {
  return handed_out(parts_by("row_indices", self, false).indices);
}

// Changes
// ----------------------------------------------------------------------

namespace {

void check_dims(std::string_view op,
                IntArrayRef size,
                int64_t sparse,
                int64_t dense) {
  TAEDA_CHECK(sparse >= 0 && dense >= 0 &&
                  sparse + dense == static_cast<int64_t>(size.size()),
              op,
              ": number of dimensions must be sparse_dim (",
              sparse,
              ") + dense_dim (",
              dense,
              "), but got ",
              size.size());
}

// Whether every size is at least the one that it takes the place of.
bool grows(IntArrayRef from, IntArrayRef to) {
  for (size_t i = 0; i < from.size(); ++i) {
    if (to[i] < from[i]) return false;
  }
  return true;
}

}  // namespace

void sparse_resize(const Tensor& self,
                   IntArrayRef size,
                   int64_t sparse,
                   int64_t dense) {
  check_coo("sparse_resize_", self);
  check_dims("sparse_resize_", size, sparse, dense);
  const SparseParts& p = parts_of(self);
  if (p.values.size(0) == 0) {
    set_parts(self, empty_coo(size, sparse, self.dtype(), self.device()));
    return;
  }
  constexpr std::string_view kAlternative =
      " on a non-empty sparse tensor is not supported: it has to be cleared "
      "(sparse_resize_and_clear_) or copied";
  TAEDA_CHECK(sparse == sparse_dims(self) && dense == dense_dims(self),
              "changing the number of sparse or dense dimensions (from ",
              sparse_dims(self),
              " and ",
              dense_dims(self),
              " to ",
              sparse,
              " and ",
              dense,
              ")",
              kAlternative);
  size_t split = static_cast<size_t>(sparse);
  TAEDA_CHECK(grows(first_sizes(self, sparse), size.slice(0, split)),
              "shrinking the size of sparse dimensions (from ",
              first_sizes(self, sparse),
              " to ",
              size.slice(0, split),
              ")",
              kAlternative);
  TAEDA_CHECK(last_sizes(self, sparse) == size.slice(split),
              "changing the size of dense dimensions (from ",
              last_sizes(self, sparse),
              " to ",
              size.slice(split),
              ")",
              kAlternative);
  set_parts(self, make_coo(p.indices, p.values, size, p.coalesced));
}

void sparse_resize_and_clear(const Tensor& self,
                             IntArrayRef size,
                             int64_t sparse,
                             int64_t dense) {
  check_coo("sparse_resize_and_clear_", self);
  check_dims("sparse_resize_and_clear_", size, sparse, dense);
  set_parts(self, empty_coo(size, sparse, self.dtype(), self.device()));
}

void copy_sparse(const Tensor& self, const Tensor& src, bool) {
  if (self.is_same(src)) return;
  TAEDA_CHECK(is_sparse(self) && is_sparse(src),
              "copy_() between dense and sparse Tensors is not implemented! "
              "Found layouts ",
              layout_word(self.layout()),
              " and ",
              layout_word(src.layout()));
  set_parts(self, ops::clone(src));
}

}  // namespace taeda::native
