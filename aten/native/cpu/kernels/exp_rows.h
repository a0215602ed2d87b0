// Rows under exp: what softmax, cross entropy and attention are made of.
#pragma once

#include <taeda/aten/math/exp.h>
#include <taeda/aten/native/cpu/kernels/lanes.h>

#include <cstring>
#include <limits>

TAEDA_ISA_BEGIN

namespace {

template <class A, class T>
inline A row_max(const T* x, int64_t n) {
  using L = Lanes<A>;
  using V = typename L::V;
  constexpr A kLeast = -std::numeric_limits<A>::infinity();
  auto higher = [](V best, V v) __attribute__((always_inline))->V {
    return (v > best) | (v != v) ? v : best;
  };
  V one = L::splat(kLeast), two = one;
  int64_t i = 0;
  for (; i + 2 * L::kCount <= n; i += 2 * L::kCount) {
    one = higher(one, L::load(x + i));
    two = higher(two, L::load(x + i + L::kCount));
  }
  for (; i + L::kCount <= n; i += L::kCount) {
    one = higher(one, L::load(x + i));
  }
  one = higher(one, two);
  A top = kLeast;
  for (; i < n; ++i) {
    A v = static_cast<A>(x[i]);
    top = v > top || v != v ? v : top;
  }
  A best[L::kCount];
  std::memcpy(best, &one, sizeof(V));
  for (A v : best) top = v > top || v != v ? v : top;
  return top;
}

// out = exp(scale x - shift), which may be x itself; returns the sum.
template <class A, class T>
inline A row_exp(const T* x, A scale, A shift, A* out, int64_t n) {
  if (static_cast<const void*>(x) == static_cast<void*>(out)) {
    // Of one pointer alone, so that g++ sees that no step reads another's.
    for (int64_t i = 0; i < n; ++i) {
      out[i] = math::exp(out[i] * scale - shift);
    }
  } else {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = math::exp(static_cast<A>(x[i]) * scale - shift);
    }
  }
  BlockSum<A> sum;
  for_lanes<A>(n, [&](auto get, auto) { sum.add(get(out)); });
  return sum.get();
}

// The sum of exp(x - shift) alone.
template <class A, class T>
inline A row_exp_sum(const T* x, A shift, int64_t n) {
  constexpr int64_t kBlock = 256;
  A buffer[kBlock];
  A total = 0;
  for (int64_t i = 0; i < n; i += kBlock) {
    int64_t count = n - i < kBlock ? n - i : kBlock;
    total += row_exp<A, T>(x + i, A(1), shift, buffer, count);
  }
  return total;
}

}  // namespace

TAEDA_ISA_END
