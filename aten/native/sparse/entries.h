// Entries of sparse tensors by their places: what conversions and kernels that
// join two tensors stand on. All functions work with ops:: calls.
#pragma once

#include <taeda/aten/native/sparse/sparse_tensor.h>

namespace taeda::native {

// The number of each place in row-major order; `places` is [dims, n].
Tensor numbers_of(const Tensor& places, IntArrayRef sizes);
// The inverse: places [dims, n].
Tensor places_of(const Tensor& numbers, IntArrayRef sizes);

// Sums the values [n, ...] of equal numbers; numbers become ordered.
struct Summed {
  Tensor numbers, values;
};
Summed summed(const Tensor& numbers, const Tensor& values);

// For each wanted number its place among `ordered` numbers that differ, and
// whether it is there.
struct Found {
  Tensor at, is_there;
};
Found find_numbers(const Tensor& ordered, const Tensor& wanted);

// The values found, zeros where there are none.
Tensor values_at(const Tensor& values, const Found& found);

// Values times a number, in their own dtype.
Tensor scaled(const Tensor& values, const Scalar& by);

// `t` has the entries of a coalesced COO tensor.
Tensor coalesced(const Tensor& t);
// Any layout, strided tensors too, as COO of the first `sparse` dims.
Tensor to_coo(const Tensor& t, int64_t sparse);
inline Tensor to_coo(const Tensor& t) {
  return to_coo(t, is_sparse(t) ? batch_dims(t) + sparse_dims(t) : t.dim());
}
// Like `like` in layout, blocks and the number of dims of each kind.
Tensor to_layout_of(const Tensor& t, const Tensor& like);
Tensor to_strided(const Tensor& t);

// What a compressed tensor is to have besides its shape.
struct Compression {
  Layout layout;
  std::array<int64_t, 2> block;
  int64_t dense;
  ScalarType index_type = kLong;
};
// Of COO whose sparse dims are batch, rows and columns.
Tensor compress(const Tensor& coo, const Compression& how);

// Whether the entries of a compressed tensor are ordered and differ, row by row
// or column by column.
bool has_ordered_entries(const Tensor& t);

// The first `count` sizes, and the others.
inline IntArrayRef first_sizes(const Tensor& t, int64_t count) {
  return t.sizes().slice(0, static_cast<size_t>(count));
}
inline IntArrayRef last_sizes(const Tensor& t, int64_t from) {
  size_t start = static_cast<size_t>(from);
  return t.sizes().slice(start, t.sizes().size() - start);
}
int64_t product_of(IntArrayRef sizes);
// {first, rest...}
DimVector sizes_after(int64_t first, IntArrayRef rest);

}  // namespace taeda::native
