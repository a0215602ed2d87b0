// log, log2, log10, log1p.
// Method: x = 2^e m, sqrt(1/2) <= m < sqrt(2), and log(1 + f) with f = m - 1
// as f - f^2/2 + (rest), after P. T. P. Tang, "Table-driven implementation of
// the logarithm function", ACM TOMS 16 (1990), without the table; in double
// and where the result is split, with s = f / (2 + f) as in K. C. Ng's fdlibm.
#pragma once

#include <taeda/aten/math/polynomials.h>
#include <taeda/aten/math/prim.h>

namespace taeda::math {

template <typename T>
struct LogTraits;

template <>
struct LogTraits<float> {
  static constexpr float kLn2High = 0x1.62e4p-1f;
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  // High parts short enough for exact products with upper_half() numbers.
  static constexpr float kLog2EHigh = 0x1.716p0f;
  static constexpr float kLog2ELow = -0x1.7135a8p-13f;
  static constexpr float kLog10EHigh = 0x1.bccp-2f;
  static constexpr float kLog10ELow = -0x1.09d5b2p-15f;
  static constexpr float kLog10Of2High = 0x1.344p-2f;
  static constexpr float kLog10Of2Low = 0x1.3509f8p-18f;
};

template <>
struct LogTraits<double> {
  static constexpr double kLn2High = 0x1.62e42fefa4p-1;
  static constexpr double kLn2Low = -0x1.8432a1b0e2634p-43;
  static constexpr double kLog2EHigh = 0x1.7154768p0;
  static constexpr double kLog2ELow = -0x1.6a3e80f444178p-27;
  static constexpr double kLog10EHigh = 0x1.bcb7b18p-2;
  static constexpr double kLog10ELow = -0x1.6c8d78e6acaa4p-29;
  static constexpr double kLog10Of2High = 0x1.34413509f8p-2;
  static constexpr double kLog10Of2Low = -0x1.80433b83b532ap-44;
};

// x = 2^exponent (1 + f) for a positive finite x, denormals included.
template <typename T>
struct LogSplit {
  T exponent;
  T f;
};

// For normal numbers scaled by 2^shift.
template <typename T>
TAEDA_FN LogSplit<T> log_split_normal(T x, T shift = T(0)) {
  using Traits = FloatTraits<T>;
  constexpr BitsOf<T> one = 1;
  constexpr int mantissa = Traits::kMantissaBits;
  const BitsOf<T> shifted =
      to_bits(x) + (Traits::kOneBits - Traits::kSqrtHalfBits);
  const T biased =
      from_bits(to_bits(Traits::kIntegerFrom) | (shifted >> mantissa));
  const BitsOf<T> significand =
      (shifted & ((one << mantissa) - 1)) + Traits::kSqrtHalfBits;
  const T origin = Traits::kIntegerFrom + T(Traits::kBias);
  return {(biased - origin) - shift, from_bits(significand) - T(1)};
}

template <typename T>
TAEDA_FN LogSplit<T> log_split(T x) {
  using Traits = FloatTraits<T>;
  const bool denormal = x < Traits::kSmallestNormal;
  return log_split_normal(denormal ? x * Traits::kIntegerFrom : x,
                          denormal ? T(Traits::kMantissaBits) : T(0));
}

// What every logarithm gives at and beyond the ends of (0, inf).
template <typename T>
TAEDA_FN T log_special(T x, T result) {
  const T low = x == T(0) ? -kInfinity<T> : kNan<T>;
  return x > T(0) ? (x < kInfinity<T> ? result : x) : low;
}

// log(1 + f) + e ln2 + low
TAEDA_FN float log_sum(float f, float e, float low = 0) {
  using Traits = LogTraits<float>;
  const float square = f * f;
  const float rest = f * square * log_poly(f) - 0.5f * square + low;
  return e * Traits::kLn2High + (f + (e * Traits::kLn2Low + rest));
}
TAEDA_FN double log_sum(double f, double e, double low = 0) {
  using Traits = LogTraits<double>;
  const double s = f / (2 + f);
  const double z = s * s;
  const double half_square = 0.5 * f * f;
  const double rest = s * (half_square + z * log_s_poly(z)) + low;
  return e * Traits::kLn2High -
         ((half_square - (rest + e * Traits::kLn2Low)) - f);
}

// log(1 + f) in two parts, the first with half the bits.
template <typename T>
TAEDA_FN Pair<T> log1p_parts(T f) {
  const T s = f / (T(2) + f);
  const T z = s * s;
  const T half_square = T(0.5) * f * f;
  const T rest = s * (half_square + z * log_s_poly(z));
  const T high = upper_half(f - half_square);
  return {high, ((f - high) - half_square) + rest};
}

// For a positive finite x.
template <typename T>
TAEDA_FN T log_positive(T x) {
  const LogSplit<T> split = log_split(x);
  return log_sum(split.f, split.exponent);
}

template <typename T>
TAEDA_FN T log_impl(T x) {
  const LogSplit<T> split = log_split(x);
  return log_special(x, log_sum(split.f, split.exponent));
}

template <typename T>
TAEDA_FN T log2_impl(T x) {
  using Traits = LogTraits<T>;
  const LogSplit<T> split = log_split(x);
  const Pair<T> log = log1p_parts(split.f);
  const T low =
      (log.low + log.high) * Traits::kLog2ELow + log.low * Traits::kLog2EHigh;
  const Pair<T> sum =
      fast_two_sum(split.exponent, log.high * Traits::kLog2EHigh);
  return log_special(x, sum.high + (sum.low + low));
}

template <typename T>
TAEDA_FN T log10_impl(T x) {
  using Traits = LogTraits<T>;
  const LogSplit<T> split = log_split(x);
  const Pair<T> log = log1p_parts(split.f);
  const T low = split.exponent * Traits::kLog10Of2Low +
                (log.low + log.high) * Traits::kLog10ELow +
                log.low * Traits::kLog10EHigh;
  const Pair<T> sum = fast_two_sum(split.exponent * Traits::kLog10Of2High,
                                   log.high * Traits::kLog10EHigh);
  return log_special(x, sum.high + (sum.low + low));
}

// With 1 + x = 2^e (1 + f): f = (2^-e - 1) + 2^-e x, which is exact as long as
// 2^-e still counts beside one, so that no digit of a small x is lost.
template <typename T>
TAEDA_FN T log1p_impl(T x) {
  const T sum = T(1) + x;
  const LogSplit<T> split = log_split(sum);
  const bool large = x > FloatTraits<T>::kIntegerFrom * T(4);
  const T scale = pow2_integral(large ? T(0) : -split.exponent);
  const T f = large ? split.f : (scale - T(1)) + scale * x;
  const T result = log_special(sum, log_sum(f, split.exponent));
  return fabs_of(x) < FloatTraits<T>::kTinyArgument ? x : result;
}

TAEDA_FN float log(float x) { return log_impl(x); }
TAEDA_FN double log(double x) { return log_impl(x); }
TAEDA_FN float log2(float x) { return log2_impl(x); }
TAEDA_FN double log2(double x) { return log2_impl(x); }
TAEDA_FN float log10(float x) { return log10_impl(x); }
TAEDA_FN double log10(double x) { return log10_impl(x); }
TAEDA_FN float log1p(float x) { return log1p_impl(x); }
TAEDA_FN double log1p(double x) { return log1p_impl(x); }

}  // namespace taeda::math
