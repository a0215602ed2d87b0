// Which types are integers, and arithmetic on them that wraps.
#pragma once

#include <taeda/aten/math/prim.h>

namespace taeda::math {

template <typename T, typename... Types>
constexpr bool kIsOneOf = (kIsSame<T, Types> || ...);

template <typename T>
concept SignedInteger = kIsOneOf<T, signed char, short, int, long, long long> ||
                        (kIsOneOf<T, char> && char(-1) < char(0));
template <typename T>
concept UnsignedInteger = kIsOneOf<T,
                                   unsigned char,
                                   unsigned short,
                                   unsigned int,
                                   unsigned long,
                                   unsigned long long,
                                   bool> ||
                          (kIsOneOf<T, char> && char(-1) > char(0));
template <typename T>
concept Integer = SignedInteger<T> || UnsignedInteger<T>;

template <int kBytes>
struct UnsignedOfSize;
template <>
struct UnsignedOfSize<1> {
  using Type = unsigned char;
};
template <>
struct UnsignedOfSize<2> {
  using Type = unsigned short;
};
template <>
struct UnsignedOfSize<4> {
  using Type = unsigned int;
};
template <>
struct UnsignedOfSize<8> {
  using Type = unsigned long long;
};
template <typename T>
using UnsignedOf = typename UnsignedOfSize<sizeof(T)>::Type;

template <Integer T>
TAEDA_FN constexpr T integer_highest() {
  const auto ones = static_cast<UnsignedOf<T>>(~0ull);
  return static_cast<T>(SignedInteger<T> ? ones >> 1 : ones);
}

template <Integer T>
TAEDA_FN T wrapping_negate(T x) {
  return static_cast<T>(UnsignedOf<T>(0) - static_cast<UnsignedOf<T>>(x));
}
// Not through the promoted int: 65535 * 65535 overflows it.
template <Integer T>
TAEDA_FN T wrapping_multiply(T a, T b) {
  using Wide = decltype(UnsignedOf<T>(0) + 0u);
  return static_cast<T>(static_cast<Wide>(a) * static_cast<Wide>(b));
}

}  // namespace taeda::math
