// Random numbers: element i of a call draws from subsequence i of its seed.
#pragma once

#include <taeda/c10/core/philox.h>
#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

// How many bits a uniform number has, so that none is rounded to 1.
template <class S>
inline constexpr int kUniformBits = 24;
template <>
inline constexpr int kUniformBits<double> = 53;
template <>
inline constexpr int kUniformBits<complex<double>> = 53;
template <>
inline constexpr int kUniformBits<Half> = 11;
template <>
inline constexpr int kUniformBits<BFloat16> = 8;

struct Draw {
  Philox4x32 words;
  __device__ inline Draw(const Number& seed, Long i)
      : words(static_cast<unsigned long long>(seed.integer()),
              static_cast<unsigned long long>(i),
              0) {}
  __device__ inline unsigned long long word() {
    const unsigned long long high = words.random();
    return high << 32 | words.random();
  }
  // On [0, 1).
  template <class S>
  __device__ inline double uniform() {
    constexpr int kBits = kUniformBits<S>;
    return static_cast<double>(word() >> (64 - kBits)) /
           static_cast<double>(1ull << kBits);
  }
  __device__ inline double uniform() { return uniform<double>(); }
  __device__ inline double normal() {
    const double angle = 6.283185307179586 * uniform();
    const double radius = math::sqrt(-2.0 * math::log1p(-uniform()));
    return radius * math::cos_any(angle);
  }
};

template <class S>
__device__ inline auto uniform_of(Draw& draw, double from, double to) {
  const double first = from + draw.uniform<S>() * (to - from);
  if constexpr (kIsComplex<S>) {
    return complex<double>(first, from + draw.uniform<S>() * (to - from));
  } else {
    return first;
  }
}
template <class S>
__device__ inline auto normal_of(Draw& draw, double mean, double std) {
  if constexpr (kIsComplex<S>) {
    const double share = std * 0.7071067811865476;
    const double first = mean + share * draw.normal();
    return complex<double>(first, mean + share * draw.normal());
  } else {
    return mean + std * draw.normal();
  }
}

template <class G>
__device__ inline void uniform_at(const G& g, Long i, double from, double to) {
  using S = typename decltype(g.result)::Stored;
  Draw draw(g.seed, i);
  g.result.write(i, uniform_of<S>(draw, from, to));
}
template <class G>
__device__ inline void normal_at(const G& g, Long i, double mean, double std) {
  using S = typename decltype(g.result)::Stored;
  Draw draw(g.seed, i);
  g.result.write(i, normal_of<S>(draw, mean, std));
}

// Integers from `low` on, of which there are `range`; 0 stands for all.
template <class G>
__device__ inline void integer_at(const G& g,
                                  Long i,
                                  Long low,
                                  unsigned long long range) {
  Draw draw(g.seed, i);
  const unsigned long long word = draw.word();
  const unsigned long long drawn = range == 0 ? word : word % range;
  g.result.write(
      i, static_cast<Long>(static_cast<unsigned long long>(low) + drawn));
}
// The integers that a type can hold, from 0 on.
template <class S>
__device__ inline unsigned long long integers_of() {
  if constexpr (math::kIsSame<S, bool>) {
    return 2;
  } else if constexpr (kIsSmallFloat<S> || math::kIsSame<S, float> ||
                       math::kIsSame<S, double>) {
    return (1ull << kUniformBits<S>)+1;
  } else {
    return (1ull << (sizeof(S) * 8 - (S(-1) < S(0) ? 1 : 0)) % 64);
  }
}

template <class G>
__device__ inline void chance_at(const G& g, Long i, double p) {
  Draw draw(g.seed, i);
  g.result.write(i, draw.uniform() < p);
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
  Draw draw(g.seed, i);
  const bool trains = g.train.missing || g.train.truth();
  const bool kept = !trains || draw.uniform() >= p;
  g.out1.write(i, kept);
  const V value = g.input.flat(i);
  const V scale = static_cast<V>(trains ? (p < 1 ? 1 / (1 - p) : 0) : 1);
  g.out0.write(i, kept ? static_cast<V>(value * scale) : V(0));
}

template <class G>
__device__ inline double drawn(const G& g, Long i) {
  Draw draw(g.seed, i);
  return draw.uniform();
}

}  // namespace taeda
