// Arithmetic of tensors and numbers in C++ notation.
#pragma once

#include <taeda/gen/tensor.h>

namespace taeda {

// `symbol` on tensors and numbers is `function`.
#define TAEDA_BINARY(symbol, function)                              \
  inline Tensor operator symbol(const Tensor& a, const Tensor& b) { \
    return ops::function(a, b);                                     \
  }                                                                 \
  inline Tensor operator symbol(const Tensor& a, const Scalar& b) { \
    return ops::function(a, b);                                     \
  }
// A number on the left, for which there is another function.
#define TAEDA_REVERSED(symbol, function)                            \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { \
    return ops::function(b, a);                                     \
  }
#define TAEDA_INPLACE(symbol, function)                                      \
  inline const Tensor& operator symbol(const Tensor & a, const Tensor & b) { \
    ops::function##_(a, b);                                                  \
    return a;                                                                \
  }                                                                          \
  inline const Tensor& operator symbol(const Tensor & a, const Scalar & b) { \
    ops::function##_(a, b);                                                  \
    return a;                                                                \
  }
#define TAEDA_OPERATOR(symbol, function)                            \
  TAEDA_BINARY(symbol, function)                                    \
  TAEDA_INPLACE(symbol## =, function)                               \
  inline Tensor operator symbol(const Scalar& a, const Tensor& b) { \
    return ops::function(wrap_number(a, b.device()), b);            \
  }
TAEDA_OPERATOR(+, add)
TAEDA_OPERATOR(-, sub)
TAEDA_OPERATOR(*, mul)
TAEDA_OPERATOR(/, div)
TAEDA_BINARY(%, remainder)
TAEDA_BINARY(==, eq)
TAEDA_BINARY(!=, ne)
TAEDA_BINARY(<, lt)
TAEDA_BINARY(<=, le)
TAEDA_BINARY(>, gt)
TAEDA_BINARY(>=, ge)
TAEDA_REVERSED(==, eq)
TAEDA_REVERSED(!=, ne)
TAEDA_REVERSED(<, gt)
TAEDA_REVERSED(<=, ge)
TAEDA_REVERSED(>, lt)
TAEDA_REVERSED(>=, le)
TAEDA_BINARY(&, bitwise_and)
TAEDA_BINARY(|, bitwise_or)
TAEDA_BINARY(^, bitwise_xor)
#undef TAEDA_BINARY
#undef TAEDA_REVERSED
#undef TAEDA_INPLACE
#undef TAEDA_OPERATOR

inline Tensor operator-(const Tensor& a) { return ops::neg(a); }
inline Tensor operator~(const Tensor& a) { return ops::bitwise_not(a); }
inline Tensor operator!(const Tensor& a) { return ops::logical_not(a); }

}  // namespace taeda
