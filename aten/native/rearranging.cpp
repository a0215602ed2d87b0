// The elements of a tensor in other places: shapes and compositions.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/rearranging.h>
#include <taeda/gen/native/flip.h>
#include <taeda/gen/native/fliplr.h>
#include <taeda/gen/native/flipud.h>
#include <taeda/gen/native/repeat.h>
#include <taeda/gen/native/roll.h>
#include <taeda/gen/native/rot90.h>
#include <taeda/gen/native/tile.h>
#include <taeda/gen/native/tril.h>
#include <taeda/gen/native/triu.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/flip.h>
#include <taeda/gen/ops/repeat.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::native {

// Turning --------------------------------------------------------------------

uint64_t flipped_dims(IntArrayRef dims, int64_t rank) {
  uint64_t mask = 0;
  for (int64_t d : dims) {
    int64_t wrapped = wrap_dim(d, rank);
    TAEDA_CHECK((mask >> wrapped & 1) == 0,
                "dim ",
                wrapped,
                " appears multiple times in the list of dims");
    mask |= uint64_t{1} << wrapped;
  }
  return mask;
}

template <class I>
void flip_shape(const Spec<I>& self, ArrayRef<int64_t> dims, Plan<I>& plan) {
  flipped_dims(dims, self.dim());
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(flip_shape);

Tensor fliplr(const Tensor& self) {
  TAEDA_CHECK(self.dim() >= 2, "fliplr: Input must be >= 2-d., got ", self);
  return ops::flip(self, {1});
}
Tensor flipud(const Tensor& self) {
  TAEDA_CHECK(self.dim() >= 1, "flipud: Input must be >= 1-d., got ", self);
  return ops::flip(self, {0});
}

Tensor rot90(const Tensor& self, int64_t k, ArrayRef<int64_t> dims) {
  TAEDA_CHECK(dims.size() == 2,
              "expected total rotation dims == 2, but got dims = ",
              dims.size());
  TAEDA_CHECK(self.dim() >= 2,
              "expected total dims >= 2, but got total dims = ",
              self.dim());
  TAEDA_CHECK(dims[0] != dims[1] && std::abs(dims[0] - dims[1]) != self.dim(),
              "expected rotation dims to be different, but got dim0 = ",
              dims[0],
              " and dim1 = ",
              dims[1]);
  int64_t a = wrap_dim(dims[0], self.dim()), b = wrap_dim(dims[1], self.dim());
  switch (((k % 4) + 4) % 4) {
    case 1:
      return ops::transpose(ops::flip(self, {b}), a, b);
    case 2:
      return ops::flip(self, {a, b});
    case 3:
      return ops::transpose(ops::flip(self, {a}), a, b);
    default:
      return ops::clone(self, MemoryFormat::Contiguous);
  }
}

template <class I>
void roll_shape(const Spec<I>& self,
                ArrayRef<I> shifts,
                ArrayRef<int64_t> dims,
                Plan<I>& plan) {
  TAEDA_CHECK(!shifts.empty(), "roll: `shifts` required");
  TAEDA_CHECK(
      shifts.size() == dims.size() || (dims.empty() && shifts.size() == 1),
      "shifts and dimensions must align. shifts: ",
      shifts.size(),
      ", dims:",
      dims.size());
  for (int64_t d : dims) {
    TAEDA_CHECK_AS(Index,
                   self.dim() > 0,
                   "Dimension specified as ",
                   d,
                   " but tensor has no dimensions");
    wrap_dim(d, self.dim());
  }
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(roll_shape);

// Repeating ------------------------------------------------------------------

template <class I>
void repeat_shape(const Spec<I>& self, ArrayRef<I> repeats, Plan<I>& plan) {
  size_t rank = repeats.size(), own = self.sizes().size();
  TAEDA_CHECK(rank >= own,
              "Number of dimensions of repeat dims can not be smaller than "
              "number of dimensions of tensor");
  Dims<I> sizes(repeats);
  for (size_t d = 0; d < rank; ++d) {
    if (d + own >= rank) sizes[d] *= self.sizes()[d + own - rank];
    TAEDA_CHECK(repeats[d] >= 0,
                "Trying to create tensor with negative dimension ",
                sizes[d],
                ": repeats ",
                repeats);
  }
  plan.set(0, sizes, self.dtype());
}
TAEDA_SHAPE(repeat_shape);

Tensor tile(const Tensor& self, ArrayRef<int64_t> dims) {
  DimVector repeats(dims);
  while (static_cast<int64_t>(repeats.size()) < self.dim()) {
    repeats.insert(repeats.begin(), 1);
  }
  return ops::repeat(self, repeats);
}

// Triangles ------------------------------------------------------------------

namespace {

template <class I>
void triangle_shape(const Spec<I>& self, const char* op, Plan<I>& plan) {
  TAEDA_CHECK(
      self.dim() >= 2, op, ": input tensor must have at least 2 dimensions");
  plan.set(0, self.sizes(), self.dtype());
}

}  // namespace

template <class I>
void tril_shape(const Spec<I>& self, I, Plan<I>& plan) {
  triangle_shape(self, "tril", plan);
}
TAEDA_SHAPE(tril_shape);
template <class I>
void triu_shape(const Spec<I>& self, I, Plan<I>& plan) {
  triangle_shape(self, "triu", plan);
}
TAEDA_SHAPE(triu_shape);

}  // namespace taeda::native
