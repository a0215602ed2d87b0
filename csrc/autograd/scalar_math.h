// Arithmetic of numbers inside composed derivatives: what an expression says
// about scalars alone, so that no tensor is made for it.
#pragma once

#include <taeda/c10/core/scalar.h>

#include <cmath>

namespace taeda::autograd::scalar_math {

// Applies f to both as integers, doubles or complex numbers.
template <class F>
Scalar binary(const Scalar& a, const Scalar& b, F f) {
  if (a.is_complex() || b.is_complex()) {
    return Scalar(f(a.to_complex(), b.to_complex()));
  }
  if (a.is_floating() || b.is_floating()) {
    return Scalar(f(a.to_double(), b.to_double()));
  }
  return Scalar(f(a.to_int(), b.to_int()));
}

inline Scalar add(const Scalar& a, const Scalar& b) {
  return binary(a, b, [](auto x, auto y) { return x + y; });
}
inline Scalar sub(const Scalar& a, const Scalar& b) {
  return binary(a, b, [](auto x, auto y) { return x - y; });
}
inline Scalar mul(const Scalar& a, const Scalar& b) {
  return binary(a, b, [](auto x, auto y) { return x * y; });
}
inline Scalar div(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) {
    return Scalar(a.to_complex() / b.to_complex());
  }
  return Scalar(a.to_double() / b.to_double());
}
inline Scalar neg(const Scalar& a) { return -a; }
inline Scalar conj(const Scalar& a) { return a.conj(); }
inline bool is_true(const Scalar& a) { return a.to_bool(); }

}  // namespace taeda::autograd::scalar_math
