// Gradients of pooling: a thread for each element of the input adds up what the
// windows that it lies in have for it, in their order.
#pragma once

#include <taeda/aten/native/cuda/layers.cuh>

namespace taeda {

// Along each dim the windows from `begin` on, so many.
template <int kDims>
struct Windows {
  Long begin[kDims], count[kDims], sizes[kDims];

  // Those with a tap at a place: taps reach so far behind their first one.
  __device__ inline void set(
      Long d, Long at, Long reach, Long stride, Long out) {
    const Long first = at - reach;
    Long end = at / stride + 1;
    if (end > out) end = out;
    begin[d] = first <= 0 ? 0 : (first + stride - 1) / stride;
    count[d] = end > begin[d] ? end - begin[d] : 0;
    sizes[d] = out;
  }
  __device__ inline void set_adaptive(Long d, Long at, Long in, Long out) {
    begin[d] = at * out / in;
    count[d] = ((at + 1) * out + in - 1) / in - begin[d];
    sizes[d] = out;
  }
  // f(the window's number in its plane, its place along each dim).
  template <class F>
  __device__ inline void each(F f) const {
    Long all = 1;
    for (Long d = 0; d < kDims; ++d) all *= count[d];
    for (Long w = 0; w < all; ++w) {
      Long place[kDims], rest = w, number = 0, scale = 1;
      for (Long d = kDims - 1; d >= 0; --d) {
        place[d] = begin[d] + rest % count[d];
        rest /= count[d];
        number += place[d] * scale;
        scale *= sizes[d];
      }
      f(number, place);
    }
  }
};

// Where an element of the input lies, and the first window of its plane.
template <int kDims>
struct PooledPlace {
  Long at[kDims], number, plane;

  __device__ inline PooledPlace(const Spatial& in, const Spatial& out, Long i)
      : number(i % in.count()), plane(i / in.count() * out.count()) {
    in.split(number, at);
  }
};

// What the windows have for an element whose place they chose.
template <int kDims, class G>
__device__ inline void add_chosen(const G& g,
                                  const Windows<kDims>& windows,
                                  const PooledPlace<kDims>& place,
                                  Long i) {
  using V = typename decltype(g.grad)::Value;
  V sum = V(0);
  windows.each([&](Long number, const Long*) {
    const Long from = place.plane + number;
    if (g.indices.flat(from) == place.number) {
      sum = static_cast<V>(sum + g.grad.flat(from));
    }
  });
  g.result.write(i, sum);
}

template <int kDims, class G>
__device__ inline void max_pool_back_at(const G& g, Long i) {
  const Spatial out(g.grad.slot, kDims), in(g.result.slot, kDims);
  const PooledPlace<kDims> place(in, out, i);
  Windows<kDims> windows;
  for (Long d = 0; d < kDims; ++d) {
    const Long reach =
        (entry_of(g.kernel_size, d) - 1) * entry_of(g.dilation, d);
    windows.set(d,
                place.at[d] + entry_of(g.padding, d),
                reach,
                step_of(g.stride, g.kernel_size, d),
                out.size(d));
  }
  add_chosen(g, windows, place, i);
}

template <int kDims, class G>
__device__ inline void adaptive_max_back_at(const G& g, Long i) {
  const Spatial out(g.grad.slot, kDims), in(g.result.slot, kDims);
  const PooledPlace<kDims> place(in, out, i);
  Windows<kDims> windows;
  for (Long d = 0; d < kDims; ++d) {
    windows.set_adaptive(d, place.at[d], in.size(d), out.size(d));
  }
  add_chosen(g, windows, place, i);
}

template <int kDims, class G>
__device__ inline void adaptive_mean_back_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const Spatial out(g.grad_output.slot, kDims), in(g.result.slot, kDims);
  const PooledPlace<kDims> place(in, out, i);
  Windows<kDims> windows;
  for (Long d = 0; d < kDims; ++d) {
    windows.set_adaptive(d, place.at[d], in.size(d), out.size(d));
  }
  V sum = V(0);
  windows.each([&](Long number, const Long* window) {
    Long taps = 1;
    for (Long d = 0; d < kDims; ++d) {
      taps *= adaptive_end(window[d], in.size(d), out.size(d)) -
              adaptive_begin(window[d], in.size(d), out.size(d));
    }
    const V grad = g.grad_output.flat(place.plane + number);
    sum = static_cast<V>(sum + grad / static_cast<V>(taps));
  });
  g.result.write(i, sum);
}

template <int kDims, class G>
__device__ inline void mean_pool_back_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const Spatial out(g.grad_output.slot, kDims), in(g.result.slot, kDims);
  const PooledPlace<kDims> place(in, out, i);
  Windows<kDims> windows;
  for (Long d = 0; d < kDims; ++d) {
    windows.set(d,
                place.at[d] + entry_of(g.padding, d),
                entry_of(g.kernel_size, d) - 1,
                step_of(g.stride, g.kernel_size, d),
                out.size(d));
  }
  V sum = V(0);
  windows.each([&](Long number, const Long* window) {
    Long divisor = 1;
    for (Long d = 0; d < kDims; ++d) {
      divisor *= window_of(g, d, window[d], in.size(d)).size;
    }
    if (!g.divisor_override.missing) divisor = g.divisor_override.integer();
    const V grad = g.grad_output.flat(place.plane + number);
    sum = static_cast<V>(sum + grad / static_cast<V>(divisor));
  });
  g.result.write(i, sum);
}

}  // namespace taeda
