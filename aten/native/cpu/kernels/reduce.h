// Loops of the generated reductions over a policy (init, map, combine, finish).
// Everything must be inlined or of internal linkage; see pointwise.h.
#pragma once

#include <taeda/aten/native/cpu/kernels/pointwise.h>
#include <taeda/aten/native/cpu/kernels/reduce_table.h>

TAEDA_ISA_BEGIN

namespace {

// Four full AVX-512 registers: enough independent chains to hide the latency of
// an addition.
template <class T>
constexpr int kLanes = sizeof(T) >= 256 ? 1 : 256 / static_cast<int>(sizeof(T));

constexpr int64_t kShortRow = 12;

template <class P>
void reduce_init(void* acc, int64_t n) {
  using T = typename P::Element;
  T* a = static_cast<T*>(acc);
  for (int64_t i = 0; i < n; ++i) a[i] = P::init();
}

// All lanes in one, half by half; each half is a constant, so that the loops
// are vector operations down to the last.
template <class P, int kCount, class T>
[[gnu::always_inline]] inline T fold_lanes(T* lanes) {
  if constexpr (kCount == 1) {
    return lanes[0];
  } else {
    constexpr int half = kCount / 2;
    for (int l = 0; l < half; ++l) {
      lanes[l] = P::combine(lanes[l], lanes[l + half]);
    }
    return fold_lanes<P, half>(lanes);
  }
}

template <class P>
void reduce_inner(const void* in, int64_t n, void* acc, const void* scalars) {
  using T = typename P::Element;
  constexpr int lanes = kLanes<T>;
  const T* x = static_cast<const T*>(in);
  T* a = static_cast<T*>(acc);
  int64_t i = 0;
  // Below this the halving costs more than the chain of additions.
  if (n >= kShortRow) {
    T sums[lanes];
    // What the value is stays unknown to g++, which has an array of zeros
    // filled by a string instruction at some levels: 11 ns a row.
    T first = P::init();
    asm("" : "+m"(first));
    for (int l = 0; l < lanes; ++l) sums[l] = first;
    for (; i + lanes <= n; i += lanes) {
      for (int l = 0; l < lanes; ++l) {
        sums[l] = P::combine(sums[l], P::map_slots(element(x, i + l), scalars));
      }
    }
    for (int l = 0; l < static_cast<int>(n - i); ++l) {
      sums[l] = P::combine(sums[l], P::map_slots(element(x, i + l), scalars));
    }
    i = n;
    *a = P::combine(*a, fold_lanes<P, lanes>(sums));
  }
  for (; i < n; ++i) *a = P::combine(*a, P::map_slots(element(x, i), scalars));
}

template <class P>
void reduce_outer(const void* in, int64_t n, void* acc, const void* scalars) {
  using T = typename P::Element;
  const T* __restrict x = static_cast<const T*>(in);
  T* __restrict a = static_cast<T*>(acc);
  for (int64_t i = 0; i < n; ++i) {
    a[i] = P::combine(a[i], P::map_slots(element(x, i), scalars));
  }
}

template <class P>
void reduce_combine(void* acc, const void* other, int64_t n) {
  using T = typename P::Element;
  T* a = static_cast<T*>(acc);
  const T* b = static_cast<const T*>(other);
  for (int64_t i = 0; i < n; ++i) a[i] = P::combine(a[i], b[i]);
}

template <class P>
void reduce_finish(
    const void* acc, void* out, int64_t n, int64_t count, const void* scalars) {
  using T = typename P::Element;
  const T* a = static_cast<const T*>(acc);
  auto* o = static_cast<typename P::Result*>(out);
  for (int64_t i = 0; i < n; ++i) {
    o[i] = P::finish_slots(a[i], static_cast<T>(count), scalars);
  }
}

#define TAEDA_REDUCE_LOOPS(...)  \
  {&reduce_init<__VA_ARGS__>,    \
   &reduce_inner<__VA_ARGS__>,   \
   &reduce_outer<__VA_ARGS__>,   \
   &reduce_combine<__VA_ARGS__>, \
   &reduce_finish<__VA_ARGS__>}

}  // namespace

TAEDA_ISA_END
