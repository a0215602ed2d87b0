// Numbers that stand for one element of several matrices at once: what a loop
// over a batch of small matrices computes with.
#pragma once

#include <taeda/aten/native/cpu/kernels/isa.h>
#include <taeda/c10/util/complex.h>

#include <cstdint>
#include <cstring>
#include <utility>

#define TAEDA_MATRIX_FN [[gnu::always_inline]] static inline

TAEDA_ISA_BEGIN

namespace {

#if defined(__AVX512F__)
constexpr int kLaneBytes = 64;
#elif defined(__AVX2__)
constexpr int kLaneBytes = 32;
#else
constexpr int kLaneBytes = 16;
#endif

template <class T>
struct RealLane;
// The smallest normal number, the rounding unit, and the powers of two whose
// squares (a few added up) neither overflow nor lose digits.
template <>
struct RealLane<float> {
  using Bits = int32_t;
  static constexpr float kTiny = 0x1p-126f, kHuge = 0x1p125f;
  static constexpr float kEps = 0x1p-24f;
  static constexpr float kLow = 0x1p-50f, kHigh = 0x1p60f;
  static constexpr Bits kExponent = 0x7f800000, kTwiceOne = 0x7f000000;
};
template <>
struct RealLane<double> {
  using Bits = int64_t;
  static constexpr double kTiny = 0x1p-1022, kHuge = 0x1p1021;
  static constexpr double kEps = 0x1p-53;
  static constexpr double kLow = 0x1p-480, kHigh = 0x1p500;
  static constexpr Bits kExponent = 0x7ff0000000000000;
  static constexpr Bits kTwiceOne = 0x7fe0000000000000;
};

// Lanes of real numbers. A mask has all bits of a lane set or none.
template <class T>
struct Lane : RealLane<T> {
  using Real = T;
  using Bits = typename RealLane<T>::Bits;
  using Base = Lane;
  static constexpr bool kComplex = false;
  static constexpr int kParts = 1;  // real numbers of each element
  static constexpr int kCount = kLaneBytes / static_cast<int>(sizeof(T));
  typedef T V __attribute__((vector_size(kLaneBytes), may_alias));
  typedef Bits M __attribute__((vector_size(kLaneBytes), may_alias));
  typedef V S;

  TAEDA_MATRIX_FN V splat(T x) { return V{} + x; }
  TAEDA_MATRIX_FN M whole(int x) { return M{} + static_cast<Bits>(x); }
  TAEDA_MATRIX_FN V abs(V x) { return V(M(x) & ~(M(-splat(0)))); }
  TAEDA_MATRIX_FN V pick(M m, V a, V b) { return m ? a : b; }
  TAEDA_MATRIX_FN V larger(V a, V b) { return a > b ? a : b; }
  // |a| with the sign of b.
  TAEDA_MATRIX_FN V signed_as(V a, V b) {
    M sign = M(-splat(0));
    return V((M(a) & ~sign) | (M(b) & sign));
  }
  TAEDA_MATRIX_FN V sqrt(V x) {
    V y;
    for (int l = 0; l < kCount; ++l) {
      if constexpr (sizeof(T) == 4) {
        y[l] = __builtin_sqrtf(x[l]);
      } else {
        y[l] = __builtin_sqrt(x[l]);
      }
    }
    return y;
  }

  // x[i][l] and x[l][i] change places: blocks of half the size, then of a
  // quarter, ... across the diagonal.
  template <int Half = kCount / 2>
  TAEDA_MATRIX_FN void transpose(V* x) {
    constexpr auto all = std::make_integer_sequence<int, kCount>();
    for (int i = 0; i < kCount; ++i) {
      if (i & Half) continue;
      V a = x[i], b = x[i + Half];
      x[i] = __builtin_shuffle(a, b, left<Half>(all));
      x[i + Half] = __builtin_shuffle(a, b, left<Half>(all) + Half);
    }
    if constexpr (Half > 1) transpose<Half / 2>(x);
  }
  template <int Half, int... I>
  TAEDA_MATRIX_FN M left(std::integer_sequence<int, I...>) {
    return M{((I & Half) != 0 ? Bits{kCount + I - Half} : Bits{I})...};
  }

  // What differs for complex numbers.
  TAEDA_MATRIX_FN S from(V x) { return x; }
  TAEDA_MATRIX_FN V real(S x) { return x; }
  TAEDA_MATRIX_FN V imag(S) { return V{}; }
  TAEDA_MATRIX_FN S conj(S x) { return x; }
  TAEDA_MATRIX_FN V size(S x) { return abs(x); }
  TAEDA_MATRIX_FN V square(S x) { return x * x; }
  TAEDA_MATRIX_FN S mul(S a, S b) { return a * b; }
  TAEDA_MATRIX_FN S add_mul(S c, S a, S b) { return c + a * b; }
  TAEDA_MATRIX_FN S sub_mul(S c, S a, S b) { return c - a * b; }
  TAEDA_MATRIX_FN S times(S a, V b) { return a * b; }
  TAEDA_MATRIX_FN S inverse(S x) { return 1 / x; }
  // The sizes whose `inverse` is good.
  static constexpr T kLeast = RealLane<T>::kTiny, kMost = RealLane<T>::kHuge;

  TAEDA_MATRIX_FN void put(S* at, int lane, T x) {
    reinterpret_cast<T*>(at)[lane] = x;
  }
  TAEDA_MATRIX_FN T get(const S* at, int lane) {
    return reinterpret_cast<const T*>(at)[lane];
  }
};

template <class T>
struct Lane<complex<T>> : Lane<T> {
  using Base = Lane<T>;
  using Base::abs, Base::pick;
  static constexpr bool kComplex = true;
  static constexpr int kParts = 2;
  typedef typename Base::V V;
  typedef typename Base::M M;
  struct S {
    V re, im;
    [[gnu::always_inline]] friend inline S operator+(S a, S b) {
      return {a.re + b.re, a.im + b.im};
    }
    [[gnu::always_inline]] friend inline S operator-(S a, S b) {
      return {a.re - b.re, a.im - b.im};
    }
  };

  TAEDA_MATRIX_FN S pick(M m, S a, S b) {
    return {m ? a.re : b.re, m ? a.im : b.im};
  }
  TAEDA_MATRIX_FN S from(V x) { return {x, V{}}; }
  TAEDA_MATRIX_FN V real(S x) { return x.re; }
  TAEDA_MATRIX_FN V imag(S x) { return x.im; }
  TAEDA_MATRIX_FN S conj(S x) { return {x.re, -x.im}; }
  // LAPACK compares complex numbers by this.
  TAEDA_MATRIX_FN V size(S x) { return abs(x.re) + abs(x.im); }
  TAEDA_MATRIX_FN V square(S x) { return x.re * x.re + x.im * x.im; }
  TAEDA_MATRIX_FN S mul(S a, S b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
  }
  TAEDA_MATRIX_FN S add_mul(S c, S a, S b) {
    return {c.re + a.re * b.re - a.im * b.im, c.im + a.re * b.im + a.im * b.re};
  }
  TAEDA_MATRIX_FN S sub_mul(S c, S a, S b) {
    return {c.re - a.re * b.re + a.im * b.im, c.im - a.re * b.im - a.im * b.re};
  }
  TAEDA_MATRIX_FN S times(S a, V b) { return {a.re * b, a.im * b}; }
  TAEDA_MATRIX_FN S inverse(S x) { return times(conj(x), 1 / square(x)); }
  static constexpr T kLeast = Base::kLow, kMost = Base::kHigh;

  TAEDA_MATRIX_FN void put(S* at, int lane, complex<T> x) {
    T* numbers = reinterpret_cast<T*>(at);
    numbers[lane] = x.real();
    numbers[Base::kCount + lane] = x.imag();
  }
  TAEDA_MATRIX_FN complex<T> get(const S* at, int lane) {
    const T* numbers = reinterpret_cast<const T*>(at);
    return {numbers[lane], numbers[Base::kCount + lane]};
  }
};

}  // namespace

TAEDA_ISA_END
