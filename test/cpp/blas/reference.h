// Independent references: plain loops, sums in double (or wrapping integers).
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <type_traits>
#include <vector>

#include <taeda/aten/native/blas/gemm.h>

namespace taeda::blas::testing {

template <typename T>
struct IsComplex : std::false_type {};
template <typename T>
struct IsComplex<complex<T>> : std::true_type {};

// The type in which the reference sums.
template <typename T>
using Wide = std::conditional_t<
    IsComplex<T>::value,
    complex<double>,
    std::conditional_t<std::is_integral_v<T>, uint64_t, double>>;

template <typename T>
Wide<T> widen(const T& x) {
  if constexpr (IsComplex<T>::value) {
    return {static_cast<double>(x.real()), static_cast<double>(x.imag())};
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<uint64_t>(x);
  } else if constexpr (std::is_class_v<T>) {
    return static_cast<double>(static_cast<float>(x));
  } else {
    return x;
  }
}

template <typename T>
Wide<T> conjugated(const Wide<T>& x, bool conj) {
  if constexpr (IsComplex<T>::value) {
    return conj ? complex<double>(x.real(), -x.imag()) : x;
  } else {
    return x;
  }
}

template <typename T>
T random_value(std::mt19937& rng) {
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  if constexpr (IsComplex<T>::value) {
    using R = typename T::value_type;
    const double re = unit(rng);
    return T(static_cast<R>(re), static_cast<R>(unit(rng)));
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(rng());
  } else {
    return static_cast<T>(static_cast<float>(unit(rng)));
  }
}

template <typename T>
std::vector<T> random_vector(int64_t n, std::mt19937& rng) {
  std::vector<T> out(static_cast<size_t>(n));
  for (auto& x : out) {
    x = random_value<T>(rng);
  }
  return out;
}

// The unit in the last place of 1, for error bounds.
template <typename T>
double epsilon() {
  if constexpr (IsComplex<T>::value) {
    return std::numeric_limits<typename T::value_type>::epsilon();
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return 1.0 / 128;
  } else if constexpr (std::is_same_v<T, Half>) {
    return 1.0 / 1024;
  } else if constexpr (std::is_integral_v<T>) {
    return 0;
  } else {
    return std::numeric_limits<T>::epsilon();
  }
}

// |a - b|, modulo the width of T for integers.
template <typename T>
double distance(const T& got, const Wide<T>& expected) {
  if constexpr (IsComplex<T>::value) {
    return std::hypot(got.real() - expected.real(),
                      got.imag() - expected.imag());
  } else if constexpr (std::is_integral_v<T>) {
    return got == static_cast<T>(expected) ? 0 : 1;
  } else {
    return std::fabs(widen<T>(got) - expected);
  }
}

}  // namespace taeda::blas::testing
