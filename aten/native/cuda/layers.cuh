// Convolutions and pooling in their plain form: a thread computes one element.
#pragma once

#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

// Entry `d` of a list with one number for all dims, or one for each.
__device__ inline Long entry_of(const Numbers& list, Long d) {
  return list[list.size == 1 ? 0 : d];
}
// Strides of pooling: the kernel's size where none are given.
__device__ inline Long step_of(const Numbers& stride,
                               const Numbers& kernel,
                               Long d) {
  return stride.size == 0 ? entry_of(kernel, d) : entry_of(stride, d);
}

// The last axes of a tensor, of which there are `dims`.
struct Spatial {
  const Slot& slot;
  const Long dims;
  __device__ inline Spatial(const Slot& s, Long d) : slot(s), dims(d) {}
  __device__ inline Long size(Long d) const {
    return slot.sizes[slot.rank - dims + d];
  }
  __device__ inline Long count() const {
    Long all = 1;
    for (Long d = 0; d < dims; ++d) all *= size(d);
    return all;
  }
  // The index along each of a number in row-major order.
  __device__ inline void split(Long number, Long* index) const {
    for (Long d = dims - 1; d >= 0; --d) {
      index[d] = number % size(d);
      number /= size(d);
    }
  }
};

// Convolution ----------------------------------------------------------------

// The place of the input that tap `k` of the kernel reads for place `at` of the
// output, or -1.
template <class G>
__device__ inline Long tapped(const G& g, Long d, Long at, Long k, Long size) {
  const Long stride = entry_of(g.stride, d), pad = entry_of(g.padding, d);
  const Long reach = k * entry_of(g.dilation, d);
  Long place = at * stride - pad + reach;
  if (g.transposed.truth()) {
    place = at + pad - reach;
    if (place < 0 || place % stride != 0) return -1;
    place /= stride;
  }
  return place >= 0 && place < size ? place : -1;
}

template <class G>
__device__ inline void convolution_at(const G& g, Long i) {
  using V = typename decltype(g.input)::Value;
  const Long dims = g.result.rank() - 2;
  const Place e(g.result.slot, i);
  const bool transposed = g.transposed.truth();
  const Long groups = g.groups.integer();
  const Long outs = g.result.size(1) / groups, ins = g.input.size(1) / groups;
  const Long group = e.at(1) / outs, own = e.at(1) % outs;
  const Spatial kernel(g.weight.slot, dims), plane(g.input.slot, dims);
  const Long taps = kernel.count();
  V sum = V(0);
  for (Long t = 0; t < taps; ++t) {
    Long index[kMaxRank];
    kernel.split(t, index);
    Long from = e.at(0) * g.input.stride(0), tap = 0;
    bool inside = true;
    for (Long d = 0; d < dims && inside; ++d) {
      const Long place = tapped(g, d, e.at(d + 2), index[d], plane.size(d));
      inside = place >= 0;
      from += place * g.input.stride(d + 2);
      tap += index[d] * g.weight.stride(d + 2);
    }
    if (!inside) continue;
    for (Long c = 0; c < ins; ++c) {
      const Long in = group * ins + c;
      const Long at =
          transposed ? in * g.weight.stride(0) + own * g.weight.stride(1)
                     : e.at(1) * g.weight.stride(0) + c * g.weight.stride(1);
      sum = static_cast<V>(sum + g.input.load(from + in * g.input.stride(1)) *
                                     g.weight.load(tap + at));
    }
  }
  if constexpr (!decltype(g.bias)::missing) {
    sum = static_cast<V>(sum + g.bias.flat(e.at(1)));
  }
  g.result.write(i, sum);
}

// Each element sums the columns of im2col that it went to.
template <class G>
__device__ inline void col2im_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const Long height = g.result.size(-2), width = g.result.size(-1);
  const Long x = i % width, y = i / width % height, plane = i / width / height;
  const Long kh = entry_of(g.kernel_size, 0), kw = entry_of(g.kernel_size, 1);
  const Long sh = entry_of(g.stride, 0), sw = entry_of(g.stride, 1);
  const Long dh = entry_of(g.dilation, 0), dw = entry_of(g.dilation, 1);
  const Long ph = entry_of(g.padding, 0), pw = entry_of(g.padding, 1);
  const Long rows = (height + 2 * ph - dh * (kh - 1) - 1) / sh + 1;
  const Long columns = (width + 2 * pw - dw * (kw - 1) - 1) / sw + 1;
  V sum = V(0);
  for (Long t = 0; t < kh * kw; ++t) {
    const Long up = y + ph - t / kw * dh, left = x + pw - t % kw * dw;
    if (up < 0 || left < 0 || up % sh != 0 || left % sw != 0) continue;
    const Long row = up / sh, column = left / sw;
    if (row >= rows || column >= columns) continue;
    const Long at = (plane * kh * kw + t) * rows * columns;
    sum = static_cast<V>(sum + g.self.flat(at + row * columns + column));
  }
  g.result.write(i, sum);
}

// Pooling --------------------------------------------------------------------

template <class V>
__device__ inline bool is_larger(V value, V best) {
  if constexpr (math::kIsSame<V, Long>) {
    return value > best;
  } else {
    return value > best || value != value;
  }
}

// The largest of a window and its place in the plane.
template <int kDims, class G, class R, class P>
__device__ inline void max_pool_at(const G& g,
                                   const R& result,
                                   const P& places,
                                   Long i) {
  using V = typename decltype(g.self)::Value;
  const Spatial out(result.slot, kDims), in(g.self.slot, kDims);
  Long at[kDims], index[kDims];
  out.split(i % out.count(), at);
  const Long plane = i / out.count() * in.count();
  Long taps = 1;
  for (Long d = 0; d < kDims; ++d) taps *= entry_of(g.kernel_size, d);
  V best = V(0);
  Long place = -1;
  for (Long t = 0; t < taps; ++t) {
    Long rest = t, number = 0;
    bool inside = true;
    for (Long d = kDims - 1; d >= 0; --d) {
      const Long size = entry_of(g.kernel_size, d);
      index[d] = at[d] * step_of(g.stride, g.kernel_size, d) -
                 entry_of(g.padding, d) + rest % size * entry_of(g.dilation, d);
      rest /= size;
      inside = inside && index[d] >= 0 && index[d] < in.size(d);
    }
    if (!inside) continue;
    for (Long d = 0; d < kDims; ++d) number = number * in.size(d) + index[d];
    const V value = g.self.flat(plane + number);
    if (place >= 0 && !is_larger(value, best)) continue;
    best = value;
    place = number;
  }
  result.write(i, best);
  places.write(i, place);
}

// The same with windows at random steps: of about (in - kernel) / (out - 1),
// shifted by a sample of the plane; the last window is at the end.
template <class V>
__device__ inline Long fractional_begin(
    Long at, V sample, Long in, Long out, Long kernel) {
  if (at == out - 1) return in - kernel;
  const V step = static_cast<V>(in - kernel) / static_cast<V>(out - 1);
  return static_cast<Long>((static_cast<V>(at) + sample) * step) -
         static_cast<Long>(sample * step);
}
template <int kDims, class G, class R, class P>
__device__ inline void fractional_max_at(const G& g,
                                         const R& result,
                                         const P& places,
                                         Long i) {
  using V = typename decltype(g.self)::Value;
  const Spatial out(result.slot, kDims), in(g.self.slot, kDims);
  Long at[kDims], begin[kDims], taps = 1;
  out.split(i % out.count(), at);
  const Long image = i / out.count(), plane = image * in.count();
  for (Long d = 0; d < kDims; ++d) {
    // Of planes the width's sample comes first, of volumes the depth's.
    const Long which = kDims == 2 ? 1 - d : d;
    const Long kernel = entry_of(g.kernel_size, d);
    begin[d] = fractional_begin(at[d],
                                g.random_samples.flat(image * kDims + which),
                                in.size(d),
                                out.size(d),
                                kernel);
    taps *= kernel;
  }
  V best = V(0);
  Long place = -1;
  for (Long t = 0; t < taps; ++t) {
    Long index[kDims], number = 0;
    for (Long d = kDims - 1, rest = t; d >= 0; --d) {
      index[d] = begin[d] + rest % entry_of(g.kernel_size, d);
      rest /= entry_of(g.kernel_size, d);
    }
    for (Long d = 0; d < kDims; ++d) number = number * in.size(d) + index[d];
    const V value = g.self.flat(plane + number);
    if (place >= 0 && !is_larger(value, best)) continue;
    best = value;
    place = number;
  }
  result.write(i, best);
  places.write(i, place);
}

// Where window `o` of an adaptive pool begins, and the next ends.
__device__ inline Long adaptive_begin(Long o, Long in, Long out) {
  return o * in / out;
}
__device__ inline Long adaptive_end(Long o, Long in, Long out) {
  return ((o + 1) * in + out - 1) / out;
}

template <int kDims, class G, class R, class P>
__device__ inline void adaptive_max_at(const G& g,
                                       const R& result,
                                       const P& places,
                                       Long i) {
  using V = typename decltype(g.self)::Value;
  const Spatial out(result.slot, kDims), in(g.self.slot, kDims);
  Long at[kDims], begin[kDims], size[kDims];
  out.split(i % out.count(), at);
  const Long plane = i / out.count() * in.count();
  Long taps = 1;
  for (Long d = 0; d < kDims; ++d) {
    begin[d] = adaptive_begin(at[d], in.size(d), out.size(d));
    size[d] = adaptive_end(at[d], in.size(d), out.size(d)) - begin[d];
    taps *= size[d];
  }
  V best = V(0);
  Long place = -1;
  for (Long t = 0; t < taps; ++t) {
    Long rest = t, number = 0, scale = 1;
    for (Long d = kDims - 1; d >= 0; --d) {
      number += (begin[d] + rest % size[d]) * scale;
      scale *= in.size(d);
      rest /= size[d];
    }
    const V value = g.self.flat(plane + number);
    if (place >= 0 && !is_larger(value, best)) continue;
    best = value;
    place = number;
  }
  result.write(i, best);
  places.write(i, place);
}

template <int kDims, class G>
__device__ inline void adaptive_mean_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const Spatial out(g.result.slot, kDims), in(g.self.slot, kDims);
  Long at[kDims], begin[kDims], size[kDims];
  out.split(i % out.count(), at);
  const Long plane = i / out.count() * in.count();
  Long taps = 1;
  for (Long d = 0; d < kDims; ++d) {
    begin[d] = adaptive_begin(at[d], in.size(d), out.size(d));
    size[d] = adaptive_end(at[d], in.size(d), out.size(d)) - begin[d];
    taps *= size[d];
  }
  V sum = V(0);
  for (Long t = 0; t < taps; ++t) {
    Long rest = t, number = 0, scale = 1;
    for (Long d = kDims - 1; d >= 0; --d) {
      number += (begin[d] + rest % size[d]) * scale;
      scale *= in.size(d);
      rest /= size[d];
    }
    sum = static_cast<V>(sum + g.self.flat(plane + number));
  }
  g.result.write(i, sum / static_cast<V>(taps));
}

// The window of place `o` along a dim, and by what means are divided.
struct Window {
  Long begin, end, size;
};
template <class G>
__device__ inline Window window_of(const G& g, Long d, Long o, Long in) {
  const Long kernel = entry_of(g.kernel_size, d);
  const Long pad = entry_of(g.padding, d);
  Long begin = o * step_of(g.stride, g.kernel_size, d) - pad;
  Long end = begin + kernel < in + pad ? begin + kernel : in + pad;
  const Long size = end - begin;
  begin = begin > 0 ? begin : 0;
  end = end < in ? end : in;
  return {begin, end, g.count_include_pad.truth() ? size : end - begin};
}

template <int kDims, class G>
__device__ inline void mean_pool_at(const G& g, Long i) {
  using V = typename decltype(g.self)::Value;
  const Spatial out(g.result.slot, kDims), in(g.self.slot, kDims);
  Long at[kDims];
  Window window[kDims];
  out.split(i % out.count(), at);
  const Long plane = i / out.count() * in.count();
  Long taps = 1, divisor = 1;
  for (Long d = 0; d < kDims; ++d) {
    window[d] = window_of(g, d, at[d], in.size(d));
    const Long size = window[d].end - window[d].begin;
    taps *= size > 0 ? size : 0;
    divisor *= window[d].size;
  }
  if (!g.divisor_override.missing) divisor = g.divisor_override.integer();
  V sum = V(0);
  for (Long t = 0; t < taps; ++t) {
    Long rest = t, number = 0, scale = 1;
    for (Long d = kDims - 1; d >= 0; --d) {
      const Long size = window[d].end - window[d].begin;
      number += (window[d].begin + rest % size) * scale;
      scale *= in.size(d);
      rest /= size;
    }
    sum = static_cast<V>(sum + g.self.flat(plane + number));
  }
  g.result.write(i, taps == 0 ? V(0) : sum / static_cast<V>(divisor));
}

// Elements that go to the places which `indices` names in their plane.
template <class G>
__device__ inline void unpool_at(const G& g, Long i) {
  const Long dims = g.dims.integer();
  const Spatial in(g.source.slot, dims), out(g.result.slot, dims);
  const Long count = out.count(), place = g.indices.flat(i);
  require_inside(place, count);
  const Long to = g.result.place(i / in.count() * count + place);
  if (g.adds.truth()) {
    g.result.add(to, g.source.flat(i));
  } else {
    g.result.store(to, g.source.flat(i));
  }
}

}  // namespace taeda
