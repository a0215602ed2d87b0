// Advanced indexing: elements read and written at positions.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_unsafe_index.h>
#include <taeda/gen/native/index_put.h>
#include <taeda/gen/ops/masked_fill.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace taeda::native {

// Note [Advanced indexing]
// Masks stand for the index tensors of their true positions. The index tensors
// broadcast to one shape, whose dims take the place of the indexed dims if
// those are neighbours, and else come first. What remains is a grid
//   before x index x after
// where an element lies at before[b] + index[i] + after[a] of self's memory.

namespace {

constexpr int64_t kGrain = 16384;

struct Grid {
  DimVector shape;  // of the result
  std::vector<int64_t> before, index, after;
  bool dense_after = false;  // after[a] == a
  int64_t numel() const {
    return static_cast<int64_t>(before.size() * index.size() * after.size());
  }
};

using Indices = SmallVector<Tensor, 6>;

// One tensor of int64 positions, or undefined, per dim of self.
Indices expanded(const Tensor& self, ArrayRef<OptionalTensor> given) {
  Indices out;
  for (const OptionalTensor& entry : given) {
    if (!entry || !entry->defined()) {
      out.emplace_back();
    } else if (!is_mask(*entry)) {
      out.push_back(cast(*entry, kLong));
    } else {
      check_mask(self, *entry, out.size());
      Tensor rows = positions_of(*entry);
      int64_t count = rows.sizes()[0];
      for (int64_t d = 0; d < entry->dim(); ++d) {
        out.push_back(make_view(rows, {count}, {1}, d * count));
      }
    }
  }
  check_count(self, out.size());
  return out;
}

// The offsets of all places of a geometry, row-major.
std::vector<int64_t> offsets_of(IntArrayRef sizes, IntArrayRef strides) {
  std::vector<int64_t> out = {0};
  for (size_t d = 0; d < sizes.size(); ++d) {
    std::vector<int64_t> next;
    next.reserve(out.size() * static_cast<size_t>(sizes[d]));
    for (int64_t o : out) {
      for (int64_t i = 0; i < sizes[d]; ++i) next.push_back(o + i * strides[d]);
    }
    out = std::move(next);
  }
  return out;
}

void add_positions(const Tensor& self,
                   int64_t dim,
                   const Tensor& index,
                   IntArrayRef shape,
                   std::vector<int64_t>& offsets) {
  Tensor wide = index;
  if (index.sizes() != shape || !index.is_contiguous()) {
    wide = make_tensor("index", shape, kLong);
    copy_into(wide, index);
  }
  const int64_t* position = wide.const_data<int64_t>();
  int64_t size = self.sizes()[dim], stride = self.strides()[dim];
  TAEDA_CHECK_AS(Index,
                 size > 0 || offsets.empty(),
                 "index is out of bounds for dimension ",
                 dim,
                 ": for dimension with size 0 there is no index");
  for (size_t i = 0; i < offsets.size(); ++i) {
    int64_t p = position[i];
    TAEDA_CHECK_AS(Index,
                   p >= -size && p < size,
                   "index ",
                   p,
                   " is out of bounds for dimension ",
                   dim,
                   " with size ",
                   size);
    offsets[i] += (p < 0 ? p + size : p) * stride;
  }
}

// The places in the order in which the dense tensor `out` has them: dims that
// lie outside of the indices' come before, the others after.
void order_as(Places<int64_t>& places, const Tensor& out) {
  struct Dim {
    int64_t size, stride, place;
  };
  SmallVector<Dim, 8> dims;
  size_t first = places.sizes[0].size(), count = places.index.size();
  for (int side : {0, 1}) {
    for (size_t d = 0; d < places.sizes[side].size(); ++d) {
      int64_t place = out.strides()[d + (side == 0 ? 0 : first + count)];
      dims.push_back({places.sizes[side][d], places.strides[side][d], place});
    }
  }
  int64_t inside = 0;  // what one step of the innermost index spans
  for (size_t d = 0; d < count; ++d) {
    if (places.index[d] > 1) inside = out.strides()[first + d];
  }
  std::stable_sort(dims.begin(), dims.end(), [](const Dim& a, const Dim& b) {
    return a.place > b.place;
  });
  for (int side : {0, 1}) {
    places.sizes[side].clear();
    places.strides[side].clear();
  }
  for (const Dim& d : dims) {
    if (d.size == 1) continue;
    int side = inside > 0 && d.place > inside ? 0 : 1;
    places.sizes[side].push_back(d.size);
    places.strides[side].push_back(d.stride);
  }
}

Grid grid_of(const Tensor& self,
             ArrayRef<OptionalTensor> given,
             const Tensor* out = nullptr) {
  Indices indices = expanded(self, given);
  Places<int64_t> places =
      places_of<int64_t>(Spec<int64_t>(self), ArrayRef<Tensor>(indices));
  Grid grid;
  grid.shape = places.shape();
  if (out != nullptr && !out->is_contiguous()) order_as(places, *out);
  int64_t points = 1;
  for (int64_t s : places.index) points *= s;
  grid.index.assign(static_cast<size_t>(points), 0);
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    add_positions(
        self, static_cast<int64_t>(d), indices[d], places.index, grid.index);
  }
  grid.before = offsets_of(places.sizes[0], places.strides[0]);
  grid.after = offsets_of(places.sizes[1], places.strides[1]);
  grid.dense_after = contiguous_strides(places.sizes[1]) == places.strides[1];
  return grid;
}

template <class T>
void read_grid(const Grid& g, const T* from, T* to) {
  int64_t points = static_cast<int64_t>(g.index.size());
  int64_t width = static_cast<int64_t>(g.after.size());
  int64_t rows = points * static_cast<int64_t>(g.before.size());
  int64_t grain = kGrain / std::max<int64_t>(width, 1) + 1;
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      const T* in = from + g.before[r / points] + g.index[r % points];
      T* out = to + r * width;
      if (width == 1) {
        *out = *in;
      } else if (g.dense_after) {
        std::memcpy(out, in, static_cast<size_t>(width) * sizeof(T));
      } else {
        for (int64_t a = 0; a < width; ++a) out[a] = in[g.after[a]];
      }
    }
  });
}

// In order, so that the last of several values for one place stays, and sums
// are the same each time. `write(place, value)`.
template <class T>
void write_rows(const Grid& g, const T* values, T* to) {
  size_t width = g.after.size();
  for (int64_t b : g.before) {
    for (int64_t i : g.index) {
      std::memcpy(to + b + i, values, width * sizeof(T));
      values += width;
    }
  }
}
template <class T, class F>
void write_grid(const Grid& g, const T* values, T* to, F&& write) {
  for (int64_t b : g.before) {
    for (int64_t i : g.index) {
      T* out = to + b + i;
      for (int64_t a : g.after) write(out[a], *values++);
    }
  }
}

// The values in the grid's shape and self's dtype, in memory of their own.
Tensor dense_values(const Tensor& self,
                    const Tensor& source,
                    const Grid& grid) {
  bool apart = source.storage().get() != self.storage().get();
  bool plain = source.sizes() == IntArrayRef(grid.shape) && !source.is_conj() &&
               !source.is_neg();
  if (apart && plain && source.is_contiguous()) return source;
  Tensor wide = make_tensor("index_put_", grid.shape, self.dtype());
  copy_into(wide, source);
  return wide;
}

}  // namespace

void unsafe_index_cpu(const Tensor& self,
                      ArrayRef<OptionalTensor> indices,
                      const Tensor& out) {
  Tensor from = self.is_conj() || self.is_neg() ? contiguous(self) : self;
  if (out.numel() == 0) {
    grid_of(from, indices);  // positions are checked all the same
    return;
  }
  Grid grid = grid_of(from, indices, &out);
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    read_grid<T>(grid,
                 static_cast<const T*>(from.const_raw_data()),
                 static_cast<T*>(out.mutable_raw_data()));
  });
}

void index_put_cpu(const Tensor&,
                   ArrayRef<OptionalTensor> indices,
                   const Tensor& values,
                   bool accumulate,
                   const Tensor& self) {
  warn_of_bytes(indices);
  const Tensor* mask = only_mask(indices);
  if (mask != nullptr && mask->sizes() == self.sizes() && !accumulate &&
      values.dim() == 0) {
    ops::masked_fill_(self, *mask, values);
    return;
  }
  Grid grid = grid_of(self, indices);
  check_values<int64_t>(values.sizes(), grid.shape);
  if (grid.numel() == 0) return;
  Tensor source = values;
  while (source.dim() > static_cast<int64_t>(grid.shape.size())) {
    source = make_view(
        source,
        IntArrayRef(source.sizes().begin() + 1, source.sizes().end()),
        IntArrayRef(source.strides().begin() + 1, source.strides().end()),
        source.storage_offset());
  }
  Tensor wide = dense_values(self, source, grid);
  if (!accumulate) {
    visit_size(self.itemsize(), [&](auto tag) {
      using T = decltype(tag);
      const T* from = static_cast<const T*>(wide.const_raw_data());
      T* to = static_cast<T*>(self.mutable_raw_data());
      if (grid.dense_after && grid.after.size() > 1) {
        write_rows(grid, from, to);
      } else {
        write_grid(grid, from, to, [](T& place, T value) { place = value; });
      }
    });
    return;
  }
  visit_type(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    write_grid(grid,
               wide.const_data<T>(),
               self.mutable_data<T>(),
               [](T& place, T value) { place = sum_of<T>(place, value); });
  });
}

}  // namespace taeda::native
