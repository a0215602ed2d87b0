// Indexing under a mask: positions may lie outside where the mask is false.
#include <taeda/gen/native/_unsafe_masked_index.h>
#include <taeda/gen/native/_unsafe_masked_index_put_accumulate.h>
#include <taeda/gen/ops/_unsafe_index.h>
#include <taeda/gen/ops/_unsafe_index_put.h>
#include <taeda/gen/ops/clamp.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/empty_like.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/logical_not.h>
#include <taeda/gen/ops/masked_fill.h>

namespace taeda::native {

namespace {

std::vector<OptionalTensor> clamped(const Tensor& self,
                                    ArrayRef<OptionalTensor> indices) {
  std::vector<OptionalTensor> found(indices.begin(), indices.end());
  TAEDA_CHECK_AS(Index,
                 found.size() <= static_cast<size_t>(self.dim()),
                 "_unsafe_masked_index: too many indices for tensor of "
                 "dimension ",
                 self.dim(),
                 " (got ",
                 found.size(),
                 ")");
  for (size_t d = 0; d < found.size(); ++d) {
    int64_t size = self.sizes()[d];
    if (!found[d]) continue;
    found[d] = ops::clamp(*found[d], Scalar(-size), Scalar(size - 1));
  }
  return found;
}

}  // namespace

Tensor unsafe_masked_index(const Tensor& self,
                           const Tensor& mask,
                           ArrayRef<OptionalTensor> indices,
                           const Scalar& fill) {
  std::vector<OptionalTensor> places = clamped(self, indices);
  if (self.numel() == 0) {
    Tensor shape = ops::_unsafe_index(
        ops::empty_like(
            self, self.dtype(), std::nullopt, Device(DeviceType::Meta)),
        places);
    return ops::full(
        shape.sizes(), fill, self.dtype(), std::nullopt, self.device());
  }
  return ops::masked_fill(
      ops::_unsafe_index(self, places), ops::logical_not(mask), fill);
}

Tensor unsafe_masked_index_put_accumulate(const Tensor& self,
                                          const Tensor& mask,
                                          ArrayRef<OptionalTensor> indices,
                                          const Tensor& values) {
  if (self.numel() == 0) return ops::clone(self);
  Tensor kept =
      ops::masked_fill(values, ops::logical_not(mask), Scalar(int64_t{0}));
  return ops::_unsafe_index_put(
      self, clamped(self, indices), kept, /*accumulate=*/true);
}

}  // namespace taeda::native
