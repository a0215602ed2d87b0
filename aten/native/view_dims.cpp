// Views that reorder, drop, add or restrict dims.
#include <taeda/aten/native/reshape_rules.h>
#include <taeda/aten/native/view.h>
#include <taeda/c10/symbolic/shape_env.h>
#include <taeda/gen/native/adjoint.h>
#include <taeda/gen/native/diagonal.h>
#include <taeda/gen/native/movedim.h>
#include <taeda/gen/native/narrow.h>
#include <taeda/gen/native/numpy_T.h>
#include <taeda/gen/native/permute.h>
#include <taeda/gen/native/select.h>
#include <taeda/gen/native/slice.h>
#include <taeda/gen/native/squeeze.h>
#include <taeda/gen/native/t.h>
#include <taeda/gen/native/transpose.h>
#include <taeda/gen/native/unsqueeze.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::native {

// Order of dims --------------------------------------------------------------

template <class I>
ViewGeometry<I> permute_rule(ViewGeometry<I> self, ArrayRef<int64_t> dims) {
  size_t rank = self.sizes.size();
  TAEDA_CHECK(dims.size() == rank,
              "permute(sparse_coo): number of dimensions in the tensor input "
              "does not match the length of the desired ordering of dimensions "
              "i.e. input.dim() = ",
              rank,
              " is not equal to len(dims) = ",
              dims.size());
  ViewGeometry<I> g = self;
  uint64_t seen = 0;
  for (size_t i = 0; i < rank; ++i) {
    int64_t d = wrap_dim(dims[i], self.dim());
    TAEDA_CHECK((seen >> d & 1) == 0,
                "permute(): duplicate dims are not allowed.");
    seen |= uint64_t{1} << d;
    g.sizes[i] = self.sizes[d];
    g.strides[i] = self.strides[d];
  }
  return g;
}
TAEDA_SHAPE(permute_rule);
Tensor permute(const Tensor& self, ArrayRef<int64_t> dims) {
  return permute_rule(Geometry(self), dims).view_of(self);
}

template <class I>
ViewGeometry<I> transpose_rule(ViewGeometry<I> self,
                               int64_t dim0,
                               int64_t dim1) {
  dim0 = wrap_dim(dim0, self.dim());
  dim1 = wrap_dim(dim1, self.dim());
  if (dim0 != dim1) {
    std::swap(self.sizes[dim0], self.sizes[dim1]);
    std::swap(self.strides[dim0], self.strides[dim1]);
  }
  return self;
}
TAEDA_SHAPE(transpose_rule);

namespace {

template <class I>
ViewGeometry<I> matrix_transposed(ViewGeometry<I> self, const char* op) {
  TAEDA_CHECK(self.dim() <= 2,
              op,
              "() expects a tensor with <= 2 dimensions, but self is ",
              self.dim(),
              "D");
  return self.dim() < 2 ? self : transpose_rule(std::move(self), 0, 1);
}

}  // namespace

template <class I>
ViewGeometry<I> t_rule(ViewGeometry<I> self) {
  return matrix_transposed(self, "t");
}
TAEDA_SHAPE(t_rule);

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  return transpose_rule(Geometry(self), dim0, dim1).view_of(self);
}
void transpose_(const Tensor& self, int64_t dim0, int64_t dim1) {
  transpose_rule(Geometry(self), dim0, dim1).apply_to(self);
}
Tensor t(const Tensor& self) {
  return matrix_transposed(Geometry(self), "t").view_of(self);
}
void t_(const Tensor& self) {
  matrix_transposed(Geometry(self), "t_").apply_to(self);
}

Tensor numpy_T(const Tensor& self) {
  DimVector dims;
  for (int64_t d = self.dim(); d-- > 0;) dims.push_back(d);
  return ops::permute(self, dims);
}

Tensor adjoint(const Tensor& self) {
  TAEDA_CHECK(self.dim() >= 2 || self.dim() == 0,
              "tensor.adjoint() is only supported on matrices or batches of "
              "matrices. Got ",
              self.dim(),
              "-D tensor.");
  if (self.dim() == 0) return ops::conj(self);
  return ops::conj(ops::transpose(self, -2, -1));
}

Tensor movedim(const Tensor& self,
               ArrayRef<int64_t> source,
               ArrayRef<int64_t> destination) {
  TAEDA_CHECK(source.size() == destination.size(),
              "movedim: Invalid source or destination dims: source (",
              source,
              " dims) should contain the same number of dims as destination (",
              destination,
              " dims)");
  DimVector from = wrap_dims(source, self.dim());
  DimVector to = wrap_dims(destination, self.dim());
  DimVector order(static_cast<size_t>(self.dim()), -1);
  uint64_t moved = 0;
  for (size_t i = 0; i < from.size(); ++i) {
    TAEDA_CHECK((moved >> from[i] & 1) == 0,
                "movedim: repeated dim in `source` (",
                source,
                ")");
    TAEDA_CHECK(self.dim() == 0 || order[to[i]] < 0,
                "movedim: repeated dim in `destination` (",
                destination,
                ")");
    moved |= uint64_t{1} << from[i];
    if (self.dim() != 0) order[to[i]] = from[i];
  }
  if (self.dim() == 0) return ops::permute(self, {});
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while ((moved >> next & 1) != 0) ++next;
    d = next++;
  }
  return ops::permute(self, order);
}
Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return ops::movedim(self, IntArrayRef({source}), IntArrayRef({destination}));
}

// Dims of size 1 -------------------------------------------------------------

namespace {

template <class I>
ViewGeometry<I> squeezed(const ViewGeometry<I>& self, uint64_t mask) {
  ViewGeometry<I> g = self;
  g.sizes.clear();
  g.strides.clear();
  for (int64_t d = 0; d < self.dim(); ++d) {
    if ((mask >> d & 1) != 0 && is_one(self.sizes[d])) continue;
    g.sizes.push_back(self.sizes[d]);
    g.strides.push_back(self.strides[d]);
  }
  return g;
}

uint64_t mask_of(int64_t rank, IntArrayRef dims) {
  uint64_t mask = 0;
  for (int64_t d : dims) {
    uint64_t bit = uint64_t{1} << wrap_dim(d, rank);
    TAEDA_CHECK((mask & bit) == 0,
                "dim ",
                wrap_dim(d, rank),
                " appears multiple times in the list of dims");
    mask |= bit;
  }
  return mask;
}

}  // namespace

template <class I>
ViewGeometry<I> squeeze_rule(ViewGeometry<I> self) {
  return squeezed(self, ~uint64_t{0});
}
TAEDA_SHAPE(squeeze_rule);
template <class I>
ViewGeometry<I> squeeze_dim_rule(ViewGeometry<I> self, int64_t dim) {
  return squeezed(self, mask_of(self.dim(), {dim}));
}
TAEDA_SHAPE(squeeze_dim_rule);
template <class I>
ViewGeometry<I> squeeze_dims_rule(ViewGeometry<I> self, ArrayRef<int64_t> dim) {
  return squeezed(self, mask_of(self.dim(), dim));
}
TAEDA_SHAPE(squeeze_dims_rule);
template <class I>
ViewGeometry<I> unsqueeze_rule(ViewGeometry<I> self, int64_t dim) {
  dim = wrap_dim(dim, self.dim() + 1);
  I stride = dim < self.dim() ? self.sizes[dim] * self.strides[dim] : I(1);
  self.sizes.insert(self.sizes.begin() + dim, I(1));
  self.strides.insert(self.strides.begin() + dim, stride);
  return self;
}
TAEDA_SHAPE(unsqueeze_rule);

Tensor squeeze(const Tensor& self) {
  return squeeze_rule(Geometry(self)).view_of(self);
}
Tensor squeeze(const Tensor& self, int64_t dim) {
  return squeeze_dim_rule(Geometry(self), dim).view_of(self);
}
Tensor squeeze(const Tensor& self, ArrayRef<int64_t> dim) {
  return squeeze_dims_rule(Geometry(self), dim).view_of(self);
}
void squeeze_(const Tensor& self) {
  squeeze_rule(Geometry(self)).apply_to(self);
}
void squeeze_(const Tensor& self, int64_t dim) {
  squeeze_dim_rule(Geometry(self), dim).apply_to(self);
}
void squeeze_(const Tensor& self, ArrayRef<int64_t> dim) {
  squeeze_dims_rule(Geometry(self), dim).apply_to(self);
}
Tensor unsqueeze(const Tensor& self, int64_t dim) {
  return unsqueeze_rule(Geometry(self), dim).view_of(self);
}
void unsqueeze_(const Tensor& self, int64_t dim) {
  unsqueeze_rule(Geometry(self), dim).apply_to(self);
}

// Parts of a dim -------------------------------------------------------------

template <class I>
ViewGeometry<I> select_rule(ViewGeometry<I> self, int64_t dim, I index) {
  TAEDA_CHECK_AS(
      Index, self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  I size = self.sizes[dim];
  TAEDA_CHECK_AS(Index,
                 index >= -size && index < size,
                 "select(): index ",
                 index,
                 " out of range for tensor of size ",
                 ArrayRef<I>(self.sizes),
                 " at dimension ",
                 dim);
  if (index < 0) index += size;
  self.offset += index * self.strides[dim];
  self.drop(dim);
  return self;
}
TAEDA_SHAPE(select_rule);
Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  return select_rule(Geometry(self), dim, index).view_of(self);
}

// What a bound of a slice means, as Python's rules make it of any number.
template <class I>
I slice_bound(I bound, const I& size) {
  if (bound < 0) bound += size;
  if (bound < 0) return 0;
  return bound > size ? size : bound;
}

template <class I>
ViewGeometry<I> slice_rule(ViewGeometry<I> self,
                           int64_t dim,
                           std::optional<I> start,
                           std::optional<I> end,
                           I step) {
  TAEDA_CHECK_AS(
      Index, self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  TAEDA_CHECK(step > 0, "slice step must be positive");
  const I size = self.sizes[dim];
  I first = start ? slice_bound(*start, size) : I(0);
  I last = end ? slice_bound(*end, size) : size;
  I span = last > first ? last - first : I(0);
  self.offset += first * self.strides[dim];
  if (step == 1) {
    self.sizes[dim] = span;
    return self;
  }
  if constexpr (std::is_same_v<I, int64_t>) {
    // A step may be too large to be added to the size.
    self.sizes[dim] = span / step + (span % step != 0);
    // Wraps only where one element is left, whose stride nobody follows.
    self.strides[dim] = static_cast<int64_t>(
        static_cast<uint64_t>(self.strides[dim]) * static_cast<uint64_t>(step));
  } else {
    self.sizes[dim] = (span + step - I(1)) / step;
    self.strides[dim] *= step;
  }
  return self;
}
TAEDA_SHAPE(slice_rule);
Tensor slice(const Tensor& self,
             int64_t dim,
             std::optional<int64_t> start,
             std::optional<int64_t> end,
             int64_t step) {
  return slice_rule(Geometry(self), dim, start, end, step).view_of(self);
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  TAEDA_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  TAEDA_CHECK(length >= 0, "narrow(): length must be non-negative.");
  int64_t size = self.size(dim);
  TAEDA_CHECK_AS(Index,
                 start >= -size && start <= size,
                 "start out of range (expected to be in range of [",
                 -size,
                 ", ",
                 size,
                 "], but got ",
                 start,
                 ")");
  if (start < 0) start += size;
  TAEDA_CHECK(start <= size - length,
              "start (",
              start,
              ") + length (",
              length,
              ") exceeds dimension size (",
              size,
              ").");
  return ops::slice(self, dim, start, start + length, 1);
}
Tensor narrow(const Tensor& self,
              int64_t dim,
              const Tensor& start,
              int64_t length) {
  TAEDA_CHECK(start.dim() == 0 && is_integral(start.dtype(), false),
              "start must be an 0-dim integral Tensor.");
  return ops::narrow(self, dim, ops::item(start).to_int(), length);
}

template <class I>
ViewGeometry<I> diagonal_rule(ViewGeometry<I> self,
                              int64_t offset,
                              int64_t dim1,
                              int64_t dim2) {
  int64_t a = wrap_dim(dim1, self.dim()), b = wrap_dim(dim2, self.dim());
  TAEDA_CHECK(
      a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  const I rows = self.sizes[a], cols = self.sizes[b];
  I count = offset >= 0 ? sym_min(rows, cols - I(offset))
                        : sym_min(rows + I(offset), cols);
  count = sym_max(count, I(0));
  if (count > 0) {
    self.offset += offset >= 0 ? I(offset) * self.strides[b]
                               : I(-offset) * self.strides[a];
  }
  I stride = self.strides[a] + self.strides[b];
  for (int64_t d : {std::max(a, b), std::min(a, b)}) self.drop(d);
  self.sizes.push_back(count);
  self.strides.push_back(stride);
  return self;
}
TAEDA_SHAPE(diagonal_rule);
Tensor diagonal(const Tensor& self,
                int64_t offset,
                int64_t dim1,
                int64_t dim2) {
  return diagonal_rule(Geometry(self), offset, dim1, dim2).view_of(self);
}

}  // namespace taeda::native
