// Arithmetic of numbers inside composed derivatives: what an expression says
// about scalars alone, so that no tensor is made for it.
#pragma once

#include <taeda/c10/core/scalar.h>

#include <cmath>
#include <complex>

namespace taeda::autograd::scalar_math {

inline complex<double> complex_log(complex<double> a) {
  std::complex<double> z = std::log(std::complex<double>(a.real(), a.imag()));
  return {z.real(), z.imag()};
}
inline complex<double> complex_pow(complex<double> a, complex<double> b) {
  std::complex<double> z = std::pow(std::complex<double>(a.real(), a.imag()),
                                    std::complex<double>(b.real(), b.imag()));
  return {z.real(), z.imag()};
}

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
inline Scalar pow(const Scalar& a, const Scalar& b) {
  if (a.is_complex() || b.is_complex()) {
    return Scalar(complex_pow(a.to_complex(), b.to_complex()));
  }
  return Scalar(std::pow(a.to_double(), b.to_double()));
}
inline Scalar reciprocal(const Scalar& a) { return div(Scalar(1.0), a); }

inline Scalar eq(const Scalar& a, const Scalar& b) { return a.equal(b); }
inline Scalar ne(const Scalar& a, const Scalar& b) { return !a.equal(b); }
inline Scalar lt(const Scalar& a, const Scalar& b) {
  return a.to_double() < b.to_double();
}
inline Scalar le(const Scalar& a, const Scalar& b) {
  return a.to_double() <= b.to_double();
}
inline Scalar gt(const Scalar& a, const Scalar& b) { return lt(b, a); }
inline Scalar ge(const Scalar& a, const Scalar& b) { return le(b, a); }
inline Scalar logical_not(const Scalar& a) { return !a.to_bool(); }
inline Scalar logical_and(const Scalar& a, const Scalar& b) {
  return a.to_bool() && b.to_bool();
}
inline Scalar logical_or(const Scalar& a, const Scalar& b) {
  return a.to_bool() || b.to_bool();
}

inline Scalar to_bool(const Scalar& a) { return a.to_bool(); }
inline Scalar to_float(const Scalar& a) { return a.to_double(); }

// Functions of real numbers.
inline Scalar exp(const Scalar& a) { return std::exp(a.to_double()); }
inline Scalar expm1(const Scalar& a) { return std::expm1(a.to_double()); }
inline Scalar log(const Scalar& a) {
  if (a.is_complex()) return Scalar(complex_log(a.to_complex()));
  return std::log(a.to_double());
}
inline Scalar log1p(const Scalar& a) { return std::log1p(a.to_double()); }
inline Scalar log2(const Scalar& a) { return std::log2(a.to_double()); }
inline Scalar sqrt(const Scalar& a) { return std::sqrt(a.to_double()); }
inline Scalar rsqrt(const Scalar& a) { return 1 / std::sqrt(a.to_double()); }
inline Scalar abs(const Scalar& a) { return std::abs(a.to_double()); }
inline Scalar sin(const Scalar& a) { return std::sin(a.to_double()); }
inline Scalar cos(const Scalar& a) { return std::cos(a.to_double()); }
inline Scalar tanh(const Scalar& a) { return std::tanh(a.to_double()); }
inline Scalar floor(const Scalar& a) { return std::floor(a.to_double()); }
inline Scalar lgamma(const Scalar& a) { return std::lgamma(a.to_double()); }
inline Scalar is_nan(const Scalar& a) { return std::isnan(a.to_double()); }
inline Scalar maximum(const Scalar& a, const Scalar& b) {
  return std::fmax(a.to_double(), b.to_double());
}
inline Scalar minimum(const Scalar& a, const Scalar& b) {
  return std::fmin(a.to_double(), b.to_double());
}

}  // namespace taeda::autograd::scalar_math
