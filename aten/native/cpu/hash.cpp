// A hash of all elements.
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/gen/native/hash_tensor.h>
#include <taeda/gen/ops/reshape.h>

#include <vector>

namespace taeda::native {

void hash_tensor_cpu(
    const Tensor& self, IntArrayRef dim, bool, int64_t, const Tensor& out) {
  if (out.numel() == 0) return;
  // Without axes there is nothing to go along.
  Tensor x = self.dim() == 0 ? ops::reshape(self, {1}) : self;
  std::optional<IntArrayRef> dims;
  if (!dim.empty() && self.dim() > 0) dims = dim;
  ScalarType wide = is_floating(self.dtype()) ? kDouble : kLong;
  AlongDim frame = along_dim(x, dims, wide);
  const auto* bits = static_cast<const uint64_t*>(frame.data.const_raw_data());
  std::vector<uint64_t> found(static_cast<size_t>(frame.rows()));
  for (int64_t o = 0; o < frame.outer; ++o) {
    for (int64_t i = 0; i < frame.n * frame.inner; ++i) {
      found[static_cast<size_t>(o * frame.inner + i % frame.inner)] ^=
          bits[o * frame.n * frame.inner + i];
    }
  }
  DimVector row = strides::contiguous<int64_t>(out.sizes());
  copy_strided(static_cast<char*>(out.mutable_raw_data()),
               out.strides(),
               reinterpret_cast<const char*>(found.data()),
               row,
               out.sizes(),
               out.dtype());
}

}  // namespace taeda::native
