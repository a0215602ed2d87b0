// Advanced indexing: index, index_put_.
#include <taeda/aten/native/indexing.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_unsafe_index.h>
#include <taeda/gen/native/index.h>
#include <taeda/gen/native/index_put.h>
#include <taeda/gen/ops/_unsafe_index.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/masked_select.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/unbind.h>

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

template <class T>
bool is_mask(const T& t) {
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

void check_count(const auto& self, size_t count) {
  TAEDA_CHECK_AS(Index,
                 static_cast<int64_t>(count) <= self.dim(),
                 "too many indices for tensor of dimension ",
                 self.dim(),
                 " (got ",
                 count,
                 ")");
}

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

template <class I, class T>
Dims<I> common_shape(ArrayRef<T> indices) {
  Dims<I> shape;
  for (const T& t : indices) {
    if (!t.defined()) continue;
    size_t rank = std::max(shape.size(), t.sizes().size());
    while (shape.size() < rank) shape.insert(shape.begin(), 1);
    size_t shift = rank - t.sizes().size();
    for (size_t d = shift; d < rank; ++d) {
      const I& own = t.sizes()[d - shift];
      if (!(shape[d] == own || shape[d] == 1 || own == 1)) {
        std::string shapes;
        for (const T& u : indices) {
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

// Where indices, none of them a mask, stand in self. See Note [Advanced
// indexing].
template <class I>
struct Places {
  Dims<I> index;                 // the shape of all indices together
  Dims<I> sizes[2], strides[2];  // of the dims before and after them
  Dims<I> shape() const {        // of the result
    Dims<I> all = sizes[0];
    for (const I& s : index) all.push_back(s);
    for (const I& s : sizes[1]) all.push_back(s);
    return all;
  }
};

template <class I, class T>
Places<I> places_of(const Spec<I>& self, ArrayRef<T> indices) {
  Places<I> places;
  places.index = common_shape<I>(indices);
  int64_t first = -1, last = -1, count = 0;
  auto indexed = [&](int64_t d) {
    return d < static_cast<int64_t>(indices.size()) && indices[d].defined();
  };
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!indexed(d)) continue;
    if (first < 0) first = d;
    last = d;
    ++count;
  }
  bool neighbours = last - first + 1 == count;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (indexed(d)) continue;
    int side = neighbours && d < first ? 0 : 1;
    places.sizes[side].push_back(self.sizes()[d]);
    places.strides[side].push_back(self.strides()[d]);
  }
  return places;
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
  Places<int64_t> places =
      places_of<int64_t>(Spec<int64_t>(self), ArrayRef<Tensor>(indices));
  Grid grid;
  grid.shape = places.shape();
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

template <class I>
void check_values(ArrayRef<I> values, ArrayRef<I> shape) {
  // A trailing shape of ones may have more dims than the result.
  size_t extra = 0;
  while (values.size() - extra > shape.size() && values[extra] == 1) ++extra;
  size_t rank = values.size() - extra;
  bool fits = rank <= shape.size();
  for (size_t d = 1; fits && d <= rank; ++d) {
    const I& own = values[values.size() - d];
    fits = own == 1 || own == shape[shape.size() - d];
  }
  TAEDA_CHECK(fits,
              "shape mismatch: value tensor of shape ",
              values,
              " cannot be broadcast to indexing result of shape ",
              shape);
}

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

template <class I>
void check_dtypes(SpecList<I> indices) {
  for (const Spec<I>& t : indices) {
    TAEDA_CHECK_AS(
        Index,
        !t.defined() || t.dtype() == kLong || t.dtype() == kInt || is_mask(t),
        "tensors used as indices must be long, int, byte or bool "
        "tensors");
  }
}

Tensor index(const Tensor& self, ArrayRef<OptionalTensor> indices) {
  const Tensor* mask = only_mask(indices);
  if (mask != nullptr && mask->sizes() == self.sizes()) {
    return ops::masked_select(self, *mask);
  }
  auto names_mask = [](const OptionalTensor& t) {
    return t && t->defined() && is_mask(*t);
  };
  if (std::none_of(indices.begin(), indices.end(), names_mask)) {
    return ops::_unsafe_index(self, indices);
  }
  SmallVector<OptionalTensor, 6> positions;
  for (const OptionalTensor& entry : indices) {
    if (!names_mask(entry)) {
      positions.push_back(entry);
      continue;
    }
    check_mask(self, *entry, positions.size());
    for (Tensor& column : ops::unbind(ops::nonzero(*entry), 1)) {
      positions.push_back(std::move(column));
    }
  }
  return ops::_unsafe_index(self, positions);
}

template <class I>
void unsafe_index_shape(const Spec<I>& self,
                        SpecList<I> indices,
                        Plan<I>& plan) {
  check_dtypes(indices);
  for (const Spec<I>& t : indices) {
    TAEDA_CHECK_AS(Index,
                   !t.defined() || !is_mask(t),
                   "_unsafe_index: expected positions, got a mask ",
                   t);
  }
  check_count(self, indices.size());
  plan.set(0, places_of<I>(self, indices).shape(), self.dtype());
}
TAEDA_SHAPE(unsafe_index_shape);

void unsafe_index_cpu(const Tensor& self,
                      ArrayRef<OptionalTensor> indices,
                      const Tensor& out) {
  Tensor from = self.is_conj() || self.is_neg() ? contiguous(self) : self;
  Grid grid = grid_of(from, indices);
  if (out.numel() == 0) return;
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    read_grid<T>(grid,
                 static_cast<const T*>(from.const_raw_data()),
                 static_cast<T*>(out.mutable_raw_data()));
  });
}

template <class I>
void index_put_shape(const Spec<I>& self,
                     SpecList<I> indices,
                     const Spec<I>& values,
                     bool,
                     Plan<I>& plan) {
  TAEDA_CHECK(
      self.dtype() == values.dtype(),
      "Index put requires the source and destination dtypes match, got ",
      self.dtype(),
      " for the destination and ",
      values.dtype(),
      " for the source.");
  check_dtypes(indices);
  // Where masks choose, only the data tell how many places there are.
  if (std::none_of(indices.begin(), indices.end(), is_mask<Spec<I>>)) {
    check_count(self, indices.size());
    Dims<I> shape = places_of<I>(self, indices).shape();
    check_values<I>(values.sizes(), shape);
  }
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(index_put_shape);

void index_put_cpu(const Tensor&,
                   ArrayRef<OptionalTensor> indices,
                   const Tensor& values,
                   bool accumulate,
                   const Tensor& self) {
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
