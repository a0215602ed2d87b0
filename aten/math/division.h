// fmod, remainder, floor_divide, div_trunc for floating-point numbers.
#pragma once

#include <taeda/aten/math/rounding.h>

namespace taeda::math {

// Exact. Each step takes q |y| from the dividend, q being the quotient rounded
// to an integer of 53 bits (of 29 without fma): then the difference is a
// double. The largest quotient of floats, 2^277, needs 6 steps (10).
TAEDA_FN float fmod(float x, float y) {
  const double divisor = fabs_of(y);
  const double inverse = 1.0 / divisor;
  double rest = fabs_of(x);
#if TAEDA_MATH_HAS_FMA
  TAEDA_MATH_UNROLL
  for (int step = 0; step < 6; ++step) {
    const double quotient = round(rest * inverse);
    rest = fma_of(-quotient, divisor, rest);
  }
#else
  TAEDA_MATH_UNROLL
  for (int step = 0; step < 10; ++step) {
    const double quotient = round(rest * inverse);
    rest -= from_bits(to_bits(quotient) & ~0xffffffull) * divisor;
  }
#endif
  rest = rest < 0.0 ? rest + divisor : rest;
  rest = rest >= divisor ? rest - divisor : rest;
  const bool keep =
      fabs_of(y) == kInfinity<float> && fabs_of(x) < kInfinity<float>;
  const float result = static_cast<float>(rest);
  return keep ? x : with_sign(result, x);
}

// Quotients of 53 bits and more go to the C library: no fixed number of steps
// would serve, they reach 2^2098.
TAEDA_FN double fmod(double x, double y) {
#ifdef __CUDA_ARCH__
  return ::fmod(x, y);
#else
  const double dividend = fabs_of(x);
  const double divisor = fabs_of(y);
  const double quotient = dividend / divisor;
  const bool small =
      quotient < 0x1p52 && divisor < 0x1p990 && divisor > 0x1p-900;
  if (!small) return __builtin_fmod(x, y);
  const Pair<double> product = two_product(trunc(quotient), divisor);
  double rest = (dividend - product.high) - product.low;
  rest = rest < 0.0 ? rest + divisor : rest;
  return with_sign(rest, x);
#endif
}

template <Floating T>
TAEDA_FN T div_trunc(T a, T b) {
  return trunc(a / b);
}

// With the sign of b, as Python's %.
template <Floating T>
TAEDA_FN T remainder(T a, T b) {
  const T rest = fmod(a, b);
  const bool adjust = rest != T(0) && ((rest < T(0)) != (b < T(0)));
  return adjust ? rest + b : rest;
}

// Python's //: the floor of the true quotient, from the exact remainder.
template <Floating T>
TAEDA_FN T floor_divide(T a, T b) {
  const T rest = fmod(a, b);
  const T exact = (a - rest) / b;
  const bool adjust = rest != T(0) && ((rest < T(0)) != (b < T(0)));
  const T quotient = adjust ? exact - T(1) : exact;
  const T below = floor(quotient);
  const T near = quotient - below > T(0.5) ? below + T(1) : below;
  const T zero = with_sign(T(0), a / b);
  const T result = quotient == T(0) ? zero : near;
  return b == T(0) ? a / b : result;
}

}  // namespace taeda::math
