// Random numbers. See Note [Draws on a device].
#pragma once

#include <taeda/c10/core/philox.h>
#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

// What is drawn for a stored type: float up to 32 bits, else double.
template <class S>
inline constexpr bool kIsWide = sizeof(RealOf<S>) == 8;
template <class S>
using DrawnAs = Conditional<kIsWide<S>, double, float>;

// The block of words that number n of a call draws from, and its part of it.
struct Draw {
  Philox4 words;
  int part;

  template <class G>
  __device__ inline Draw(const G& g, Long n, int per_block) {
    const Long threads = g.threads.integer(), turn = n / threads;
    Long seed = g.seed.integer(), offset = g.offset.integer();
    if constexpr (!decltype(g.state)::missing) {  // see Note [Graphs]
      seed = g.state.flat(0);
      offset += g.state.flat(1);
    }
    part = static_cast<int>(turn % per_block);
    words = Philox4x32(
                static_cast<unsigned long long>(seed),
                static_cast<unsigned long long>(n % threads),
                static_cast<unsigned long long>(offset / 4 + turn / per_block))
                .next_block();
  }

  __device__ inline unsigned word() const { return words.word[part]; }
  __device__ inline unsigned long long long_word() const {
    return static_cast<unsigned long long>(words.word[2 * part]) << 32 |
           words.word[2 * part + 1];
  }
  // In (0, 1], of 32 and of 53 bits.
  static __device__ inline float unit(unsigned word) {
    return static_cast<float>(word) * 0x1p-32f + 0x1p-33f;
  }
  static __device__ inline double unit(unsigned low, unsigned high) {
    const unsigned long long bits = low ^ static_cast<unsigned long long>(high)
                                              << 21;
    return static_cast<double>(bits) * 0x1p-53 + 0x1p-54;
  }
};

// Number n of those drawn as R, in (0, 1].
template <class R, class G>
__device__ inline R unit_of(const G& g, Long n) {
  if constexpr (sizeof(R) == 8) {
    const Draw draw(g, n, 2);
    return Draw::unit(draw.words.word[2 * draw.part],
                      draw.words.word[2 * draw.part + 1]);
  } else {
    return Draw::unit(Draw(g, n, 4).word());
  }
}

// Two numbers of a pair are the sine and the cosine of one angle (G. Box and
// M. Muller, 1958).
template <class R, class G>
__device__ inline R normal_of(const G& g, Long n) {
  constexpr double kTurn = 6.283185307179586;
  if constexpr (sizeof(R) == 8) {
    const Draw draw(g, n, 2);
    const unsigned* w = draw.words.word;
    const double size = math::sqrt(-2.0 * math::log(Draw::unit(w[0], w[1])));
    const double angle = Draw::unit(w[2], w[3]) * kTurn;
    return size *
           (draw.part == 0 ? math::sin_any(angle) : math::cos_any(angle));
  } else {
    const Draw draw(g, n, 4);
    const unsigned* w = draw.words.word + draw.part / 2 * 2;
    const float size = math::sqrt(-2.0f * math::log(Draw::unit(w[0])));
    const float angle =
        static_cast<float>(w[1]) * static_cast<float>(0x1p-32 * kTurn) +
        static_cast<float>(0x1p-33 * kTurn);
    return size *
           (draw.part % 2 == 0 ? math::sin_any(angle) : math::cos_any(angle));
  }
}

// Element i is `f(n)` of the next number, or of two for its parts.
template <class G, class F>
__device__ inline void write_drawn(const G& g, Long i, F f) {
  using S = typename decltype(g.result)::Stored;
  if constexpr (kIsComplex<S>) {
    const auto real = f(2 * i);
    g.result.write(
        i,
        S(static_cast<RealOf<S>>(real), static_cast<RealOf<S>>(f(2 * i + 1))));
  } else {
    g.result.write(i, f(i));
  }
}

// In [from, to).
template <class G>
__device__ inline void uniform_at(const G& g, Long i, double from, double to) {
  using S = typename decltype(g.result)::Stored;
  using R = DrawnAs<S>;
  const R low = static_cast<R>(from), range = static_cast<R>(to - from);
  write_drawn(g, i, [&](Long n) {
    const R value = unit_of<R>(g, n) * range + low;
    // The end that a number may reach, or be rounded to, is the other one.
    return converted<RealOf<S>>(value) == converted<RealOf<S>>(low + range)
               ? low
               : value;
  });
}
template <class G>
__device__ inline void normal_at(const G& g, Long i, double mean, double std) {
  using S = typename decltype(g.result)::Stored;
  using R = DrawnAs<S>;
  const double share = kIsComplex<S> ? std * 0.7071067811865476 : std;
  write_drawn(g, i, [&](Long n) {
    return normal_of<R>(g, n) * static_cast<R>(share) + static_cast<R>(mean);
  });
}

// Integers from `low` on, of which there are `range`; 0 stands for all.
template <class G>
__device__ inline void integer_at(const G& g,
                                  Long i,
                                  Long low,
                                  unsigned long long range) {
  unsigned long long drawn = 0;
  if (g.wide.truth()) {
    const unsigned long long word = Draw(g, i, 2).long_word();
    drawn = range == 0 ? word : word % range;
  } else {
    drawn = Draw(g, i, 4).word() % static_cast<unsigned>(range);
  }
  g.result.write(
      i, static_cast<Long>(static_cast<unsigned long long>(low) + drawn));
}
// The integers that a type can hold, from 0 on; of floating-point types those
// that are exact.
template <class S>
__device__ inline unsigned long long integers_of() {
  if constexpr (math::kIsSame<S, bool>) {
    return 2;
  } else if constexpr (math::kIsSame<S, double>) {
    return (1ull << 53) + 1;
  } else if constexpr (math::kIsSame<S, float>) {
    return (1ull << 24) + 1;
  } else if constexpr (math::kIsSame<S, Half>) {
    return (1ull << 11) + 1;
  } else if constexpr (math::kIsSame<S, BFloat16>) {
    return (1ull << 8) + 1;
  } else {
    return 1ull << (sizeof(S) * 8 - (S(-1) < S(0) ? 1 : 0)) % 64;
  }
}

template <class G>
__device__ inline void chance_at(const G& g, Long i, double p) {
  g.result.write(i, unit_of<float>(g, i) <= static_cast<float>(p));
}
template <class P, class R>
__device__ inline double chance_of(const P& p, const R& result, Long i) {
  const Place e(result.slot, i);
  return static_cast<double>(p.broadcast(e, result.rank()));
}

template <class G>
__device__ inline void dropout_at(const G& g, Long i) {
  using V = typename decltype(g.input)::Value;
  const double p = g.p.real();
  const bool trains = g.train.missing || g.train.truth();
  const bool kept =
      !trains || unit_of<float>(g, i) <= static_cast<float>(1 - p);
  g.out1.write(i, kept && p < 1);
  const V value = g.input.flat(i);
  const V scale = static_cast<V>(trains ? (p < 1 ? 1 / (1 - p) : 0) : 1);
  g.out0.write(i, kept ? static_cast<V>(value * scale) : V(0));
}

// -log of a number in (0, 1], never 0.
template <class G>
__device__ inline double exponential_of(const G& g, Long n) {
  using R = DrawnAs<typename decltype(g.result)::Stored>;
  constexpr R kHalfStep = sizeof(R) == 8 ? R(0x1p-53) : R(0x1p-24);
  const R unit = unit_of<R>(g, n);
  return unit >= R(1) - kHalfStep ? kHalfStep : -math::log(unit);
}

// In (0, 1], of as many bits as the result has.
template <class G>
__device__ inline double drawn(const G& g, Long i) {
  using S = typename decltype(g.result)::Stored;
  return static_cast<double>(unit_of<DrawnAs<S>>(g, i));
}

}  // namespace taeda
