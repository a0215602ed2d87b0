// Rows under exp: what softmax, cross entropy and attention are made of.
#pragma once

#include <taeda/aten/math/exp.h>
#include <taeda/aten/native/cpu/kernels/lanes.h>

#include <limits>

TAEDA_ISA_BEGIN

namespace {

template <class A, class T>
inline A row_max(const T* x, int64_t n) {
  constexpr int64_t kLanes = Lanes<A>::kCount;
  A best[kLanes];
  for (int64_t j = 0; j < kLanes; ++j) {
    best[j] = -std::numeric_limits<A>::infinity();
  }
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      A v = static_cast<A>(x[i + j]);
      best[j] = v > best[j] || v != v ? v : best[j];
    }
  }
  A top = -std::numeric_limits<A>::infinity();
  for (; i < n; ++i) {
    A v = static_cast<A>(x[i]);
    top = v > top || v != v ? v : top;
  }
  for (int64_t j = 0; j < kLanes; ++j) {
    top = best[j] > top || best[j] != best[j] ? best[j] : top;
  }
  return top;
}

// out = exp(scale x - shift); returns the sum.
template <class A, class T>
inline A row_exp(const T* x, A scale, A shift, A* out, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = math::exp(static_cast<A>(x[i]) * scale - shift);
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
