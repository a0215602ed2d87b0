// What every header of this folder builds on: bit access, polynomials, fused
// multiply-add, rounding. The same text is host C++ and NVRTC device code.
//
// Note [Vectorisable scalar code]
// A loop over one of these functions must become vector code at every ISA
// level, so: no branches (selects only, both arms computed), no tables, no
// calls, no 64-bit arithmetic shift (SSE2 and AVX2 have none), no conversion
// between double and integers (AVX2 has none). Integers are read out of, and
// put into, floating-point numbers by adding 1.5 * 2^(mantissa bits) and
// looking at the low bits of the sum.
//
// Note [Contraction]
// g++ and NVRTC fuse a * b + c where the target can, and only there. Every
// formula is right either way; where an error term must match its product,
// the product is exact or comes from two_product.
//
// Note [Shared functions]
// Long functions with branches and tables are no vector code at any level. In
// the library they are compiled once, in shared.cpp, and its kernels see the
// declarations of shared.h. Kernels that are compiled at run time, and
// programs without the library, have a copy each (TAEDA_SHARED_FN).
#pragma once

#if defined(__CUDACC__)  // NVRTC defines it too
#define TAEDA_FN __host__ __device__ __forceinline__
#define TAEDA_PART_FN static __host__ __device__
#define TAEDA_TABLE static __device__ const
#else
// Never emitted out of line: a copy built for AVX-512 must not serve others.
#define TAEDA_FN inline __attribute__((always_inline))
#define TAEDA_PART_FN [[maybe_unused, gnu::noinline]] static
#define TAEDA_TABLE constexpr
#endif

#if defined(TAEDA_MATH_SHARED)
#define TAEDA_SHARED_FN
#else
#define TAEDA_SHARED_FN TAEDA_PART_FN
#endif

// Before a loop of constant length that g++ must see through to vectorise.
#if defined(__CUDACC__)
#define TAEDA_MATH_UNROLL _Pragma("unroll")
#else
#define TAEDA_MATH_UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__FMA__) || defined(__CUDACC__)
#define TAEDA_MATH_HAS_FMA 1
#else
#define TAEDA_MATH_HAS_FMA 0
#endif

namespace taeda::math {

template <typename T>
struct FloatTraits;

template <>
struct FloatTraits<float> {
  using Bits = unsigned int;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kBias = 127;
  static constexpr Bits kSignMask = 0x80000000u;
  static constexpr Bits kOneBits = 0x3f800000u;
  static constexpr Bits kInfinityBits = 0x7f800000u;
  static constexpr Bits kNanBits = 0x7fc00000u;
  static constexpr Bits kSqrtHalfBits = 0x3f3504f3u;
  static constexpr float kRoundMagic = 0x1.8p23f;
  static constexpr float kIntegerFrom = 0x1p23f;  // all above are integers
  static constexpr float kSmallestNormal = 0x1p-126f;
  static constexpr float kTinyArgument = 0x1p-26f;  // x^2 vanishes beside x
  static constexpr float kLargest = 0x1.fffffep127f;
};

template <>
struct FloatTraits<double> {
  using Bits = unsigned long long;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr Bits kSignMask = 0x8000000000000000ull;
  static constexpr Bits kOneBits = 0x3ff0000000000000ull;
  static constexpr Bits kInfinityBits = 0x7ff0000000000000ull;
  static constexpr Bits kNanBits = 0x7ff8000000000000ull;
  static constexpr Bits kSqrtHalfBits = 0x3fe6a09e667f3bcdull;
  static constexpr double kRoundMagic = 0x1.8p52;
  static constexpr double kIntegerFrom = 0x1p52;
  static constexpr double kSmallestNormal = 0x1p-1022;
  static constexpr double kTinyArgument = 0x1p-55;
  static constexpr double kLargest = 0x1.fffffffffffffp1023;
};

// NVRTC has neither <type_traits> nor the compiler's __is_same.
template <typename A, typename B>
constexpr bool kIsSame = false;
template <typename A>
constexpr bool kIsSame<A, A> = true;

template <typename T>
concept Floating = kIsSame<T, float> || kIsSame<T, double>;

template <typename T>
using BitsOf = typename FloatTraits<T>::Bits;

template <typename T>
constexpr T kInfinity = __builtin_bit_cast(T, FloatTraits<T>::kInfinityBits);
template <typename T>
constexpr T kNan = __builtin_bit_cast(T, FloatTraits<T>::kNanBits);

TAEDA_FN unsigned int to_bits(float x) {
  return __builtin_bit_cast(unsigned int, x);
}
TAEDA_FN unsigned long long to_bits(double x) {
  return __builtin_bit_cast(unsigned long long, x);
}
TAEDA_FN float from_bits(unsigned int b) {
  return __builtin_bit_cast(float, b);
}
TAEDA_FN double from_bits(unsigned long long b) {
  return __builtin_bit_cast(double, b);
}

// c0 + c1 x + c2 x^2 + ... by Horner's rule.
template <typename T>
TAEDA_FN T poly_chain(T, T c0) {
  return c0;
}
template <typename T, typename... Rest>
TAEDA_FN T poly_chain(T x, T c0, Rest... rest) {
  return c0 + x * poly_chain(x, rest...);
}

// The same with Horner's rule for the even and the odd powers apart
// where they are many: half the latency, which is what bounds a loop that is
// not unrolled.
template <typename T>
TAEDA_FN T poly_every_other(T, T c0) {
  return c0;
}
template <typename T>
TAEDA_FN T poly_every_other(T, T c0, T) {
  return c0;
}
template <typename T, typename... Rest>
TAEDA_FN T poly_every_other(T square, T c0, T, Rest... rest) {
  return c0 + square * poly_every_other(square, rest...);
}
template <typename T>
TAEDA_FN T poly(T, T c0) {
  return c0;
}
template <typename T>
TAEDA_FN T poly(T x, T c0, T c1) {
  return c0 + x * c1;
}
template <typename T, typename... Rest>
TAEDA_FN T poly(T x, T c0, T c1, Rest... rest) {
  if constexpr (sizeof...(rest) < 6) {
    return c0 + x * (c1 + x * poly(x, rest...));
  } else {
    const T square = x * x;
    const T odd = poly_every_other(square, c1, rest...);
    return poly_every_other(square, c0, c1, rest...) + x * odd;
  }
}

TAEDA_FN float fabs_of(float x) { return from_bits(to_bits(x) & 0x7fffffffu); }
TAEDA_FN double fabs_of(double x) {
  return from_bits(to_bits(x) & 0x7fffffffffffffffull);
}

// |magnitude| with the sign of `sign`.
template <typename T>
TAEDA_FN T with_sign(T magnitude, T sign) {
  constexpr auto mask = FloatTraits<T>::kSignMask;
  return from_bits((to_bits(magnitude) & ~mask) | (to_bits(sign) & mask));
}

// x with its sign flipped where `sign` is negative.
template <typename T>
TAEDA_FN T flip_sign(T x, T sign) {
  return from_bits(to_bits(x) ^ (to_bits(sign) & FloatTraits<T>::kSignMask));
}

// a where the bit is 0, b where it is 1; SSE2 cannot compare 64-bit integers.
template <typename T>
TAEDA_FN T choose_by_bit(T a, T b, BitsOf<T> bit) {
  const BitsOf<T> mask = BitsOf<T>(0) - (bit & 1);
  return from_bits((to_bits(a) & ~mask) | (to_bits(b) & mask));
}

// An integral number, and bits whose low ones are those of the same integer.
template <typename T>
struct Rounded {
  T value;
  BitsOf<T> bits;
};

// Half to even, for |x| < 2^(mantissa bits - 1).
template <typename T>
TAEDA_FN Rounded<T> round_to_bits(T x) {
  const T shifted = x + FloatTraits<T>::kRoundMagic;
  return {shifted - FloatTraits<T>::kRoundMagic, to_bits(shifted)};
}
template <typename T>
TAEDA_FN T round_small(T x) {
  return round_to_bits(x).value;
}

// The low bits of the integer that x holds, |x| < 2^(mantissa bits - 1).
template <typename T>
TAEDA_FN BitsOf<T> low_bits(T integral) {
  return to_bits(integral + FloatTraits<T>::kRoundMagic);
}

// 2^n for an integral n of the normal range.
template <typename T>
TAEDA_FN T pow2_of_bits(BitsOf<T> n) {
  using Traits = FloatTraits<T>;
  return from_bits((n + Traits::kBias) << Traits::kMantissaBits);
}
template <typename T>
TAEDA_FN T pow2_integral(T n) {
  return pow2_of_bits<T>(low_bits(n));
}

// x 2^n, right into the denormals and up to overflow, for x near one and an n
// whose bits are those of `low_bits`. Halves of 2^n have biased exponents, so
// that no shift has a sign and g++ needs no arithmetic on floats for them.
template <typename T>
TAEDA_FN T scale_by_bits(T x, BitsOf<T> n) {
  using Traits = FloatTraits<T>;
  const BitsOf<T> biased = n - to_bits(Traits::kRoundMagic) + 2 * Traits::kBias;
  const BitsOf<T> half = biased >> 1;
  const T first = from_bits(half << Traits::kMantissaBits);
  return x * first * from_bits((biased - half) << Traits::kMantissaBits);
}
template <typename T>
TAEDA_FN T scale_by_pow2(T x, T n) {
  return scale_by_bits(x, low_bits(n));
}

// Unevaluated sums high + low.
template <typename T>
struct Pair {
  T high;
  T low;
};

// a + b exactly, |a| >= |b| or a == 0. (Dekker 1971)
template <typename T>
TAEDA_FN Pair<T> fast_two_sum(T a, T b) {
  const T sum = a + b;
  return {sum, b - (sum - a)};
}

// a + b exactly. (Knuth, The Art of Computer Programming, volume 2, 4.2.2)
template <typename T>
TAEDA_FN Pair<T> two_sum(T a, T b) {
  const T sum = a + b;
  const T part = sum - a;
  return {sum, (a - (sum - part)) + (b - part)};
}

// (c0 + low) + c1 x + c2 x^2 + ... in two parts.
template <typename T, typename... Rest>
TAEDA_FN Pair<T> poly_parts(T x, T low, T c0, Rest... rest) {
  const Pair<T> sum = fast_two_sum(c0, x * poly(x, rest...));
  return {sum.high, sum.low + low};
}

#if TAEDA_MATH_HAS_FMA
TAEDA_FN float fma_of(float a, float b, float c) {
#ifdef __CUDA_ARCH__
  return ::fmaf(a, b, c);
#else
  return __builtin_fmaf(a, b, c);
#endif
}
TAEDA_FN double fma_of(double a, double b, double c) {
#ifdef __CUDA_ARCH__
  return ::fma(a, b, c);
#else
  return __builtin_fma(a, b, c);
#endif
}
#endif

// The upper half of the bits of x, so that products of halves are exact.
TAEDA_FN float upper_half(float x) {
  return from_bits(to_bits(x) & 0xfffff000u);
}
TAEDA_FN double upper_half(double x) {
  return from_bits(to_bits(x) & 0xfffffffff8000000ull);
}

// a b exactly, barring overflow and underflow. (Dekker 1971 without fma)
template <typename T>
TAEDA_FN Pair<T> two_product(T a, T b) {
  const T product = a * b;
#if TAEDA_MATH_HAS_FMA
  return {product, fma_of(a, b, -product)};
#else
  const T a_high = upper_half(a);
  const T b_high = upper_half(b);
  const T a_low = a - a_high;
  const T b_low = b - b_high;
  const T low = ((a_high * b_high - product) + a_high * b_low) +
                a_low * b_high + a_low * b_low;
  return {product, low};
#endif
}

}  // namespace taeda::math
