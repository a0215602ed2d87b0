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

template <class P>
void reduce_init(void* acc, int64_t n) {
  using T = typename P::Element;
  T* a = static_cast<T*>(acc);
  for (int64_t i = 0; i < n; ++i) a[i] = P::init();
}

template <class P>
void reduce_inner(const void* in, int64_t n, void* acc, const void* scalars) {
  using T = typename P::Element;
  constexpr int lanes = kLanes<T>;
  const T* x = static_cast<const T*>(in);
  T* a = static_cast<T*>(acc);
  int64_t i = 0;
  if (n >= lanes) {
    T sums[lanes];
    for (int l = 0; l < lanes; ++l)
      sums[l] = P::map_slots(element(x, l), scalars);
    for (i = lanes; i + lanes <= n; i += lanes) {
      for (int l = 0; l < lanes; ++l) {
        sums[l] = P::combine(sums[l], P::map_slots(element(x, i + l), scalars));
      }
    }
    for (int half = lanes / 2; half > 0; half /= 2) {
      for (int l = 0; l < half; ++l) {
        sums[l] = P::combine(sums[l], sums[l + half]);
      }
    }
    *a = P::combine(*a, sums[0]);
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
