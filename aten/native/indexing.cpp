// Advanced indexing: index, index_put_.
#include <taeda/aten/native/indexing.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_index_put_impl_.h>
#include <taeda/gen/native/index.h>
#include <taeda/gen/native/index_put.h>
#include <taeda/gen/native/masked_select.h>
#include <taeda/gen/ops/masked_fill.h>

#include <cstring>

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

bool is_mask(const Tensor& t) {
  return t.dtype() == kBool || t.dtype() == kByte;
}

using Indices = SmallVector<Tensor, 6>;

void check_mask(const Tensor& self, const Tensor& mask, size_t at) {
  for (int64_t d = 0; d < mask.dim(); ++d) {
    int64_t own = static_cast<int64_t>(at) + d;
    TAEDA_CHECK_AS(Index,
                   own < self.dim() && mask.sizes()[d] == self.sizes()[own],
                   "The shape of the mask ",
                   mask.sizes(),
                   " at index ",
                   d,
                   " does not match the shape of the indexed tensor ",
                   self.sizes(),
                   " at index ",
                   own);
  }
}

// One tensor of int64 positions, or undefined, per dim of self.
Indices expanded(const Tensor& self, ArrayRef<OptionalTensor> given) {
  Indices out;
  for (const OptionalTensor& entry : given) {
    if (!entry || !entry->defined()) {
      out.emplace_back();
      continue;
    }
    const Tensor& t = *entry;
    TAEDA_CHECK_AS(Index,
                   t.dtype() == kLong || t.dtype() == kInt || is_mask(t),
                   "tensors used as indices must be long, int, byte or bool "
                   "tensors");
    if (!is_mask(t)) {
      out.push_back(cast(t, kLong));
      continue;
    }
    check_mask(self, t, out.size());
    Tensor rows = positions_of(t);
    int64_t count = rows.sizes()[0];
    for (int64_t d = 0; d < t.dim(); ++d) {
      out.push_back(make_view(rows, {count}, {1}, d * count));
    }
  }
  TAEDA_CHECK_AS(Index,
                 static_cast<int64_t>(out.size()) <= self.dim(),
                 "too many indices for tensor of dimension ",
                 self.dim(),
                 " (got ",
                 out.size(),
                 ")");
  out.resize(static_cast<size_t>(self.dim()));
  return out;
}

DimVector common_shape(const Indices& indices) {
  DimVector shape;
  for (const Tensor& t : indices) {
    if (!t.defined()) continue;
    size_t rank = std::max(shape.size(), t.sizes().size());
    while (shape.size() < rank) shape.insert(shape.begin(), 1);
    size_t shift = rank - t.sizes().size();
    for (size_t d = shift; d < rank; ++d) {
      int64_t own = t.sizes()[d - shift];
      bool fits = shape[d] == own || shape[d] == 1 || own == 1;
      if (!fits) {
        std::string shapes;
        for (const Tensor& u : indices) {
          if (!u.defined()) continue;
          if (!shapes.empty()) shapes += ", ";
          append_to(shapes, u.sizes());
        }
        throw_error(ErrorKind::Index,
                    "shape mismatch: indexing tensors could not be broadcast "
                    "together with shapes " +
                        shapes);
      }
      if (shape[d] == 1) shape[d] = own;
    }
  }
  return shape;
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
  Tensor wide = make_tensor("index", shape, kLong);
  copy_into(wide, index);
  const int64_t* position = wide.const_data<int64_t>();
  int64_t size = self.sizes()[dim], stride = self.strides()[dim];
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

Grid grid_of(const Tensor& self, ArrayRef<OptionalTensor> given) {
  Indices indices = expanded(self, given);
  DimVector shape = common_shape(indices);
  int64_t first = -1, last = -1, count = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!indices[d].defined()) continue;
    if (first < 0) first = d;
    last = d;
    ++count;
  }
  bool neighbours = last - first + 1 == count;
  Grid grid;
  DimVector sizes[2], strides[2];  // before, after
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (indices[d].defined()) continue;
    int side = neighbours && d < first ? 0 : 1;
    sizes[side].push_back(self.sizes()[d]);
    strides[side].push_back(self.strides()[d]);
  }
  grid.shape = sizes[0];
  for (int64_t s : shape) grid.shape.push_back(s);
  for (int64_t s : sizes[1]) grid.shape.push_back(s);
  int64_t points = 1;
  for (int64_t s : shape) points *= s;
  grid.index.assign(static_cast<size_t>(points), 0);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (indices[d].defined()) {
      add_positions(self, d, indices[d], shape, grid.index);
    }
  }
  grid.before = offsets_of(sizes[0], strides[0]);
  grid.after = offsets_of(sizes[1], strides[1]);
  grid.dense_after = contiguous_strides(sizes[1]) == strides[1];
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

void check_values(const Tensor& values, IntArrayRef shape) {
  bool fits = values.dim() <= static_cast<int64_t>(shape.size());
  for (int64_t d = 1; fits && d <= values.dim(); ++d) {
    int64_t own = values.sizes()[values.dim() - d];
    fits = own == 1 || own == shape[shape.size() - static_cast<size_t>(d)];
  }
  TAEDA_CHECK(fits,
              "shape mismatch: value tensor of shape ",
              values.sizes(),
              " cannot be broadcast to indexing result of shape ",
              shape);
}

}  // namespace

namespace {

// The mask, if the indices are one mask alone.
const Tensor* only_mask(ArrayRef<OptionalTensor> indices) {
  bool one = indices.size() == 1 && indices[0] && indices[0]->defined();
  return one && indices[0]->dtype() == kBool ? &*indices[0] : nullptr;
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

Tensor index(const Tensor& self, ArrayRef<OptionalTensor> indices) {
  const Tensor* mask = only_mask(indices);
  if (mask != nullptr && self.is_cpu() && mask->sizes() == self.sizes()) {
    return masked_select(self, *mask);
  }
  Tensor from = self.is_conj() || self.is_neg() ? contiguous(self) : self;
  Grid grid = grid_of(from, indices);
  Tensor out = make_tensor("index", grid.shape, self.dtype(), self.device());
  if (!out.is_cpu() || out.numel() == 0) return out;
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    read_grid<T>(grid,
                 static_cast<const T*>(from.const_raw_data()),
                 static_cast<T*>(out.mutable_raw_data()));
  });
  return out;
}

void index_put_(const Tensor& self,
                ArrayRef<OptionalTensor> indices,
                const Tensor& values,
                bool accumulate) {
  TAEDA_CHECK(
      self.dtype() == values.dtype(),
      "Index put requires the source and destination dtypes match, got ",
      self.dtype(),
      " for the destination and ",
      values.dtype(),
      " for the source.");
  check_no_internal_overlap("index_put_", self);
  const Tensor* mask = only_mask(indices);
  if (mask != nullptr && mask->sizes() == self.sizes() && !accumulate &&
      values.dim() == 0) {
    ops::masked_fill_(self, *mask, values);
    return;
  }
  Grid grid = grid_of(self, indices);
  // A trailing shape of ones may have more dims than the result.
  Tensor source = values;
  while (source.dim() > static_cast<int64_t>(grid.shape.size()) &&
         source.sizes()[0] == 1) {
    source = make_view(
        source,
        IntArrayRef(source.sizes().begin() + 1, source.sizes().end()),
        IntArrayRef(source.strides().begin() + 1, source.strides().end()),
        source.storage_offset());
  }
  check_values(source, grid.shape);
  if (!self.is_cpu() || grid.numel() == 0) return;
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

Tensor index_put(const Tensor& self,
                 ArrayRef<OptionalTensor> indices,
                 const Tensor& values,
                 bool accumulate) {
  Tensor out = new_like("index_put", self, {}, {}, {});
  copy_into(out, self);
  index_put_(out, indices, values, accumulate);
  return out;
}

void _index_put_impl_(const Tensor& self,
                      ArrayRef<OptionalTensor> indices,
                      const Tensor& values,
                      bool accumulate,
                      bool) {
  index_put_(self, indices, values, accumulate);
}

}  // namespace taeda::native
