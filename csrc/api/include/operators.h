// Arithmetic of tensors and numbers in C++ notation.
#pragma once

#include <taeda/gen/tensor.h>

namespace taeda {

#define TAEDA_OPERATOR(symbol, function)                            \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { \
    return ops::function(a, b);                                     \
  }                                                                 \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { \
    return ops::function(a, b);                                     \
  }                                                                 \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { \
    return ops::function(wrap_number(a, b.device()), b);            \
  }                                                                 \
  inline const Tensor& operator symbol##=(                          \
      const Tensor & a, const Tensor & b) {                         \
    ops::function##_(a, b);                                         \
    return a;                                                       \
  }                                                                 \
  inline const Tensor& operator symbol##=(                          \
      const Tensor & a, const Scalar & b) {                         \
    ops::function##_(a, b);                                         \
    return a;                                                       \
  }
TAEDA_OPERATOR(+, add)
TAEDA_OPERATOR(-, sub)
TAEDA_OPERATOR(*, mul)
TAEDA_OPERATOR(/, div)
#undef TAEDA_OPERATOR

inline Tensor operator-(const Tensor& a) { return ops::neg(a); }

}  // namespace taeda
