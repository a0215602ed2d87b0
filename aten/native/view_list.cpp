// Views that come several at a time: split, unbind and their relatives.
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/native/view.h>
#include <taeda/gen/native/chunk.h>
#include <taeda/gen/native/dsplit.h>
#include <taeda/gen/native/hsplit.h>
#include <taeda/gen/native/split.h>
#include <taeda/gen/native/split_with_sizes.h>
#include <taeda/gen/native/tensor_split.h>
#include <taeda/gen/native/unbind.h>
#include <taeda/gen/native/unsafe_chunk.h>
#include <taeda/gen/native/unsafe_split.h>
#include <taeda/gen/native/unsafe_split_with_sizes.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/split.h>
#include <taeda/gen/ops/split_with_sizes.h>
#include <taeda/gen/ops/tensor_split.h>
#include <taeda/gen/ops/unsafe_split.h>
#include <taeda/gen/ops/unsafe_split_with_sizes.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/view.h>
#include <taeda/gen/sym/slice.h>

namespace taeda::native {

using Views = std::vector<Tensor>;

Tensor make_view_of_many(const Tensor& self,
                         IntArrayRef sizes,
                         IntArrayRef strides,
                         int64_t offset) {
  Tensor view = make_view(self, sizes, strides, offset);
  if (view.impl()->view_creation() == ViewCreation::Default) {
    view.impl()->set_view_creation(ViewCreation::MultiOutput);
  }
  return view;
}

namespace {

// Each view is an object of its own: of more than these a call would fill the
// memory before it failed.
int64_t checked_count(int64_t n) {
  TAEDA_CHECK(n <= int64_t{1} << 32,
              "not enough memory: ",
              n,
              " views of one tensor were asked for");
  return n;
}
int64_t as_count(int64_t n) { return checked_count(n); }
// How many views there are is no size: it has to be known.
int64_t as_count(const SymInt& n) { return checked_count(n.guard()); }

// Calls make(start, length) for parts of `size` elements of a dim.
template <class I, class F>
void for_each_part(const I& whole, const I& size, F&& make) {
  int64_t parts = 1;
  if (size != 0) {
    parts = std::max<int64_t>(as_count((whole - I(1)) / size + I(1)), 1);
  }
  for (int64_t i = 0; i < parts; ++i) {
    I start = I(i) * size;
    make(start, i + 1 < parts ? size : whole - start);
  }
}

template <class I, class T>
I checked_split(const T& self, const I& size, int64_t dim) {
  TAEDA_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  TAEDA_CHECK(size >= 0,
              "split expects split_size be non-negative, but got split_size=",
              size);
  I whole = self.size(dim);
  TAEDA_CHECK(size > 0 || whole == 0,
              "split_size can only be 0 if dimension size is 0, but got "
              "dimension size of ",
              whole);
  return whole;
}

template <class I, class T>
void check_sizes(const T& self, ArrayRef<I> sizes, int64_t dim) {
  TAEDA_CHECK(self.dim() != 0, "split expects at least a 1-dimensional tensor");
  I whole = self.size(dim), sum = 0;
  for (const I& s : sizes) {
    TAEDA_CHECK(s >= 0,
                "split_with_sizes expects split_sizes have only non-negative "
                "entries, but got split_sizes=",
                sizes);
    sum += s;
  }
  TAEDA_CHECK(sum == whole,
              "split_with_sizes expects split_sizes to sum exactly to ",
              whole,
              " (input tensor's size at dimension ",
              dim,
              "), but got split_sizes=",
              sizes);
}

Tensor part_of(const Tensor& self, int64_t dim, int64_t start, int64_t count) {
  DimVector sizes(self.sizes());
  sizes[dim] = count;
  return make_view_of_many(self,
                           sizes,
                           self.strides(),
                           self.storage_offset() + start * self.strides()[dim]);
}

// Shares memory without being a view: changes of one are not tracked in others.
Tensor untracked(const Tensor& part) {
  return Tensor(part.impl()->shallow_copy(/*share_version=*/false));
}

Views untracked(Views parts) {
  for (Tensor& t : parts) t = untracked(t);
  return parts;
}

}  // namespace

namespace {
template <class I>
void add_part(ViewGeometries<I>& out,
              const ViewGeometry<I>& self,
              int64_t dim,
              const I& start,
              const I& count) {
  ViewGeometry<I>& g = out.emplace_back(self);
  g.offset += start * g.strides[dim];
  g.sizes[dim] = count;
}
}  // namespace

template <class I>
ViewGeometries<I> split_rule(ViewGeometry<I> self, I split_size, int64_t dim) {
  I whole = checked_split(self, split_size, dim);
  dim = wrap_dim(dim, self.dim());
  ViewGeometries<I> out;
  for_each_part(whole, split_size, [&](const I& start, const I& count) {
    add_part(out, self, dim, start, count);
  });
  return out;
}
TAEDA_SHAPE(split_rule);

template <class I>
ViewGeometries<I> split_with_sizes_rule(ViewGeometry<I> self,
                                        ArrayRef<I> split_sizes,
                                        int64_t dim) {
  check_sizes(self, split_sizes, dim);
  dim = wrap_dim(dim, self.dim());
  ViewGeometries<I> out;
  I start = 0;
  for (const I& s : split_sizes) {
    add_part(out, self, dim, start, s);
    start += s;
  }
  return out;
}
TAEDA_SHAPE(split_with_sizes_rule);

template <class I>
ViewGeometries<I> unbind_rule(ViewGeometry<I> self, int64_t dim) {
  TAEDA_CHECK_AS(Index,
                 self.dim() > 0,
                 "Dimension specified as ",
                 dim,
                 " but tensor has no dimensions");
  dim = wrap_dim(dim, self.dim());
  int64_t count = as_count(self.sizes[dim]);
  ViewGeometries<I> out;
  for (int64_t i = 0; i < count; ++i) {
    ViewGeometry<I>& g = out.emplace_back(self);
    g.offset += I(i) * g.strides[dim];
    g.drop(dim);
  }
  return out;
}
TAEDA_SHAPE(unbind_rule);

Views split(const Tensor& self, int64_t split_size, int64_t dim) {
  int64_t whole = checked_split(self, split_size, dim);
  dim = wrap_dim(dim, self.dim());
  Views out;
  for_each_part(whole, split_size, [&](int64_t start, int64_t count) {
    out.push_back(part_of(self, dim, start, count));
  });
  return out;
}

Views split_with_sizes(const Tensor& self,
                       ArrayRef<int64_t> split_sizes,
                       int64_t dim) {
  check_sizes(self, split_sizes, dim);
  dim = wrap_dim(dim, self.dim());
  Views out;
  out.reserve(split_sizes.size());
  int64_t start = 0;
  for (int64_t s : split_sizes) {
    out.push_back(part_of(self, dim, start, s));
    start += s;
  }
  return out;
}

Views unsafe_split(const Tensor& self, int64_t split_size, int64_t dim) {
  return untracked(split(self, split_size, dim));
}
Views unsafe_split_with_sizes(const Tensor& self,
                              ArrayRef<int64_t> split_sizes,
                              int64_t dim) {
  return untracked(split_with_sizes(self, split_sizes, dim));
}

Views unbind(const Tensor& self, int64_t dim) {
  TAEDA_CHECK_AS(Index,
                 self.dim() > 0,
                 "Dimension specified as ",
                 dim,
                 " but tensor has no dimensions");
  dim = wrap_dim(dim, self.dim());
  DimVector sizes(self.sizes()), strides(self.strides());
  sizes.erase(sizes.begin() + dim);
  strides.erase(strides.begin() + dim);
  int64_t count = as_count(self.sizes()[dim]);
  Views out;
  out.reserve(static_cast<size_t>(count));
  for (int64_t i = 0; i < count; ++i) {
    out.push_back(make_view_of_many(
        self, sizes, strides, self.storage_offset() + i * self.strides()[dim]));
  }
  return out;
}

namespace {

int64_t chunk_size(const Tensor& self, int64_t chunks, int64_t dim) {
  TAEDA_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  TAEDA_CHECK(
      chunks > 0, "chunk expects `chunks` to be greater than 0, got: ", chunks);
  int64_t whole = self.size(dim);
  if (whole == 0) checked_count(chunks);
  return whole == 0 ? 0 : (whole - 1) / chunks + 1;
}

}  // namespace

Views chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  int64_t size = chunk_size(self, chunks, dim);
  if (size > 0) return ops::split(self, size, dim);
  DimVector sizes(static_cast<size_t>(chunks), 0);
  return ops::split_with_sizes(self, sizes, dim);
}
Views unsafe_chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  int64_t size = chunk_size(self, chunks, dim);
  if (size > 0) return ops::unsafe_split(self, size, dim);
  DimVector sizes(static_cast<size_t>(chunks), 0);
  return ops::unsafe_split_with_sizes(self, sizes, dim);
}

// tensor_split
// ------------------------------------------------------------------

namespace {
void check_has_dims(const Tensor& self) {
  TAEDA_CHECK(self.dim() > 0,
              "tensor_split expected at least a 1-dimensional tensor, but got "
              "a tensor with ",
              self.dim(),
              " dims");
}
}  // namespace

Views tensor_split(const Tensor& self, int64_t sections, int64_t dim) {
  check_has_dims(self);
  dim = wrap_dim(dim, self.dim());
  TAEDA_CHECK(
      sections > 0, "number of sections must be larger than 0, got ", sections);
  checked_count(sections);
  const SymInt& whole = symbolic_size(self, dim);
  SymInt each = whole / SymInt(sections), more = whole % SymInt(sections);
  SymInt start = 0;
  Views out;
  for (int64_t i = 0; i < sections; ++i) {
    SymInt end = start + each;
    if (more > i) end += 1;
    out.push_back(sym::slice(self, dim, start, end, 1));
    start = end;
  }
  return out;
}

Views tensor_split(const Tensor& self, ArrayRef<int64_t> indices, int64_t dim) {
  check_has_dims(self);
  dim = wrap_dim(dim, self.dim());
  Views out;
  int64_t start = 0;
  for (int64_t end : indices) {
    out.push_back(ops::slice(self, dim, start, end, 1));
    start = end;
  }
  out.push_back(ops::slice(self, dim, start, self.sizes()[dim], 1));
  return out;
}

Views tensor_split(const Tensor& self, const Tensor& where, int64_t dim) {
  check_has_dims(self);
  TAEDA_CHECK(where.is_cpu(),
              "tensor_split expected tensor_indices_or_sections to be on cpu, "
              "but it's on ",
              where.device());
  TAEDA_CHECK(where.dtype() == kLong,
              "tensor_split expected tensor_indices_or_sections to have dtype "
              "of long, but got ",
              where.dtype());
  TAEDA_CHECK(where.dim() <= 1,
              "tensor_split expected tensor_indices_or_sections to be a "
              "zero-dimensional or one-dimensional tensor, but got a tensor "
              "with ",
              where.dim(),
              " dims");
  if (where.dim() == 0) {
    return ops::tensor_split(self, ops::item(where).to_int(), dim);
  }
  DimVector indices;
  for (int64_t i = 0; i < where.numel(); ++i) {
    indices.push_back(where.const_data<int64_t>()[i * where.strides()[0]]);
  }
  return ops::tensor_split(self, indices, dim);
}

namespace {

int64_t split_dim(const Tensor& self, const char* op, int64_t rank) {
  TAEDA_CHECK(self.dim() >= rank,
              "torch.",
              op,
              " requires a tensor with at least ",
              rank,
              " dimension, but got a tensor with ",
              self.dim(),
              " dimensions!");
  if (rank == 1) return self.dim() == 1 ? 0 : 1;
  return rank == 2 ? 0 : 2;
}

Views split_evenly(const Tensor& self,
                   const char* op,
                   int64_t dim,
                   int64_t sections) {
  TAEDA_CHECK(sections != 0 && self.sizes()[dim] % sections == 0,
              "torch.",
              op,
              " attempted to split along dimension ",
              dim,
              ", but the size of the dimension ",
              self.sizes()[dim],
              " is not divisible by the split_size ",
              sections,
              "!");
  return ops::tensor_split(self, sections, dim);
}

}  // namespace

Views hsplit(const Tensor& self, int64_t sections) {
  return split_evenly(self, "hsplit", split_dim(self, "hsplit", 1), sections);
}
Views hsplit(const Tensor& self, ArrayRef<int64_t> indices) {
  return ops::tensor_split(self, indices, split_dim(self, "hsplit", 1));
}
Views vsplit(const Tensor& self, int64_t sections) {
  return split_evenly(self, "vsplit", split_dim(self, "vsplit", 2), sections);
}
Views vsplit(const Tensor& self, ArrayRef<int64_t> indices) {
  return ops::tensor_split(self, indices, split_dim(self, "vsplit", 2));
}
Views dsplit(const Tensor& self, int64_t sections) {
  return split_evenly(self, "dsplit", split_dim(self, "dsplit", 3), sections);
}
Views dsplit(const Tensor& self, ArrayRef<int64_t> indices) {
  return ops::tensor_split(self, indices, split_dim(self, "dsplit", 3));
}

}  // namespace taeda::native
