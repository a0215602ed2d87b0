#include <taeda/aten/native/sparse/entries.h>
#include <taeda/gen/ops/_unique2.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/clamp_max.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/floor_divide.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/index_add.h>
#include <taeda/gen/ops/index_copy.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/ne.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/remainder.h>
#include <taeda/gen/ops/repeat_interleave.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/searchsorted.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/t.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>
#include <array>

namespace taeda::native {

namespace {

Tensor zeros_beside(const Tensor& t, IntArrayRef sizes, ScalarType dtype) {
  return ops::zeros(sizes, dtype, std::nullopt, t.device());
}

Tensor quotient(const Tensor& t, int64_t by) {
  return ops::floor_divide(t, Scalar(std::max<int64_t>(by, 1)));
}
Tensor rest_of(const Tensor& t, int64_t by) {
  return ops::remainder(t, Scalar(std::max<int64_t>(by, 1)));
}
// t * factor + other
Tensor in_steps(const Tensor& t, int64_t factor, const Tensor& other) {
  return ops::add(ops::mul(t, Scalar(factor)), other);
}

}  // namespace

int64_t product_of(IntArrayRef sizes) {
  int64_t product = 1;
  for (int64_t s : sizes) product *= s;
  return product;
}

DimVector sizes_after(int64_t first, IntArrayRef rest) {
  DimVector sizes;
  sizes.push_back(first);
  for (int64_t s : rest) sizes.push_back(s);
  return sizes;
}

Tensor numbers_of(const Tensor& places, IntArrayRef sizes) {
  Tensor numbers = zeros_beside(places, {places.size(1)}, kLong);
  for (size_t d = 0; d < sizes.size(); ++d) {
    Tensor row = ops::select(places, 0, static_cast<int64_t>(d));
    numbers = d == 0 ? ops::to(row, kLong) : in_steps(numbers, sizes[d], row);
  }
  return numbers;
}

Tensor places_of(const Tensor& numbers, IntArrayRef sizes) {
  if (sizes.empty()) return zeros_beside(numbers, {0, numbers.size(0)}, kLong);
  std::vector<Tensor> rows(sizes.size());
  Tensor left = numbers;
  for (size_t d = sizes.size(); d-- > 0;) {
    rows[d] = d == 0 ? left : rest_of(left, sizes[d]);
    if (d > 0) left = quotient(left, sizes[d]);
  }
  return ops::stack(rows);
}

Summed summed(const Tensor& numbers, const Tensor& values) {
  auto [ordered, group, unused] =
      ops::_unique2(numbers, /*sorted=*/true, /*return_inverse=*/true, false);
  if (values.dtype() == kBool) {
    Summed wide = summed(numbers, ops::to(values, kByte));
    return {wide.numbers, ops::ne(wide.values, Scalar(0))};
  }
  DimVector sizes = sizes_after(ordered.size(0), last_sizes(values, 1));
  Tensor sums = zeros_beside(values, sizes, values.dtype());
  ops::index_add_(sums, 0, group, values);
  return {ordered, sums};
}

Found find_numbers(const Tensor& ordered, const Tensor& wanted) {
  int64_t n = ordered.size(0);
  if (n == 0) {
    return {zeros_beside(wanted, wanted.sizes(), kLong),
            zeros_beside(wanted, wanted.sizes(), kBool)};
  }
  Tensor at = ops::clamp_max(ops::searchsorted(ordered, wanted), Scalar(n - 1));
  return {at, ops::eq(ops::index_select(ordered, 0, at), wanted)};
}

Tensor values_at(const Tensor& values, const Found& found) {
  int64_t n = found.at.size(0);
  if (values.size(0) == 0) {
    return zeros_beside(
        values, sizes_after(n, last_sizes(values, 1)), values.dtype());
  }
  DimVector column(static_cast<size_t>(values.dim()), 1);
  column[0] = n;
  return ops::where(ops::reshape(found.is_there, column),
                    ops::index_select(values, 0, found.at),
                    Scalar(false));
}

Tensor scaled(const Tensor& values, const Scalar& by) {
  if (by.equal(1.0)) return values;
  bool whole = is_integral(values.dtype(), /*include_bool=*/true);
  TAEDA_CHECK(!whole || by.is_integral() || by.is_bool(),
              "For integral input tensors, argument alpha must not be a "
              "floating point number, got ",
              by);
  return ops::to(ops::mul(values, by), values.dtype());
}

Tensor coalesced(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  if (p.coalesced) return t;
  if (p.values.size(0) < 2) {
    return make_coo(p.indices, p.values, t.sizes(), /*coalesced=*/true);
  }
  IntArrayRef sizes = first_sizes(t, sparse_dims(t));
  Summed s = summed(numbers_of(p.indices, sizes), p.values);
  return make_coo(places_of(s.numbers, sizes), s.values, t.sizes(), true);
}

// From compressed layouts
// -------------------------------------------------------

namespace {

// Each entry's place in the grid of blocks, batches one after the other.
struct Grid {
  Tensor batch, row, column;
};
Grid grid_of(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  int64_t steps = p.offsets.size(-1) - 1;
  Tensor offsets = ops::reshape(ops::to(p.offsets, kLong),
                                {-1, std::max(steps + 1, int64_t{1})});
  Tensor counts = ops::sub(ops::narrow(offsets, 1, 1, steps),
                           ops::narrow(offsets, 1, 0, steps));
  Tensor minor = ops::flatten(ops::to(p.indices, kLong));
  // Elsewhere the counts say it, and are checked by it.
  std::optional<int64_t> total;
  if (minor.is_meta()) total = minor.numel();
  Tensor major = ops::repeat_interleave(ops::flatten(counts), total);
  Grid grid{quotient(major, steps), rest_of(major, steps), minor};
  if (!is_by_rows(t.layout())) std::swap(grid.row, grid.column);
  return grid;
}

}  // namespace

bool has_ordered_entries(const Tensor& t) {
  Grid g = grid_of(t);
  int64_t rows = parts_of(t).offsets.size(-1) - 1;
  if (!is_by_rows(t.layout())) std::swap(g.row, g.column);
  // Columns of different rows never meet: a step is wider than any of them.
  int64_t step = 1 + *std::max_element(t.sizes().begin(), t.sizes().end());
  Tensor numbers = in_steps(in_steps(g.batch, rows, g.row), step, g.column);
  int64_t n = numbers.size(0);
  if (n < 2) return true;
  Tensor rising = ops::gt(ops::narrow(numbers, 0, 1, n - 1),
                          ops::narrow(numbers, 0, 0, n - 1));
  return ops::item(ops::all(rising)).to_bool();
}

namespace {

// Places within blocks, after the places of blocks: [n] to [n, rows, columns].
Tensor spread(const Tensor& at, int64_t size, int dim, IntArrayRef block) {
  Tensor within =
      ops::arange(Scalar(size), kLong, std::nullopt, at.device(), std::nullopt);
  DimVector shape{1, 1, 1};
  shape[static_cast<size_t>(dim)] = size;
  Tensor all =
      in_steps(ops::reshape(at, {-1, 1, 1}), size, ops::reshape(within, shape));
  DimVector sizes = sizes_after(at.size(0), block);
  return ops::flatten(ops::expand(all, sizes));
}
Tensor repeated(const Tensor& at, IntArrayRef block) {
  DimVector sizes = sizes_after(at.size(0), block);
  return ops::flatten(ops::expand(ops::reshape(at, {-1, 1, 1}), sizes));
}

Tensor compressed_to_coo(const Tensor& t) {
  const SparseParts& p = parts_of(t);
  int64_t batch = batch_dims(t);
  Grid g = grid_of(t);
  if (is_blocked(t.layout())) {
    std::array<int64_t, 2> block = block_of(t);
    g.batch = repeated(g.batch, block);
    g.row = spread(g.row, block[0], 1, block);
    g.column = spread(g.column, block[1], 2, block);
  }
  Tensor outer = places_of(g.batch, first_sizes(t, batch));
  std::vector<Tensor> rows;
  for (int64_t d = 0; d < batch; ++d) rows.push_back(ops::select(outer, 0, d));
  rows.push_back(g.row);
  rows.push_back(g.column);
  DimVector sizes = sizes_after(g.row.size(0), last_sizes(t, batch + 2));
  return make_coo(ops::stack(rows),
                  ops::reshape(p.values, sizes),
                  t.sizes(),
                  t.layout() == Layout::SparseCsr);
}

Tensor strided_to_coo(const Tensor& t, int64_t sparse) {
  Tensor mask = ops::ne(t, Scalar(0));
  if (sparse < t.dim()) mask = ops::any(ops::flatten(mask, sparse), -1);
  Tensor places = ops::contiguous(ops::t(ops::nonzero(mask)));
  IntArrayRef outer = first_sizes(t, sparse);
  DimVector rows = sizes_after(product_of(outer), last_sizes(t, sparse));
  Tensor values =
      ops::index_select(ops::reshape(t, rows), 0, numbers_of(places, outer));
  return make_coo(places, values, t.sizes(), /*coalesced=*/true);
}

}  // namespace

Tensor to_coo(const Tensor& t, int64_t sparse) {
  if (!is_sparse(t)) return strided_to_coo(t, sparse);
  Tensor coo = is_coo(t) ? t : compressed_to_coo(t);
  if (sparse_dims(coo) == sparse) return coo;
  return strided_to_coo(to_strided(coo), sparse);
}

Tensor to_strided(const Tensor& t) {
  if (!is_sparse(t)) return t;
  Tensor coo = to_coo(t);
  // Sums of bools are theirs alone who are coalesced.
  if (t.dtype() == kBool) coo = coalesced(coo);
  const SparseParts& p = parts_of(coo);
  int64_t sparse = sparse_dims(coo);
  IntArrayRef outer = first_sizes(t, sparse);
  DimVector rows = sizes_after(product_of(outer), last_sizes(t, sparse));
  Tensor out = zeros_beside(p.values, rows, t.dtype());
  Tensor numbers = numbers_of(p.indices, outer);
  if (p.coalesced) {
    ops::index_copy_(out, 0, numbers, p.values);
  } else {
    ops::index_add_(out, 0, numbers, p.values);
  }
  return ops::reshape(out, t.sizes());
}

}  // namespace taeda::native
