// Vectors of 64 bytes that each ISA level splits as it must: sums and loops
// over rows whose order g++ may not change by itself.
#pragma once

#include <taeda/aten/native/cpu/kernels/isa.h>
#include <taeda/c10/util/bfloat16.h>
#include <taeda/c10/util/half.h>

#include <cstdint>
#include <cstring>
#include <type_traits>

#ifdef __F16C__
#include <immintrin.h>
#endif

#define TAEDA_LANES_FN [[gnu::always_inline]] static inline

namespace taeda {

// The type that arithmetic on T happens in.
template <class T>
struct LaneSum {
  using type = T;
};
template <>
struct LaneSum<BFloat16> {
  using type = float;
};
template <>
struct LaneSum<Half> {
  using type = float;
};
template <class T>
using lane_sum_t = typename LaneSum<T>::type;

}  // namespace taeda

TAEDA_ISA_BEGIN

#ifdef __F16C__
// 16 halves as floats and back, rounded to the nearest with ties to even.
typedef float FloatLanes __attribute__((vector_size(64)));
TAEDA_LANES_FN FloatLanes load_halves(const Half* p) {
  FloatLanes v;
#ifdef __AVX512F__
  __m256i halves;
  std::memcpy(&halves, p, sizeof(halves));
  __m512 wide = _mm512_cvtph_ps(halves);
  std::memcpy(&v, &wide, sizeof(v));
#else
  __m128i halves[2];
  std::memcpy(halves, p, sizeof(halves));
  __m256 wide[2] = {_mm256_cvtph_ps(halves[0]), _mm256_cvtph_ps(halves[1])};
  std::memcpy(&v, wide, sizeof(v));
#endif
  return v;
}
TAEDA_LANES_FN void store_halves(Half* p, FloatLanes v) {
#ifdef __AVX512F__
  __m512 wide;
  std::memcpy(&wide, &v, sizeof(wide));
  __m256i halves = _mm512_cvtps_ph(wide, _MM_FROUND_TO_NEAREST_INT);
#else
  __m256 wide[2];
  std::memcpy(wide, &v, sizeof(wide));
  __m128i halves[2] = {_mm256_cvtps_ph(wide[0], _MM_FROUND_TO_NEAREST_INT),
                       _mm256_cvtps_ph(wide[1], _MM_FROUND_TO_NEAREST_INT)};
#endif
  std::memcpy(p, &halves, sizeof(halves));
}
#endif

template <class A>
struct Lanes {
  static constexpr int64_t kCount = 64 / sizeof(A);
  typedef A V __attribute__((vector_size(64)));

  TAEDA_LANES_FN V splat(A v) { return V{} + v; }

  template <class T>
  TAEDA_LANES_FN V load(const T* p) {
    V v;
    if constexpr (std::is_same_v<T, A>) {
      std::memcpy(&v, p, sizeof(V));
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      typedef uint16_t H __attribute__((vector_size(32)));
      typedef uint32_t W __attribute__((vector_size(64)));
      H h;
      std::memcpy(&h, p, sizeof(H));
      W w = __builtin_convertvector(h, W) << 16;
      std::memcpy(&v, &w, sizeof(V));
#ifdef __F16C__
    } else if constexpr (std::is_same_v<T, Half>) {
      v = load_halves(p);
#endif
    } else {
      A buffer[kCount];
      for (int64_t i = 0; i < kCount; ++i) buffer[i] = static_cast<A>(p[i]);
      std::memcpy(&v, buffer, sizeof(V));
    }
    return v;
  }
  // The first n lanes; the others are zero.
  template <class T>
  TAEDA_LANES_FN V load_some(const T* p, int64_t n) {
    A buffer[kCount] = {};
    for (int64_t i = 0; i < n; ++i) buffer[i] = static_cast<A>(p[i]);
    V v;
    std::memcpy(&v, buffer, sizeof(V));
    return v;
  }
  template <class T>
  TAEDA_LANES_FN void store(T* p, V v) {
    if constexpr (std::is_same_v<T, A>) {
      std::memcpy(p, &v, sizeof(V));
#ifdef __F16C__
    } else if constexpr (std::is_same_v<T, Half>) {
      store_halves(p, v);
#endif
    } else {
      store_some(p, v, kCount);
    }
  }
  template <class T>
  TAEDA_LANES_FN void store_some(T* p, V v, int64_t n) {
    A buffer[kCount];
    std::memcpy(buffer, &v, sizeof(V));
    for (int64_t i = 0; i < n; ++i) p[i] = static_cast<T>(buffer[i]);
  }
  TAEDA_LANES_FN A sum(V v) {
    A buffer[kCount];
    std::memcpy(buffer, &v, sizeof(V));
    for (int64_t w = kCount / 2; w > 0; w /= 2) {
      for (int64_t i = 0; i < w; ++i) buffer[i] += buffer[i + w];
    }
    return buffer[0];
  }
};

// Calls f(offset, lanes_of, put) for each full vector of [0, n) and once for
// the rest. `lanes_of(p)` loads at the offset, `put(p, v)` stores there; lanes
// beyond n read as zero and are not stored.
template <class A, class F>
[[gnu::always_inline]] inline void for_lanes(int64_t n, F&& f) {
  using L = Lanes<A>;
  int64_t i = 0;
  for (; i + L::kCount <= n; i += L::kCount) {
    f(
        [&](const auto* p)
            __attribute__((always_inline)) { return L::load(p + i); },
        [&](auto* p, const typename L::V& v)
            __attribute__((always_inline)) { L::store(p + i, v); });
  }
  if (i < n) {
    int64_t left = n - i;
    f(
        [&](const auto* p) __attribute__((always_inline)) {
          return L::load_some(p + i, left);
        },
        [&](auto* p, const typename L::V& v)
            __attribute__((always_inline)) { L::store_some(p + i, v, left); });
  }
}

// Two running sums take turns in blocks, so that long rows lose little.
template <class A>
struct BlockSum {
  using V = typename Lanes<A>::V;
  V small = {};
  V total = {};
  int count = 0;
  [[gnu::always_inline]] void add(V v) {
    small += v;
    if (++count == 32) flush();
  }
  [[gnu::always_inline]] void flush() {
    total += small;
    small = V{};
    count = 0;
  }
  [[gnu::always_inline]] A get() {
    flush();
    return Lanes<A>::sum(total);
  }
};

TAEDA_ISA_END
