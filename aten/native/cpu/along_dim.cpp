#include <taeda/aten/iter/reduce.h>
#include <taeda/aten/native/cpu/along_dim.h>

namespace taeda::native {

ScalarType wide_type(ScalarType t) {
  if (t == kHalf || t == kBFloat16) return kFloat;
  if (t == kComplexHalf) return kComplexFloat;
  if (is_integral(t, /*include_bool=*/true)) return kLong;
  return t;
}

AlongDim along_dim(const Tensor& self, int64_t dim, ScalarType type) {
  AlongDim frame;
  frame.data = contiguous_as(self, type);
  int64_t at = wrap_dim(dim, self.dim());
  for (int64_t d = 0; d < self.dim(); ++d) {
    int64_t size = self.sizes()[d];
    (d < at ? frame.outer : d == at ? frame.n : frame.inner) *= size;
  }
  return frame;
}

namespace {

// Kept dims first, then the reduced ones.
Tensor reduced_last(const Tensor& self, uint64_t mask) {
  DimVector sizes, strides;
  for (int side = 0; side < 2; ++side) {
    for (int64_t d = 0; d < self.dim(); ++d) {
      if (((mask >> d) & 1) != static_cast<uint64_t>(side)) continue;
      sizes.push_back(self.sizes()[d]);
      strides.push_back(self.strides()[d]);
    }
  }
  return make_view(self, sizes, strides, self.storage_offset());
}

}  // namespace

AlongDim along_dim(const Tensor& self,
                   std::optional<IntArrayRef> dims,
                   ScalarType type) {
  uint64_t mask = dim_mask(dims, self.dim());
  AlongDim frame;
  int changes = 0;
  bool inside = false;
  for (int64_t d = 0; d < self.dim(); ++d) {
    bool reduced = ((mask >> d) & 1) != 0;
    changes += reduced != inside;
    inside = reduced;
  }
  if (changes <= 2) {
    bool seen = false;
    for (int64_t d = 0; d < self.dim(); ++d) {
      bool reduced = ((mask >> d) & 1) != 0;
      seen |= reduced;
      (reduced ? frame.n : seen ? frame.inner : frame.outer) *= self.sizes()[d];
    }
    frame.data = contiguous_as(self, type);
    return frame;
  }
  for (int64_t d = 0; d < self.dim(); ++d) {
    (((mask >> d) & 1) != 0 ? frame.n : frame.outer) *= self.sizes()[d];
  }
  Tensor plain = self.is_conj() || self.is_neg() ? contiguous(self) : self;
  frame.data = contiguous_as(reduced_last(plain, mask), type);
  return frame;
}

}  // namespace taeda::native
