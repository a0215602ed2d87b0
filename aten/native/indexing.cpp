// Advanced indexing: masks become positions, and the shapes of what they name.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/c10/core/strides.h>
#include <taeda/gen/native/_unsafe_index.h>
#include <taeda/gen/native/index.h>
#include <taeda/gen/native/index_put.h>
#include <taeda/gen/ops/_unsafe_index.h>
#include <taeda/gen/ops/masked_select.h>
#include <taeda/gen/ops/nonzero.h>
#include <taeda/gen/ops/unbind.h>

namespace taeda::native {

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

void warn_of_bytes(ArrayRef<OptionalTensor> indices) {
  for (const OptionalTensor& t : indices) {
    if (!t || !t->defined() || t->dtype() != kByte) continue;
    warn(
        "indexing with dtype torch.uint8 is now deprecated, please use a dtype "
        "torch.bool instead.");
  }
}

bool names_mask(const OptionalTensor& t) {
  return t && t->defined() && is_mask(*t);
}

SmallVector<OptionalTensor, 6> with_positions(
    const Tensor& self, ArrayRef<OptionalTensor> indices) {
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
  return positions;
}

Tensor index(const Tensor& self, ArrayRef<OptionalTensor> indices) {
  TAEDA_CHECK_AS(
      Index, !indices.empty(), "index: at least one index must be provided");
  warn_of_bytes(indices);
  const Tensor* mask = only_mask(indices);
  if (mask != nullptr && mask->sizes() == self.sizes()) {
    return ops::masked_select(self, *mask);
  }
  if (std::none_of(indices.begin(), indices.end(), names_mask)) {
    return ops::_unsafe_index(self, indices);
  }
  return ops::_unsafe_index(self, with_positions(self, indices));
}

namespace {

// Dims sorted so that each lies inside of the next, by PyTorch's rule for one
// operand: dims with stride 0 (here those of the indices) have no say.
template <class I>
SmallVector<size_t, 8> innermost_first(const Dims<I>& sizes,
                                       const Dims<I>& strides) {
  auto outside = [&](size_t a, size_t b) {
    const I &x = strides[a], &y = strides[b];
    if (x == 0 || y == 0) return false;
    return x == y ? sizes[a] > sizes[b] : x > y;
  };
  SmallVector<size_t, 8> order;
  for (size_t d = sizes.size(); d-- > 0;) order.push_back(d);
  for (size_t i = 1; i < order.size(); ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      if (outside(order[j], order[at])) {
        std::swap(order[j], order[at]);
        at = j;
      } else if (outside(order[at], order[j])) {
        break;
      }
    }
  }
  return order;
}

// Strides of a dense result that keeps the order of self's dims in memory; none
// (row-major) where other dims would come between those of the indices.
template <class I>
Dims<I> index_strides(const Places<I>& places, const Dims<I>& sizes) {
  Dims<I> given = places.strides[0];
  for (size_t d = 0; d < places.index.size(); ++d) given.push_back(I(0));
  for (const I& s : places.strides[1]) given.push_back(s);
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == 1) given[d] = I(0);
  }
  size_t begin = places.sizes[0].size(), end = begin + places.index.size();
  Dims<I> out(sizes.size());
  I block = 1;
  size_t awaited = end;  // the index dim that lies around those that were met
  for (size_t d : innermost_first<I>(sizes, given)) {
    bool is_index = d >= begin && d < end;
    bool between = awaited > begin && awaited < end;
    if (is_index ? d + 1 != awaited : between) return {};
    if (is_index) awaited = d;
    out[d] = block;
    block *= sym_max(sizes[d], I(1));
  }
  return out;
}

}  // namespace

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
  Places<I> places = places_of<I>(self, indices);
  Dims<I> shape = places.shape();
  Dims<I> plain = strides::contiguous<I>(self.sizes());
  bool row_major = ArrayRef<I>(plain) == self.strides();
  plan.set(0,
           shape,
           row_major ? Dims<I>() : index_strides(places, shape),
           self.dtype());
}
TAEDA_SHAPE(unsafe_index_shape);

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

}  // namespace taeda::native
