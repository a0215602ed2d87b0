// Elements chosen by masks or by positions in the row of all elements.
#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/gen/native/masked_scatter.h>
#include <taeda/gen/native/masked_scatter_backward.h>
#include <taeda/gen/native/masked_select.h>
#include <taeda/gen/native/nonzero.h>
#include <taeda/gen/native/nonzero_static.h>
#include <taeda/gen/native/put.h>
#include <taeda/gen/native/take.h>

#include <algorithm>
#include <vector>

namespace taeda::native {

namespace {

// See Note [Bytes of bool tensors].
const uint8_t* bytes_of(const Tensor& mask) {
  return static_cast<const uint8_t*>(mask.const_raw_data());
}

}  // namespace

// Positions of true elements -------------------------------------------------

Tensor positions_of(const Tensor& mask) {
  Tensor plain = contiguous_as(mask, kBool);
  const uint8_t* bits = bytes_of(plain);
  int64_t n = plain.numel(), rank = mask.dim();
  int64_t count = n - std::count(bits, bits + n, 0);
  Tensor out = make_tensor_strided("nonzero", {count, rank}, {1, count}, kLong);
  if (rank == 0 || count == 0) return out;
  int64_t* to = out.mutable_data<int64_t>();
  int64_t width = mask.sizes().back();
  DimVector at(static_cast<size_t>(rank), 0);
  for (int64_t row = 0; row < n; row += width) {
    int64_t* start = to;
    int64_t* last = to + (rank - 1) * count;
    for (int64_t i = 0; i < width; ++i) {
      if (bits[row + i]) *last++ = i;
    }
    to = last - (rank - 1) * count;
    for (int64_t d = 0; d + 1 < rank; ++d) {
      std::fill(start + d * count, to + d * count, at[d]);
    }
    for (int64_t d = rank - 1; d-- > 0;) {
      if (++at[d] < mask.sizes()[d]) break;
      at[d] = 0;
    }
  }
  return out;
}

Tensor nonzero(const Tensor& self) { return positions_of(self); }

void nonzero_out(const Tensor& self, const Tensor& out) {
  TAEDA_CHECK(out.dtype() == kLong,
              "nonzero: Expected out tensor to have scalar type Long but got "
              "scalar type ",
              out.dtype());
  Tensor found = positions_of(self);
  Plan<int64_t> plan("nonzero");
  plan.set(0, found.sizes(), found.strides(), kLong);
  OutputTarget target = OutputTarget::for_out(plan, 0, out, self);
  copy_into(target.tensor(), found);
  target.finish();
}

void nonzero_static_cpu(const Tensor& self,
                        int64_t size,
                        int64_t fill_value,
                        const Tensor& out) {
  Tensor found = positions_of(self);
  int64_t rank = self.dim(), rows = std::min(size, found.sizes()[0]);
  copy_into(make_view(out, {rows, rank}, out.strides(), out.storage_offset()),
            make_view(found, {rows, rank}, found.strides(), 0));
  int64_t* rest = out.mutable_data<int64_t>() + rows * rank;
  std::fill_n(rest, (size - rows) * rank, fill_value);
}

// masked_select, masked_scatter
// ---------------------------------------------------

namespace {

Tensor spread(const Tensor& t, IntArrayRef shape, ScalarType dtype) {
  if (t.sizes() == shape) return contiguous_as(t, dtype);
  Tensor out = make_tensor("mask", shape, dtype);
  copy_into(out, t);
  return out;
}

}  // namespace

Tensor masked_select(const Tensor& self, const Tensor& mask) {
  TAEDA_CHECK(mask.dtype() == kBool,
              "masked_select: expected BoolTensor for mask, but got ",
              mask.dtype());
  DimVector shape =
      broadcast_shapes<int64_t>("masked_select", self.sizes(), mask.sizes());
  Tensor from = spread(self, shape, self.dtype());
  Tensor bits = spread(mask, shape, kBool);
  const uint8_t* bit = bytes_of(bits);
  int64_t n = bits.numel();
  int64_t count = n - std::count(bit, bit + n, 0);
  Tensor out = make_tensor("masked_select", {count}, self.dtype());
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = static_cast<const T*>(from.const_raw_data());
    T* to = static_cast<T*>(out.mutable_raw_data());
    // Without a branch: each element is written, the chosen ones stay.
    for (T* end = to + count; to != end; ++in, ++bit) {
      *to = *in;
      to += *bit != 0;
    }
  });
  return out;
}

void masked_scatter_cpu(const Tensor&,
                        const Tensor& mask,
                        const Tensor& source,
                        const Tensor& out) {
  Tensor bits = spread(mask, out.sizes(), kBool), from = contiguous(source);
  const uint8_t* bit = bytes_of(bits);
  int64_t n = bits.numel();
  TAEDA_CHECK(
      n - std::count(bit, bit + n, 0) <= source.numel(),
      "masked_scatter_: expected self and source to have enough "
      "elements: Number of elements of source < number of ones in mask");
  WorkingCopy work(out);
  visit_size(out.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = static_cast<const T*>(from.const_raw_data());
    T* to = static_cast<T*>(work.tensor().mutable_raw_data());
    for (int64_t i = 0; i < n; ++i) {
      if (bit[i]) to[i] = *in++;
    }
  });
  work.finish();
}

void masked_scatter_backward_cpu(const Tensor& grad,
                                 const Tensor& mask,
                                 IntArrayRef,
                                 const Tensor& out) {
  fill_with(out, int64_t{0});
  Tensor chosen = masked_select(grad, mask);
  int64_t count = chosen.numel();
  TAEDA_CHECK(count <= out.numel(),
              "masked_scatter_backward: the mask has ",
              count,
              " ones, but source has sizes ",
              out.sizes());
  copy_into(make_view(out, {count}, {1}, out.storage_offset()), chosen);
}

// take, put
// --------------------------------------------------------------------------

namespace {

// Every position wrapped and checked against the number of elements.
std::vector<int64_t> wrapped(const Tensor& index, int64_t numel) {
  Tensor plain = contiguous(index);
  std::vector<int64_t> out(plain.const_data<int64_t>(),
                           plain.const_data<int64_t>() + plain.numel());
  for (int64_t& p : out) {
    TAEDA_CHECK_AS(Index,
                   p >= -numel && p < numel,
                   "out of range: tried to access index ",
                   p,
                   " on a tensor of ",
                   numel,
                   " elements.");
    if (p < 0) p += numel;
  }
  return out;
}

}  // namespace

void take_cpu(const Tensor& self, const Tensor& index, const Tensor& out) {
  auto at = wrapped(index, self.numel());
  Tensor from = contiguous(self);
  visit_size(self.itemsize(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = static_cast<const T*>(from.const_raw_data());
    T* to = static_cast<T*>(out.mutable_raw_data());
    for (size_t i = 0; i < at.size(); ++i) to[i] = in[at[i]];
  });
}

void put_cpu(const Tensor& self,
             const Tensor& index,
             const Tensor& source,
             bool accumulate,
             const Tensor& out) {
  auto at = wrapped(index, self.numel());
  WorkingCopy work(out);
  Tensor from = contiguous(source);
  visit_type(self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* in = from.const_data<T>();
    T* to = work.tensor().mutable_data<T>();
    for (size_t i = 0; i < at.size(); ++i) {
      to[at[i]] = accumulate ? sum_of<T>(to[at[i]], in[i]) : in[i];
    }
  });
  work.finish();
}

}  // namespace taeda::native
