// Views that reorder, drop, add or restrict dims.
#include <taeda/aten/native/geometry.h>
#include <taeda/aten/native/view.h>
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
#include <taeda/gen/native/unfold.h>
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

Tensor permute(const Tensor& self, ArrayRef<int64_t> dims) {
  size_t rank = static_cast<size_t>(self.dim());
  TAEDA_CHECK(dims.size() == rank,
              "permute(sparse_coo): number of dimensions in the tensor input "
              "does not match the length of the desired ordering of dimensions "
              "i.e. input.dim() = ",
              rank,
              " is not equal to len(dims) = ",
              dims.size());
  Geometry g(self);
  uint64_t seen = 0;
  for (size_t i = 0; i < rank; ++i) {
    int64_t d = wrap_dim(dims[i], self.dim());
    TAEDA_CHECK((seen >> d & 1) == 0,
                "permute(): duplicate dims are not allowed.");
    seen |= uint64_t{1} << d;
    g.sizes[i] = self.sizes()[d];
    g.strides[i] = self.strides()[d];
  }
  return g.view_of(self);
}

namespace {

Geometry transposed(const Tensor& self, int64_t dim0, int64_t dim1) {
  dim0 = wrap_dim(dim0, self.dim());
  dim1 = wrap_dim(dim1, self.dim());
  Geometry g(self);
  if (dim0 != dim1) {
    std::swap(g.sizes[dim0], g.sizes[dim1]);
    std::swap(g.strides[dim0], g.strides[dim1]);
  }
  return g;
}

Geometry matrix_transposed(const Tensor& self, const char* op) {
  TAEDA_CHECK(self.dim() <= 2,
              op,
              "() expects a tensor with <= 2 dimensions, but self is ",
              self.dim(),
              "D");
  return self.dim() < 2 ? Geometry(self) : transposed(self, 0, 1);
}

}  // namespace

Tensor transpose(const Tensor& self, int64_t dim0, int64_t dim1) {
  return transposed(self, dim0, dim1).view_of(self);
}
void transpose_(const Tensor& self, int64_t dim0, int64_t dim1) {
  transposed(self, dim0, dim1).apply_to(self);
}
Tensor t(const Tensor& self) {
  return matrix_transposed(self, "t").view_of(self);
}
void t_(const Tensor& self) { matrix_transposed(self, "t_").apply_to(self); }

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

Geometry squeezed(const Tensor& self, uint64_t mask) {
  Geometry g(self);
  g.sizes.clear();
  g.strides.clear();
  for (int64_t d = 0; d < self.dim(); ++d) {
    if ((mask >> d & 1) != 0 && self.sizes()[d] == 1) continue;
    g.sizes.push_back(self.sizes()[d]);
    g.strides.push_back(self.strides()[d]);
  }
  return g;
}

uint64_t mask_of(const Tensor& self, IntArrayRef dims) {
  uint64_t mask = 0;
  for (int64_t d : dims) {
    uint64_t bit = uint64_t{1} << wrap_dim(d, self.dim());
    TAEDA_CHECK((mask & bit) == 0,
                "dim ",
                wrap_dim(d, self.dim()),
                " appears multiple times in the list of dims");
    mask |= bit;
  }
  return mask;
}

Geometry unsqueezed(const Tensor& self, int64_t dim) {
  dim = wrap_dim(dim, self.dim() + 1);
  Geometry g(self);
  int64_t stride = dim < self.dim() ? g.sizes[dim] * g.strides[dim] : 1;
  g.sizes.insert(g.sizes.begin() + dim, 1);
  g.strides.insert(g.strides.begin() + dim, stride);
  return g;
}

}  // namespace

Tensor squeeze(const Tensor& self) {
  return squeezed(self, ~uint64_t{0}).view_of(self);
}
Tensor squeeze(const Tensor& self, int64_t dim) {
  return squeezed(self, mask_of(self, {dim})).view_of(self);
}
Tensor squeeze(const Tensor& self, ArrayRef<int64_t> dim) {
  return squeezed(self, mask_of(self, dim)).view_of(self);
}
void squeeze_(const Tensor& self) {
  squeezed(self, ~uint64_t{0}).apply_to(self);
}
void squeeze_(const Tensor& self, int64_t dim) {
  squeezed(self, mask_of(self, {dim})).apply_to(self);
}
void squeeze_(const Tensor& self, ArrayRef<int64_t> dim) {
  squeezed(self, mask_of(self, dim)).apply_to(self);
}
Tensor unsqueeze(const Tensor& self, int64_t dim) {
  return unsqueezed(self, dim).view_of(self);
}
void unsqueeze_(const Tensor& self, int64_t dim) {
  unsqueezed(self, dim).apply_to(self);
}

// Parts of a dim -------------------------------------------------------------

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  TAEDA_CHECK_AS(
      Index, self.dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  int64_t size = self.sizes()[dim];
  TAEDA_CHECK_AS(Index,
                 index >= -size && index < size,
                 "select(): index ",
                 index,
                 " out of range for tensor of size ",
                 self.sizes(),
                 " at dimension ",
                 dim);
  if (index < 0) index += size;
  Geometry g(self);
  g.offset += index * g.strides[dim];
  g.sizes.erase(g.sizes.begin() + dim);
  g.strides.erase(g.strides.begin() + dim);
  return g.view_of(self);
}

SliceRange slice_range(int64_t size,
                       std::optional<int64_t> start,
                       std::optional<int64_t> end,
                       int64_t step) {
  TAEDA_CHECK(step > 0, "slice step must be positive");
  auto clamped = [size](int64_t v) {
    if (v < 0) v += size;
    return std::clamp<int64_t>(v, 0, size);
  };
  int64_t first = clamped(start.value_or(0));
  int64_t last = std::max(first, clamped(end.value_or(size)));
  int64_t span = last - first;
  return {first, last, span / step + (span % step != 0)};
}

Tensor slice(const Tensor& self,
             int64_t dim,
             std::optional<int64_t> start,
             std::optional<int64_t> end,
             int64_t step) {
  TAEDA_CHECK_AS(
      Index, self.dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  dim = wrap_dim(dim, self.dim());
  SliceRange r = slice_range(self.sizes()[dim], start, end, step);
  Geometry g(self);
  g.offset += r.start * g.strides[dim];
  g.sizes[dim] = r.count;
  // Wraps only where one element is left, whose stride nobody follows.
  g.strides[dim] = static_cast<int64_t>(static_cast<uint64_t>(g.strides[dim]) *
                                        static_cast<uint64_t>(step));
  return g.view_of(self);
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

Tensor diagonal(const Tensor& self,
                int64_t offset,
                int64_t dim1,
                int64_t dim2) {
  int64_t a = wrap_dim(dim1, self.dim()), b = wrap_dim(dim2, self.dim());
  TAEDA_CHECK(
      a != b, "diagonal dimensions cannot be identical ", dim1, ", ", dim2);
  Geometry g(self);
  int64_t rows = g.sizes[a], cols = g.sizes[b];
  int64_t count = offset >= 0 ? std::min(rows, cols - offset)
                              : std::min(rows + offset, cols);
  count = std::max<int64_t>(count, 0);
  if (count > 0)
    g.offset += offset >= 0 ? offset * g.strides[b] : -offset * g.strides[a];
  int64_t stride = g.strides[a] + g.strides[b];
  for (int64_t d : {std::max(a, b), std::min(a, b)}) {
    g.sizes.erase(g.sizes.begin() + d);
    g.strides.erase(g.strides.begin() + d);
  }
  g.sizes.push_back(count);
  g.strides.push_back(stride);
  return g.view_of(self);
}

Tensor unfold(const Tensor& self,
              int64_t dimension,
              int64_t size,
              int64_t step) {
  int64_t dim = wrap_dim(dimension, self.dim());
  TAEDA_CHECK(size >= 0, "size is ", size, " but must be >= 0");
  int64_t whole = self.dim() == 0 ? 1 : self.sizes()[dim];
  TAEDA_CHECK(size <= whole,
              "maximum size for tensor at dimension ",
              dim,
              " is ",
              whole,
              " but size is ",
              size);
  TAEDA_CHECK(step > 0, "step is ", step, " but must be > 0");
  Geometry g(self);
  g.sizes.push_back(size);
  g.strides.push_back(self.dim() == 0 ? 1 : self.strides()[dim]);
  if (self.dim() > 0) {
    g.sizes[dim] = (whole - size) / step + 1;
    g.strides[dim] *= step;
  }
  return g.view_of(self);
}

}  // namespace taeda::native
