#include <taeda/aten/native/sparse/entries.h>
#include <taeda/aten/native/sparse/validate.h>
#include <taeda/gen/native/_validate_sparse_compressed_tensor_args.h>
#include <taeda/gen/native/_validate_sparse_coo_tensor_args.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/max.h>
#include <taeda/gen/ops/min.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sub.h>

#include <array>

namespace taeda::native {

namespace {

bool holds(const Tensor& condition) {
  return ops::item(ops::all(condition)).to_bool();
}
int64_t least(const Tensor& t) { return ops::item(ops::min(t)).to_int(); }
int64_t largest(const Tensor& t) { return ops::item(ops::max(t)).to_int(); }

// Element `i` of a list against element `i + 1`: all in rising order.
bool rises(const Tensor& t) {
  int64_t n = t.size(0);
  if (n < 2) return true;
  return holds(
      ops::gt(ops::narrow(t, 0, 1, n - 1), ops::narrow(t, 0, 0, n - 1)));
}

}  // namespace

void check_coo_sizes(const Tensor& indices,
                     const Tensor& values,
                     IntArrayRef size) {
  TAEDA_CHECK(indices.dim() > 0,
              "indices must be sparse_dim x nnz, but got: []");
  int64_t sparse = indices.size(0), dense = values.dim() - 1;
  TAEDA_CHECK(static_cast<int64_t>(size.size()) == sparse + dense,
              "'len(size) == sparse_dim + dense_dim' is not satisfied: "
              "len(size) = ",
              size.size(),
              ", sparse_dim = ",
              sparse,
              ", dense_dim = ",
              dense);
  TAEDA_CHECK(indices.dim() == 2,
              "indices must be sparse_dim x nnz, but got: ",
              indices.sizes());
  TAEDA_CHECK(indices.size(1) == values.size(0),
              "indices and values must have same nnz, but got nnz from "
              "indices: ",
              indices.size(1),
              ", nnz from values: ",
              values.size(0));
  DimVector expected =
      sizes_after(values.size(0), size.slice(static_cast<size_t>(sparse)));
  TAEDA_CHECK(values.sizes() == IntArrayRef(expected),
              "values has incorrect size, expected ",
              IntArrayRef(expected),
              ", got ",
              values.sizes());
}

void check_coo_parts(const Tensor& indices,
                     const Tensor& values,
                     IntArrayRef size,
                     bool is_coalesced) {
  check_coo_sizes(indices, values, size);
  int64_t sparse = indices.size(0);
  if (indices.size(1) == 0) return;
  for (int64_t d = 0; d < sparse; ++d) {
    Tensor row = ops::select(indices, 0, d);
    int64_t low = least(row), high = largest(row);
    TAEDA_CHECK(low >= 0, "found negative index ", low, " for dim ", d);
    TAEDA_CHECK(high < size[static_cast<size_t>(d)],
                "size is inconsistent with indices: for dim ",
                d,
                ", size is ",
                size[static_cast<size_t>(d)],
                " but found index ",
                high);
  }
  if (!is_coalesced) return;
  IntArrayRef outer = size.slice(0, static_cast<size_t>(sparse));
  TAEDA_CHECK(rises(numbers_of(indices, outer)),
              "cannot set is_coalesced to true if indices correspond to "
              "uncoalesced COO tensor");
}

// Compressed layouts
// -----------------------------------------------------------

namespace {

// What errors call the parts.
struct Names {
  std::string_view offsets, indices, count, major_word, minor;
};
Names names_of(Layout layout) {
  if (is_by_rows(layout)) {
    return {"crow_indices", "col_indices", "nrows", "rows", "ncols"};
  }
  return {"ccol_indices", "row_indices", "ncols", "columns", "nrows"};
}

struct Grid {
  int64_t batch, majors, minors, entries;
};

// Rows and columns of blocks, after the check that sizes divide.
Grid grid_of(const Tensor& offsets,
             const Tensor& values,
             IntArrayRef size,
             Layout layout) {
  int64_t batch = offsets.dim() - 1;
  std::array<int64_t, 2> counts{};
  for (int64_t d : {0, 1}) {
    int64_t whole = size[static_cast<size_t>(batch + d)];
    int64_t block = is_blocked(layout) ? values.size(batch + 1 + d) : 1;
    TAEDA_CHECK(block > 0 && whole % block == 0,
                "tensor shape[",
                batch + d,
                "] (=",
                whole,
                ") must be divisible with blocksize[",
                d,
                "] (=",
                block,
                ") as defined by values shape");
    counts[static_cast<size_t>(d)] = whole / block;
  }
  if (!is_by_rows(layout)) std::swap(counts[0], counts[1]);
  return {batch, counts[0], counts[1], values.size(batch)};
}

void check_kinds(const Tensor& offsets, const Tensor& indices, const Names& n) {
  TAEDA_CHECK(offsets.dtype() == indices.dtype(),
              n.offsets,
              " and ",
              n.indices,
              " must have the same dtype, bot got ",
              type_name(offsets.dtype()),
              " and ",
              type_name(indices.dtype()),
              ", respectively");
  TAEDA_CHECK(offsets.dtype() == kLong || offsets.dtype() == kInt,
              n.offsets,
              " and ",
              n.indices,
              " must be of dtype Int or Long, but got ",
              type_name(offsets.dtype()));
}

void check_batch(std::string_view name, const Tensor& t, IntArrayRef batch) {
  TAEDA_CHECK(t.sizes().slice(0, batch.size()) == batch,
              "all batch dimensions of the shape, indices and values must be "
              "the same, but ",
              name,
              " has shape ",
              t.sizes(),
              " where the batch is ",
              batch);
}

}  // namespace

void check_compressed_sizes(const Tensor& offsets,
                            const Tensor& indices,
                            const Tensor& values,
                            IntArrayRef size,
                            Layout layout) {
  Names n = names_of(layout);
  int64_t batch = offsets.dim() - 1, blocks = is_blocked(layout) ? 2 : 0;
  TAEDA_CHECK(batch >= 0,
              n.offsets,
              " must have dimensionality >= 1 but got ",
              offsets.dim());
  TAEDA_CHECK(indices.dim() == offsets.dim(),
              n.offsets,
              " and ",
              n.indices,
              " dimensionalities must be equal but got ",
              offsets.dim(),
              " and ",
              indices.dim(),
              ", respectively");
  TAEDA_CHECK(values.dim() > batch + blocks,
              "values must have dimensionality > sum of batch and block "
              "dimensionalities (=",
              batch,
              " + ",
              blocks,
              ") but got ",
              values.dim());
  int64_t dense = values.dim() - batch - blocks - 1;
  TAEDA_CHECK(static_cast<int64_t>(size.size()) == batch + 2 + dense,
              "tensor dimensionality must be sum of batch, base, and dense "
              "dimensionalities (=",
              batch,
              " + 2 + ",
              dense,
              ") but got ",
              size.size());
  IntArrayRef outer = size.slice(0, static_cast<size_t>(batch));
  check_batch(n.offsets, offsets, outer);
  check_batch(n.indices, indices, outer);
  check_batch("values", values, outer);
  Grid g = grid_of(offsets, values, size, layout);
  TAEDA_CHECK(offsets.size(-1) == g.majors + 1,
              n.offsets,
              ".shape[-1] must be equal to the number of ",
              n.major_word,
              " + 1 (=",
              g.majors + 1,
              "), but got ",
              offsets.size(-1));
  TAEDA_CHECK(indices.size(-1) == g.entries,
              n.indices,
              ".shape[-1] must be equal to nnz (=",
              g.entries,
              ") as defined by values.shape[",
              batch,
              "], but got ",
              indices.size(-1));
  TAEDA_CHECK(values.sizes().slice(static_cast<size_t>(batch + 1 + blocks)) ==
                  size.slice(static_cast<size_t>(batch + 2)),
              "values.shape must end in the dense sizes of the tensor, got ",
              values.sizes(),
              " and ",
              size);
}

void check_compressed_parts(const Tensor& offsets,
                            const Tensor& indices,
                            const Tensor& values,
                            IntArrayRef size,
                            Layout layout) {
  Names n = names_of(layout);
  check_kinds(offsets, indices, n);
  check_compressed_sizes(offsets, indices, values, size, layout);
  Grid g = grid_of(offsets, values, size, layout);
  auto satisfied = [](bool condition, const std::string& text) {
    TAEDA_CHECK(condition, "`", text, "` is not satisfied.");
  };
  satisfied(holds(ops::eq(ops::select(offsets, -1, 0), Scalar(0))),
            str_cat(n.offsets, "[..., 0] == 0"));
  satisfied(
      holds(ops::eq(ops::select(offsets, -1, g.majors), Scalar(g.entries))),
      str_cat(n.offsets, "[..., -1] == nnz"));
  Tensor counts = ops::sub(ops::narrow(offsets, -1, 1, g.majors),
                           ops::narrow(offsets, -1, 0, g.majors));
  satisfied(counts.numel() == 0 ||
                (least(counts) >= 0 && largest(counts) <= g.minors),
            str_cat("0 <= ",
                    n.offsets,
                    "[..., 1:] - ",
                    n.offsets,
                    "[..., :-1] <= ",
                    n.minor));
  satisfied(indices.numel() == 0 ||
                (least(indices) >= 0 && largest(indices) < g.minors),
            str_cat("0 <= ", n.indices, " < ", n.minor));
  Tensor t = make_compressed(layout, offsets, indices, values, size);
  satisfied(has_ordered_entries(t),
            str_cat(n.indices,
                    "[..., ",
                    n.offsets,
                    "[..., i - 1]:",
                    n.offsets,
                    "[..., i]] for all i = 1, ..., ",
                    n.count,
                    " are sorted and distinct along the last dimension "
                    "values"));
}

// Operators
// --------------------------------------------------------------------

void validate_sparse_coo(const Tensor& indices,
                         const Tensor& values,
                         IntArrayRef size,
                         std::optional<bool> is_coalesced,
                         std::optional<bool>) {
  check_coo_parts(indices, values, size, is_coalesced.value_or(false));
}

void validate_sparse_compressed(const Tensor& offsets,
                                const Tensor& indices,
                                const Tensor& values,
                                IntArrayRef size,
                                Layout layout,
                                std::optional<bool>) {
  TAEDA_CHECK(is_compressed(layout),
              "expected sparse compressed tensor layout but got ",
              layout_word(layout));
  check_compressed_parts(offsets, indices, values, size, layout);
}

}  // namespace taeda::native
