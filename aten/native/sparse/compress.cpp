// From places to the compressed layouts.
#include <taeda/aten/native/sparse/entries.h>
#include <taeda/gen/ops/_unique2.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/bincount.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/floor_divide.h>
#include <taeda/gen/ops/index_copy.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/remainder.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sort.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>
#include <array>

namespace taeda::native {

namespace {

// The grid of blocks in which entries have their places.
struct Blocks {
  IntArrayRef batch;
  int64_t rows, columns;  // of blocks
  int64_t height, width;  // of a block
  bool by_rows;
  int64_t majors() const { return by_rows ? rows : columns; }
  int64_t minors() const { return by_rows ? columns : rows; }
};

Blocks blocks_of(const Tensor& coo, const Compression& how) {
  int64_t batch = sparse_dims(coo) - 2;
  int64_t rows = coo.size(batch), columns = coo.size(batch + 1);
  auto [height, width] = how.block;
  TAEDA_CHECK(
      height > 0 && width > 0 && rows % height == 0 && columns % width == 0,
      "tensor sparse size (",
      rows,
      ",",
      columns,
      ") must be divisible by given blocksize (",
      height,
      ",",
      width,
      ")");
  return {first_sizes(coo, batch),
          rows / height,
          columns / width,
          height,
          width,
          is_by_rows(how.layout)};
}

Tensor divided(const Tensor& t, int64_t by) {
  return by == 1 ? t : ops::floor_divide(t, Scalar(by));
}
Tensor left_over(const Tensor& t, int64_t by) {
  return ops::remainder(t, Scalar(std::max<int64_t>(by, 1)));
}

// Ordered numbers of blocks, by batch, major and minor place, and the values.
struct Ordered {
  Tensor numbers, values;
};
Ordered order(const Tensor& coo, const Blocks& b) {
  const SparseParts& p = parts_of(coo);
  int64_t batch = sparse_dims(coo) - 2;
  Tensor row = ops::select(p.indices, 0, batch);
  Tensor column = ops::select(p.indices, 0, batch + 1);
  Tensor major = divided(row, b.height), minor = divided(column, b.width);
  if (!b.by_rows) std::swap(major, minor);
  Tensor numbers = numbers_of(ops::narrow(p.indices, 0, 0, batch), b.batch);
  numbers = ops::add(ops::mul(numbers, Scalar(b.majors())), major);
  numbers = ops::add(ops::mul(numbers, Scalar(b.minors())), minor);
  int64_t area = b.height * b.width;
  if (area == 1) {
    auto [ordered, from] = ops::sort(numbers, std::optional<bool>(true), 0);
    return {ordered, ops::index_select(p.values, 0, from)};
  }
  auto [ordered, block, unused] = ops::_unique2(numbers, true, true, false);
  // Where each value lies among all elements of all blocks.
  Tensor within = ops::add(ops::mul(left_over(row, b.height), Scalar(b.width)),
                           left_over(column, b.width));
  Tensor at = ops::add(ops::mul(block, Scalar(area)), within);
  DimVector sizes =
      sizes_after(ordered.size(0) * area, last_sizes(p.values, 1));
  Tensor values =
      ops::zeros(sizes, coo.dtype(), std::nullopt, p.values.device());
  ops::index_copy_(values, 0, at, p.values);
  return {ordered, values};
}

// Where each row begins, [batches, rows + 1].
Tensor offsets_of(const Tensor& majors, int64_t batches, int64_t rows) {
  Tensor counts = ops::reshape(
      ops::bincount(majors, std::nullopt, batches * rows), {batches, rows});
  Tensor offsets =
      ops::zeros({batches, rows + 1}, kLong, std::nullopt, majors.device());
  ops::copy_(ops::narrow(offsets, 1, 1, rows), ops::cumsum(counts, 1));
  if (batches > 1) {
    Tensor last = ops::select(offsets, 1, rows);
    Tensor same = ops::all(ops::eq(last, ops::select(last, 0, 0)));
    TAEDA_CHECK(ops::item(same).to_bool(),
                "Expect the same number of specified elements per batch.");
  }
  return offsets;
}

DimVector joined(IntArrayRef a, IntArrayRef b) {
  DimVector all(a.begin(), a.end());
  for (int64_t s : b) all.push_back(s);
  return all;
}

}  // namespace

Tensor compress(const Tensor& given, const Compression& how) {
  Tensor coo = coalesced(given);
  Blocks b = blocks_of(coo, how);
  Ordered o = order(coo, b);
  int64_t batches = product_of(b.batch);
  Tensor majors =
      ops::floor_divide(o.numbers, Scalar(std::max<int64_t>(b.minors(), 1)));
  Tensor offsets = offsets_of(majors, batches, b.majors());
  int64_t n = batches == 0 ? 0 : o.numbers.size(0) / batches;
  DimVector value_sizes = joined(b.batch, {n});
  if (is_blocked(how.layout)) {
    value_sizes = joined(value_sizes, {b.height, b.width});
  }
  value_sizes = joined(value_sizes, last_sizes(coo, sparse_dims(coo)));
  Tensor minors = ops::to(left_over(o.numbers, b.minors()), how.index_type);
  return make_compressed(how.layout,
                         ops::reshape(ops::to(offsets, how.index_type),
                                      joined(b.batch, {b.majors() + 1})),
                         ops::reshape(minors, joined(b.batch, {n})),
                         ops::reshape(o.values, value_sizes),
                         coo.sizes());
}

Tensor to_layout_of(const Tensor& t, const Tensor& like) {
  if (!is_sparse(like)) return to_strided(t);
  if (is_coo(like)) return to_coo(t, sparse_dims(like));
  int64_t batch = batch_dims(like);
  return compress(to_coo(t, batch + 2),
                  {like.layout(),
                   block_of(like),
                   dense_dims(like),
                   parts_of(like).offsets.dtype()});
}

}  // namespace taeda::native
