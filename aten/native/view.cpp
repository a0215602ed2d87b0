// Views: the same storage under another geometry.
#include <taeda/aten/native/view.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/reshape_rules.h>
#include <taeda/gen/native/_reshape_alias.h>
#include <taeda/gen/native/_unsafe_view.h>
#include <taeda/gen/native/alias.h>
#include <taeda/gen/native/as_strided.h>
#include <taeda/gen/native/detach.h>
#include <taeda/gen/native/expand.h>
#include <taeda/gen/native/flatten.h>
#include <taeda/gen/native/reshape.h>
#include <taeda/gen/native/sum_to_size.h>
#include <taeda/gen/native/unflatten.h>
#include <taeda/gen/native/unfold.h>
#include <taeda/gen/native/view.h>
#include <taeda/gen/ops/_unsafe_view.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/view.h>

namespace taeda::native {

namespace {

template <class I>
[[noreturn]] void not_viewable(ArrayRef<I> sizes,
                               ArrayRef<I> strides,
                               ArrayRef<I> shape) {
  throw_error(
      ErrorKind::Runtime,
      str_cat("view size is not compatible with input tensor's size and stride "
              "(at least one dimension spans across two contiguous subspaces). "
              "Use .reshape(...) instead. (view: self has shape ",
              sizes,
              " and strides ",
              strides,
              ", asked for ",
              shape,
              ")"));
}

}  // namespace

// The shape may have one -1, and must be one that the strides can show without
// a copy.
template <class I>
ViewGeometry<I> view_rule(ViewGeometry<I> self, ArrayRef<I> size) {
  Dims<I> shape = infer_size<I>(size, self.numel());
  auto strides = view_strides<I>(self.sizes, self.strides, shape);
  if (!strides) not_viewable<I>(self.sizes, self.strides, shape);
  self.sizes = std::move(shape);
  self.strides = *std::move(strides);
  return self;
}
TAEDA_SHAPE(view_rule);
// The rule itself, without lists between: of all views the one most called.
Tensor view(const Tensor& self, ArrayRef<int64_t> size) {
  DimVector shape = infer_size<int64_t>(size, self.numel());
  auto strides = view_strides<int64_t>(self.sizes(), self.strides(), shape);
  if (!strides) not_viewable<int64_t>(self.sizes(), self.strides(), shape);
  return make_view(self, shape, *strides, self.storage_offset());
}

template <class I>
ViewGeometry<I> as_strided_rule(ViewGeometry<I> self,
                                ArrayRef<I> size,
                                ArrayRef<I> stride,
                                std::optional<I> storage_offset) {
  TAEDA_CHECK(size.size() == stride.size(),
              "as_strided: mismatch in length of strides and shape, got ",
              stride,
              " and ",
              size);
  self.sizes = size;
  self.strides = stride;
  if (storage_offset) self.offset = *storage_offset;
  for (const I& s : stride) {
    TAEDA_CHECK(s >= 0,
                "as_strided: Negative strides are not supported at the moment, "
                "got strides: ",
                stride);
  }
  return self;
}
TAEDA_SHAPE(as_strided_rule);
template <class I>
ViewGeometry<I> _reshape_alias_rule(ViewGeometry<I> self,
                                    ArrayRef<I> size,
                                    ArrayRef<I> stride) {
  return as_strided_rule<I>(std::move(self), size, stride, std::nullopt);
}
TAEDA_SHAPE(_reshape_alias_rule);

namespace {

// as_strided_rule's geometry, with what only memory tells.
Geometry strided_geometry(const Tensor& self,
                          IntArrayRef size,
                          IntArrayRef stride,
                          std::optional<int64_t> storage_offset) {
  Geometry g =
      as_strided_rule<int64_t>(Geometry(self), size, stride, storage_offset);
  int64_t offset = g.offset;
  TAEDA_CHECK(offset >= 0,
              "as_strided: Negative storage_offset not supported, got ",
              offset);
  checked_numel("as_strided", size);
  size_t needed = required_bytes(size, stride, offset, self.itemsize());
  TAEDA_CHECK(self.is_meta() || needed <= self.storage()->nbytes(),
              "setStorage: sizes ",
              size,
              ", strides ",
              stride,
              ", storage offset ",
              offset,
              ", and itemsize ",
              self.itemsize(),
              " requiring a storage size of ",
              needed,
              " are out of bounds for storage of size ",
              self.storage()->nbytes());
  return g;
}

}  // namespace

Tensor _reshape_alias(const Tensor& self,
                      ArrayRef<int64_t> size,
                      ArrayRef<int64_t> stride) {
  return strided_geometry(self, size, stride, std::nullopt).view_of(self);
}

Tensor _unsafe_view(const Tensor& self, ArrayRef<int64_t> size) {
  Tensor out(self.impl()->shallow_copy(/*share_version=*/false));
  view_rule(Geometry(self), size).apply_to(out);
  return out;
}

Tensor reshape(const Tensor& self, ArrayRef<int64_t> size) {
  DimVector shape = infer_size<int64_t>(size, self.numel());
  if (view_strides<int64_t>(self.sizes(), self.strides(), shape)) {
    return ops::view(self, shape);
  }
  return ops::_unsafe_view(ops::clone(self, MemoryFormat::Contiguous), shape);
}

Tensor flatten(const Tensor& self, int64_t start_dim, int64_t end_dim) {
  int64_t start = wrap_dim(start_dim, self.dim());
  int64_t end = wrap_dim(end_dim, self.dim());
  TAEDA_CHECK(
      start <= end,
      "flatten() has invalid args: start_dim cannot come after end_dim, "
      "got start_dim ",
      start_dim,
      ", end_dim ",
      end_dim);
  if (self.dim() == 0) return ops::reshape(self, {1});
  if (start == end) return self;
  int64_t joined = 1;
  DimVector shape;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d >= start && d <= end) joined *= self.sizes()[d];
    if (d < start || d > end) shape.push_back(self.sizes()[d]);
    if (d == end) shape.push_back(joined);
  }
  return ops::reshape(self, shape);
}

Tensor unflatten(const Tensor& self, int64_t dim, ArrayRef<int64_t> sizes) {
  TAEDA_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  dim = wrap_dim(dim, self.dim());
  int64_t known = 1, inferred = -1;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == -1) {
      TAEDA_CHECK(inferred < 0, "only one dimension can be inferred");
      inferred = static_cast<int64_t>(i);
    } else {
      known *= sizes[i];
    }
  }
  int64_t whole = self.dim() == 0 ? 1 : self.sizes()[dim];
  DimVector inner(sizes);
  bool fits = inferred < 0 ? known == whole : known != 0 && whole % known == 0;
  TAEDA_CHECK(fits,
              "unflatten: Provided sizes ",
              sizes,
              " don't multiply up to the size of dim ",
              dim,
              " (",
              whole,
              ") in the input tensor");
  if (inferred >= 0) inner[static_cast<size_t>(inferred)] = whole / known;
  DimVector shape;
  for (int64_t d = 0; d < std::max<int64_t>(self.dim(), 1); ++d) {
    if (d == dim) {
      for (int64_t s : inner) shape.push_back(s);
    } else {
      shape.push_back(self.sizes()[d]);
    }
  }
  return ops::view(self, shape);
}

namespace {

// Sizes and strides of the wider view.
template <class I>
std::pair<Dims<I>, Dims<I>> expanded(ArrayRef<I> own_sizes,
                                     ArrayRef<I> own_strides,
                                     ArrayRef<I> size) {
  int64_t rank = static_cast<int64_t>(size.size());
  int64_t own_rank = static_cast<int64_t>(own_sizes.size());
  int64_t extra = rank - own_rank;
  TAEDA_CHECK(extra >= 0,
              "expand(",
              own_sizes,
              ", size=",
              size,
              "): the number of sizes provided (",
              rank,
              ") must be greater or equal to the number of dimensions in the "
              "tensor (",
              own_rank,
              ")");
  std::pair<Dims<I>, Dims<I>> out{size,
                                  Dims<I>(static_cast<size_t>(rank), I(0))};
  auto& [sizes, strides] = out;
  for (int64_t d = rank; d-- > 0;) {
    if (d < extra) {
      TAEDA_CHECK(size[d] >= 0,
                  "The expanded size of the tensor (",
                  size[d],
                  ") isn't allowed in a leading, non-existing dimension ",
                  d);
      // What PyTorch gives dims that it puts in front.
      if (size[d] != 1) continue;
      strides[d] = d + 1 < rank ? sizes[d + 1] * strides[d + 1] : I(1);
      continue;
    }
    const I& own = own_sizes[d - extra];
    strides[d] = own_strides[d - extra];
    if (size[d] == -1) sizes[d] = own;
    if (sizes[d] == own) continue;
    TAEDA_CHECK(own == 1,
                "The expanded size of the tensor (",
                size[d],
                ") must match the existing size (",
                own,
                ") at non-singleton dimension ",
                d,
                ".  Target sizes: ",
                size,
                ".  Tensor sizes: ",
                own_sizes);
    TAEDA_CHECK(
        sizes[d] >= 0, "expand: invalid size ", size[d], " at dimension ", d);
    strides[d] = 0;
  }
  return out;
}

}  // namespace

template <class I>
ViewGeometry<I> expand_rule(ViewGeometry<I> self, ArrayRef<I> size, bool) {
  auto [sizes, strides] = expanded<I>(self.sizes, self.strides, size);
  self.sizes = std::move(sizes);
  self.strides = std::move(strides);
  return self;
}
TAEDA_SHAPE(expand_rule);
Tensor expand(const Tensor& self, ArrayRef<int64_t> size, bool) {
  auto [sizes, strides] = expanded<int64_t>(self.sizes(), self.strides(), size);
  return make_view(self, sizes, strides, self.storage_offset());
}

Tensor sum_to_size(const Tensor& self, ArrayRef<int64_t> size) {
  int64_t extra = self.dim() - static_cast<int64_t>(size.size());
  DimVector dims;
  bool fits = extra >= 0;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    int64_t own = self.sizes()[d], wanted = d < extra ? 1 : size[d - extra];
    fits = wanted == own || wanted == 1;
    if (d < extra || wanted != own) dims.push_back(d);
  }
  TAEDA_CHECK(fits,
              "size {",
              size,
              "} is not expandable to size {",
              self.sizes(),
              "}.");
  // As in PyTorch the sum of everything is a sum, even of a single element.
  if (size.empty()) return ops::sum(self);
  if (dims.empty()) return self;
  return ops::view(ops::sum(self, IntArrayRef(dims), true), size);
}

template <class I>
ViewGeometry<I> alias_rule(ViewGeometry<I> self) {
  return self;
}
TAEDA_SHAPE(alias_rule);
Tensor alias(const Tensor& self) { return Geometry(self).view_of(self); }

Tensor detach(const Tensor& self) {
  return Tensor(self.impl()->shallow_copy(/*share_version=*/true));
}

Tensor as_strided(const Tensor& self,
                  ArrayRef<int64_t> size,
                  ArrayRef<int64_t> stride,
                  std::optional<int64_t> storage_offset) {
  return strided_geometry(self, size, stride, storage_offset).view_of(self);
}

void as_strided_(const Tensor& self,
                 ArrayRef<int64_t> size,
                 ArrayRef<int64_t> stride,
                 std::optional<int64_t> storage_offset) {
  strided_geometry(self, size, stride, storage_offset).apply_to(self);
}

template <class I>
ViewGeometry<I> unfold_rule(ViewGeometry<I> self,
                            int64_t dimension,
                            int64_t size,
                            int64_t step) {
  int64_t dim = wrap_dim(dimension, self.dim());
  TAEDA_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  I whole = self.dim() == 0 ? I(1) : self.sizes[dim];
  TAEDA_CHECK(whole >= size,
              "maximum size for tensor at dimension ",
              dim,
              " is ",
              whole,
              " but size is ",
              size);
  TAEDA_CHECK(step > 0, "step is ", step, " but must be > 0");
  bool scalar = self.dim() == 0;
  self.strides.push_back(scalar ? I(1) : self.strides[dim]);
  self.sizes.push_back(I(size));
  if (!scalar) {
    self.sizes[dim] = (whole - I(size)) / I(step) + I(1);
    self.strides[dim] *= I(step);
  }
  return self;
}
TAEDA_SHAPE(unfold_rule);
Tensor unfold(const Tensor& self,
              int64_t dimension,
              int64_t size,
              int64_t step) {
  return unfold_rule(Geometry(self), dimension, size, step).view_of(self);
}

}  // namespace taeda::native
