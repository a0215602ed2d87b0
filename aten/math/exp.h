// exp, exp2, expm1.
// Method: Cody & Waite, Software Manual for the Elementary Functions (1980),
// chapter 6: x = n ln2 + r, |r| <= ln2 / 2, with ln2 in two parts of which the
// first has so few bits that n times it is exact.
#pragma once

#include <taeda/aten/math/polynomials.h>
#include <taeda/aten/math/prim.h>

namespace taeda::math {

template <typename T>
struct ExpTraits;

template <>
struct ExpTraits<float> {
  static constexpr float kLog2E = 0x1.715476p0f;
  static constexpr float kLn2High = 0x1.62e4p-1f;
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kLowest = -104;  // e^x rounds to zero from here down
  static constexpr float kHighest = 89;   // and to infinity from here up
  static constexpr float kLowest2 = -151;
  static constexpr float kHighest2 = 129;
};

template <>
struct ExpTraits<double> {
  static constexpr double kLog2E = 0x1.71547652b82fep0;
  static constexpr double kLn2High = 0x1.62e42fefa4p-1;
  static constexpr double kLn2Low = -0x1.8432a1b0e2634p-43;
  static constexpr double kLowest = -746;
  static constexpr double kHighest = 710;
  static constexpr double kLowest2 = -1076;
  static constexpr double kHighest2 = 1025;
};

// Keeps NaN.
template <typename T>
TAEDA_FN T clamp_range(T x, T low, T high) {
  x = x < low ? low : x;
  return x > high ? high : x;
}

// e^x 2^-n for the integer nearest to x / ln2.
TAEDA_FN float exp_remainder(float x, float n) {
  using Traits = ExpTraits<float>;
  const float r = (x - n * Traits::kLn2High) - n * Traits::kLn2Low;
  return 1.0f + (r + r * r * exp_poly(r));
}
// What rounding takes from r and from 1 + r comes back in the last addition.
TAEDA_FN double exp_remainder(double x, double n) {
  using Traits = ExpTraits<double>;
  const double n_low = n * Traits::kLn2Low;
  const double r_high = x - n * Traits::kLn2High;
  const double r = r_high - n_low;
  const double r_tail = (r_high - r) - n_low;
  const Pair<double> head = fast_two_sum(1.0, r);
  return head.high + (head.low + (r_tail + r * r * exp_poly(r)));
}

// e^x where neither overflow nor denormals can be.
template <typename T>
TAEDA_FN T exp_unscaled(T x) {
  const Rounded<T> n = round_to_bits(x * ExpTraits<T>::kLog2E);
  return exp_remainder(x, n.value) * pow2_of_bits<T>(n.bits);
}

// `y`, but what the ends of the range are for an x beyond them: two choices at
// the end cost less than two before, for which g++ forms what follows anew.
template <typename T>
TAEDA_FN T choose_in_range(T x, T low, T high, T y) {
  const T from_zero = x < low ? T(0) : y;
  return x > high ? kInfinity<T> : from_zero;
}

// e^x 2^k for a small k: e^x / 2 of a sinh must not overflow.
template <typename T>
TAEDA_FN T exp_scaled(T x, int k) {
  using Traits = ExpTraits<T>;
  const Rounded<T> n = round_to_bits(x * Traits::kLog2E);
  const T y = scale_by_bits(exp_remainder(x, n.value),
                            n.bits + static_cast<BitsOf<T>>(k));
  return choose_in_range(x, Traits::kLowest, Traits::kHighest - T(k), y);
}

// e^(x + tail) = (high + low) 2^n to more than T's bits.
template <typename T>
struct ExpSplit {
  T high;
  T low;
  T n;
};

template <typename T>
TAEDA_FN ExpSplit<T> exp_split(T x, T tail, T k = T(0)) {
  using Traits = ExpTraits<T>;
  x = clamp_range(x, Traits::kLowest, Traits::kHighest - k);
  const T n = round_small(x * Traits::kLog2E);
  const T n_low = n * Traits::kLn2Low;
  const T r_high = x - n * Traits::kLn2High;
  const T r = r_high - n_low;
  const T r_tail = ((r_high - r) - n_low) + tail;
  const Pair<T> head = fast_two_sum(T(1), r);
  const Pair<T> sum = fast_two_sum(head.high, r * r * exp_poly(r));
  return {sum.high, sum.low + (head.low + r_tail * sum.high), n};
}

// e^x 2^k in two parts.
template <typename T>
TAEDA_FN Pair<T> exp_parts(T x, T k) {
  const ExpSplit<T> split = exp_split(x, T(0), k);
  return {scale_by_pow2(split.high, split.n + k),
          scale_by_pow2(split.low, split.n + k)};
}

template <typename T>
TAEDA_FN T exp_impl(T x) {
  return exp_scaled(x, 0);
}

template <typename T>
TAEDA_FN T exp2_impl(T x) {
  using Traits = ExpTraits<T>;
  const Rounded<T> n = round_to_bits(x);
  const T r = x - n.value;
  const T y = scale_by_bits(T(1) + r * exp2_poly(r), n.bits);
  return choose_in_range(x, Traits::kLowest2, Traits::kHighest2, y);
}

// 2^n (e^r - 1) + (2^n - 1), the sum of the two large terms kept in full; half
// of it first, so that 2^n itself may overflow.
template <typename T>
TAEDA_FN T expm1_impl(T x) {
  using Traits = ExpTraits<T>;
  const T clamped = clamp_range(x, Traits::kLowest / 2, Traits::kHighest);
  const T n = round_small(clamped * Traits::kLog2E);
  const T n_low = n * Traits::kLn2Low;
  const T r_high = clamped - n * Traits::kLn2High;
  const T r = r_high - n_low;
  const T r_tail = (r_high - r) - n_low;
  const T half = pow2_integral(n - T(1));
  const Pair<T> sum = fast_two_sum(half - T(0.5), half * r);
  const T tail = half * (r * r * exp_poly(r) + r_tail);
  const T result = T(2) * (sum.high + (sum.low + tail));
  // Keeps -0 and denormals; e^x - 1 = x to half an ulp there.
  return fabs_of(x) < FloatTraits<T>::kTinyArgument ? x : result;
}

TAEDA_FN float exp(float x) { return exp_impl(x); }
TAEDA_FN double exp(double x) { return exp_impl(x); }
TAEDA_FN float exp2(float x) { return exp2_impl(x); }
TAEDA_FN double exp2(double x) { return exp2_impl(x); }
TAEDA_FN float expm1(float x) { return expm1_impl(x); }
TAEDA_FN double expm1(double x) { return expm1_impl(x); }

}  // namespace taeda::math
