// From layout to layout.
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/kernels.h>
#include <taeda/gen/native/_convert_indices_from_coo_to_csr.h>
#include <taeda/gen/native/_sparse_broadcast_to.h>
#include <taeda/gen/native/_spdiags.h>
#include <taeda/gen/native/_to_dense.h>
#include <taeda/gen/native/_to_sparse.h>
#include <taeda/gen/native/_to_sparse_bsc.h>
#include <taeda/gen/native/_to_sparse_bsr.h>
#include <taeda/gen/native/_to_sparse_csc.h>
#include <taeda/gen/native/_to_sparse_csr.h>
#include <taeda/gen/native/sparse_mask.h>
#include <taeda/gen/native/to_dense.h>
#include <taeda/gen/native/to_sparse.h>
#include <taeda/gen/native/to_sparse_bsc.h>
#include <taeda/gen/native/to_sparse_bsr.h>
#include <taeda/gen/native/to_sparse_csc.h>
#include <taeda/gen/native/to_sparse_csr.h>
#include <taeda/gen/ops/_to_dense.h>
#include <taeda/gen/ops/_to_sparse.h>
#include <taeda/gen/ops/_to_sparse_bsc.h>
#include <taeda/gen/ops/_to_sparse_bsr.h>
#include <taeda/gen/ops/_to_sparse_csc.h>
#include <taeda/gen/ops/_to_sparse_csr.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/searchsorted.h>
#include <taeda/gen/ops/to.h>

#include <limits>
#include <string>

namespace taeda::native {

using MaybeInt = std::optional<int64_t>;
using MaybeSizes = std::optional<IntArrayRef>;

// To strided
// -------------------------------------------------------------------

Tensor to_dense(const Tensor& self,
                std::optional<ScalarType> dtype,
                std::optional<bool> masked_grad) {
  if (is_sparse(self)) return ops::_to_dense(self, dtype, masked_grad);
  return dtype ? ops::to(self, *dtype) : self;
}

Tensor sparse_to_dense(const Tensor& self,
                       std::optional<ScalarType> dtype,
                       std::optional<bool>) {
  Tensor dense = to_strided(self);
  return dtype ? ops::to(dense, *dtype) : dense;
}

// To COO
// -----------------------------------------------------------------------

namespace {

void check_sparse_dim(const Tensor& self, int64_t sparse) {
  if (is_coo(self) || is_compressed(self.layout())) {
    int64_t has = batch_dims(self) + sparse_dims(self);
    TAEDA_CHECK(sparse == has,
                is_coo(self) ? "to_sparse" : "sparse_compressed_to_sparse",
                ": conversion from ",
                layout_word(self.layout()),
                " to Sparse with sparse_dim argument !=",
                is_coo(self) ? "self.sparse_dim()" : std::to_string(has),
                " is not supported");
    return;
  }
  TAEDA_CHECK(self.dim() == 0 || sparse > 0,
              "dense_to_sparse: sparse_dim argument must be in >0 when "
              "self.dim()>0");
  TAEDA_CHECK(sparse >= 0 && sparse <= self.dim(),
              "dense_to_sparse: sparse_dim argument must be in [0,",
              self.dim(),
              "] range, but ",
              sparse,
              " is given");
}

}  // namespace

Tensor to_sparse(const Tensor& self, int64_t sparse_dim) {
  if (is_coo(self)) {
    check_sparse_dim(self, sparse_dim);
    return self;
  }
  return ops::_to_sparse(self, sparse_dim);
}

Tensor convert_to_coo(const Tensor& self, int64_t sparse_dim) {
  check_sparse_dim(self, sparse_dim);
  return to_coo(self, sparse_dim);
}

// To compressed layouts
// --------------------------------------------------------

namespace {

using Block = std::array<int64_t, 2>;

Block block_from(std::string_view op, IntArrayRef sizes) {
  TAEDA_CHECK(sizes.size() == 2 && sizes[0] > 0 && sizes[1] > 0,
              op,
              ": blocksize needs to be a tuple of two positive ints, got ",
              sizes);
  return {sizes[0], sizes[1]};
}

Tensor convert(std::string_view op,
               const Tensor& self,
               Layout layout,
               Block block,
               MaybeInt dense_dim) {
  if (is_coo(self)) {
    TAEDA_CHECK(
        sparse_dims(self) == 2,
        op,
        ": conversion from Sparse to ",
        layout_word(layout),
        " for input tensors with sparse_dim()!=2 is not supported, got ",
        sparse_dims(self),
        " sparse dimensions");
    return compress(self, {layout, block, dense_dims(self)});
  }
  if (is_compressed(self.layout())) {
    ScalarType index_type = parts_of(self).offsets.dtype();
    return compress(to_coo(self),
                    {layout, block, dense_dims(self), index_type});
  }
  int64_t dense = dense_dim.value_or(0);
  TAEDA_CHECK(dense >= 0 && dense <= self.dim() - 2,
              op,
              ": expected a tensor with two dims besides dense_dim=",
              dense,
              ", got ",
              self.dim(),
              " dims");
  return compress(to_coo(self, self.dim() - dense), {layout, block, dense});
}

bool is_already(const Tensor& self, Layout layout, Block block) {
  return self.layout() == layout && block_of(self) == block;
}

}  // namespace

#define TAEDA_TO_COMPRESSED(name, kind)                                \
  Tensor to_sparse_##name(const Tensor& self, MaybeInt dense_dim) {    \
    if (self.layout() == kind) return self;                            \
    return ops::_to_sparse_##name(self, dense_dim);                    \
  }                                                                    \
  Tensor convert_to_##name(const Tensor& self, MaybeInt dense_dim) {   \
    return convert("to_sparse_" #name, self, kind, {1, 1}, dense_dim); \
  }
TAEDA_TO_COMPRESSED(csr, Layout::SparseCsr)
TAEDA_TO_COMPRESSED(csc, Layout::SparseCsc)
#undef TAEDA_TO_COMPRESSED

#define TAEDA_TO_BLOCKS(name, kind)                                    \
  Tensor to_sparse_##name(                                             \
      const Tensor& self, IntArrayRef blocksize, MaybeInt dense_dim) { \
    Block block = block_from("to_sparse_" #name, blocksize);           \
    if (is_already(self, kind, block)) return self;                    \
    return ops::_to_sparse_##name(self, blocksize, dense_dim);         \
  }                                                                    \
  Tensor convert_to_##name(                                            \
      const Tensor& self, IntArrayRef blocksize, MaybeInt dense_dim) { \
    Block block = block_from("to_sparse_" #name, blocksize);           \
    return convert("to_sparse_" #name, self, kind, block, dense_dim);  \
  }
TAEDA_TO_BLOCKS(bsr, Layout::SparseBsr)
TAEDA_TO_BLOCKS(bsc, Layout::SparseBsc)
#undef TAEDA_TO_BLOCKS

namespace {

// What `to_sparse(layout=, blocksize=, dense_dim=)` asks for.
struct Wanted {
  Layout layout;
  Block block{1, 1};
};
Wanted wanted(const Tensor& self,
              std::optional<Layout> layout,
              MaybeSizes blocksize) {
  Wanted w{layout.value_or(is_sparse(self) && !blocksize ? self.layout()
                                                         : Layout::Sparse)};
  if (!layout && is_compressed(self.layout())) w.layout = Layout::Sparse;
  TAEDA_CHECK(is_sparse_layout(w.layout),
              "to_sparse: conversion to layout ",
              layout_word(w.layout),
              " is not supported");
  TAEDA_CHECK(blocksize.has_value() == is_blocked(w.layout),
              "to_sparse: conversion from ",
              layout_word(self.layout()),
              " to ",
              layout_word(w.layout),
              is_blocked(w.layout) ? " requires blocksize specified"
                                   : " does not use specified blocksize");
  if (blocksize) w.block = block_from("to_sparse", *blocksize);
  return w;
}

}  // namespace

Tensor to_sparse(const Tensor& self,
                 std::optional<Layout> layout,
                 MaybeSizes blocksize,
                 MaybeInt dense_dim) {
  if (layout == Layout::Strided) {
    return to_dense(self, std::nullopt, std::nullopt);
  }
  Wanted w = wanted(self, layout, blocksize);
  if (is_already(self, w.layout, w.block)) return self;
  return ops::_to_sparse(self, layout, blocksize, dense_dim);
}

Tensor convert_to_sparse(const Tensor& self,
                         std::optional<Layout> layout,
                         MaybeSizes blocksize,
                         MaybeInt dense_dim) {
  Wanted w = wanted(self, layout, blocksize);
  if (w.layout != Layout::Sparse) {
    return convert("to_sparse", self, w.layout, w.block, dense_dim);
  }
  if (is_sparse(self)) return to_coo(self);
  int64_t dense = dense_dim.value_or(0);
  TAEDA_CHECK(dense >= 0 && dense <= self.dim(),
              "to_sparse: dense_dim argument must be in [0,",
              self.dim(),
              "] range, but ",
              dense,
              " is given");
  return to_coo(self, self.dim() - dense);
}

// Where rows begin is where a row's number would be put in among the others.
Tensor rows_to_offsets(const Tensor& self, int64_t size, bool out_int32) {
  TAEDA_CHECK(size >= 0 && size < std::numeric_limits<int64_t>::max(),
              "_convert_indices_from_coo_to_csr: a size of ",
              size,
              " overflows");
  Tensor rows =
      ops::arange(Scalar(size + 1), self.dtype(), std::nullopt, self.device());
  return ops::searchsorted(self, rows, out_int32);
}

// The entries of a mask
// -----------------------------------------------------------

namespace {

bool same_indices(const Tensor& a, const Tensor& b) {
  const Tensor &x = parts_of(a).indices, &y = parts_of(b).indices;
  return x.storage() == y.storage() && x.sizes() == y.sizes() &&
         x.strides() == y.strides() && x.storage_offset() == y.storage_offset();
}

}  // namespace

Tensor sparse_mask(const Tensor& self, const Tensor& mask) {
  TAEDA_CHECK_AS(NotImplemented,
                 is_sparse(mask),
                 "sparse_mask: expected a sparse mask, got layout ",
                 layout_word(mask.layout()));
  TAEDA_CHECK(self.sizes() == mask.sizes(),
              "sparse_mask(): operands have incompatible sizes; self has size ",
              self.sizes(),
              " but mask has size ",
              mask.sizes());
  // Of the same entries, each has its own value; else those of one place have
  // what all together hold.
  if (is_coo(self) && is_coo(mask) && same_indices(self, mask)) {
    return with_values(mask, parts_of(self).values);
  }
  Tensor entries = to_coo(mask);
  int64_t sparse = sparse_dims(entries);
  IntArrayRef outer = first_sizes(mask, sparse);
  Tensor at = numbers_of(parts_of(entries).indices, outer);
  Tensor values;
  if (is_sparse(self)) {
    Tensor own = coalesced(to_coo(self, sparse));
    values =
        values_at(parts_of(own).values,
                  find_numbers(numbers_of(parts_of(own).indices, outer), at));
  } else {
    DimVector rows = sizes_after(product_of(outer), last_sizes(self, sparse));
    values = ops::index_select(ops::reshape(self, rows), 0, at);
  }
  return with_values(mask, ops::reshape(values, parts_of(mask).values.sizes()));
}

// Operators whose results have sizes that depend on data have a CPU slot alone.
void add_conversions(Library& m) {
  m.impl("_to_sparse.sparse_dim", convert_to_coo);
  m.impl("_to_sparse", convert_to_sparse);
  m.impl("_to_sparse_csr", convert_to_csr);
  m.impl("_to_sparse_csc", convert_to_csc);
  m.impl("_to_sparse_bsr", convert_to_bsr);
  m.impl("_to_sparse_bsc", convert_to_bsc);
}

}  // namespace taeda::native
