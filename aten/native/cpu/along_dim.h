// A tensor seen as [outer, n, inner] around the dims that an operator works on,
// row-major and in the type that is computed in.
#pragma once

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/spec.h>

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

// NotImplementedError for dtypes without an order (complex numbers) and for
// those that only store (8-bit floats).
TAEDA_API void refuse_unordered(std::string_view op, ScalarType t);

// The sizes with `dim` removed, or 1 where it is kept.
template <class I>
Dims<I> without_dim(ArrayRef<I> sizes, int64_t dim, bool keepdim) {
  Dims<I> left(sizes);
  if (left.empty()) return left;
  size_t at = static_cast<size_t>(wrap_dim(dim, left.size()));
  if (keepdim) {
    left[at] = 1;
  } else {
    left.erase(left.begin() + at);
  }
  return left;
}

// IndexError where a dim without elements is to be searched.
template <class I>
void check_not_empty(std::string_view op, const Spec<I>& self, int64_t dim) {
  if (self.dim() == 0) return;
  int64_t at = wrap_dim(dim, self.dim());
  TAEDA_CHECK_AS(Index,
                 self.sizes()[at] != 0,
                 op,
                 "(): Expected reduction dim ",
                 at,
                 " to have non-zero size.");
}

// The shape rule of operators that choose an element of each row along a dim:
// the element is output 0, its place output 1.
template <class I>
void plan_choice(std::string_view op,
                 const Spec<I>& self,
                 int64_t dim,
                 bool keepdim,
                 Plan<I>& plan) {
  refuse_unordered(op, self.dtype());
  int64_t at = wrap_dim(dim, self.dim());
  check_not_empty(op, self, at);
  Dims<I> left = without_dim(self.sizes(), at, keepdim);
  plan.set(0, left, self.dtype());
  plan.set(1, left, kLong);
}

}  // namespace taeda::native
