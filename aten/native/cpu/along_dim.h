// A tensor seen as [outer, n, inner] around the dims that an operator works on,
// row-major and in the type that is computed in.
#pragma once

#include <taeda/aten/iter/copy.h>

namespace taeda::native {

struct AlongDim {
  Tensor data;  // contiguous, of the compute type
  int64_t outer = 1, n = 1, inner = 1;

  template <class T>
  const T* in() const {
    return data.const_data<T>();
  }
  int64_t rows() const { return outer * inner; }
};

// float for 16-bit floats, int64 for small integers and bool.
TAEDA_API ScalarType wide_type(ScalarType t);

// Around one dim; a 0-d tensor is [1, 1, 1].
TAEDA_API AlongDim along_dim(const Tensor& self, int64_t dim, ScalarType type);
// Around several dims (all if none are given). Dims that are not neighbours
// are moved to the end first.
TAEDA_API AlongDim along_dim(const Tensor& self,
                             std::optional<IntArrayRef> dims,
                             ScalarType type);

}  // namespace taeda::native
