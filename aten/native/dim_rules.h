// Shape rules of operators that work along one dim; see Note [Shape rules].
#pragma once

#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/spec.h>

namespace taeda::native {

// NotImplementedError for dtypes without an order (complex numbers) and for
// those that only store (8-bit floats).
inline void refuse_unordered(std::string_view op, ScalarType t) {
  if (is_complex(t) || is_float8(t)) not_implemented_for(op, t);
}

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
