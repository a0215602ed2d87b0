// A tensor seen as [outer, n, inner] around the dims that an operator works on,
// row-major and in the type that is computed in.
#pragma once

#include <taeda/aten/iter/copy.h>

namespace taeda::native {

struct DimFrame {
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
TAEDA_API DimFrame frame_of(const Tensor& self, int64_t dim, ScalarType type);
// Around several dims (all if none are given). Dims that are not neighbours
// are moved to the end first.
TAEDA_API DimFrame frame_of(const Tensor& self,
                            std::optional<IntArrayRef> dims,
                            ScalarType type);

// NotImplementedError for dtypes without an order (complex numbers) and for
// those that only store (8-bit floats).
TAEDA_API void refuse_unordered(std::string_view op, ScalarType t);

// The sizes with `dim` removed, or 1 where it is kept.
TAEDA_API DimVector without_dim(const Tensor& self, int64_t dim, bool keepdim);

// IndexError where a dim without elements is to be searched.
TAEDA_API void check_not_empty(std::string_view op,
                               const Tensor& self,
                               int64_t dim);

}  // namespace taeda::native
