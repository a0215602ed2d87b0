// Images and volumes sampled at the places of a grid: the elements around each
// place, weighted. Places are in double for all dtypes: far from 0, floats lose
// the digits behind the point.
#pragma once

#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

// A place on one axis, with its derivative with respect to the grid.
struct AxisPlace {
  double at, slope;
};

struct GridModes {
  Long interpolation;  // 0 linear, 1 nearest, 2 cubic
  Long beyond;         // 0 zeros, 1 the border, 2 reflection
  bool corners;

  template <class G>
  __device__ inline explicit GridModes(const G& g)
      : interpolation(g.interpolation_mode.integer()),
        beyond(g.padding_mode.integer()),
        corners(g.align_corners.truth()) {}

  __device__ inline AxisPlace pixel(double place, Long size) const {
    const double n = static_cast<double>(size);
    if (corners) return {(place + 1) / 2 * (n - 1), (n - 1) / 2};
    return {((place + 1) * n - 1) / 2, n / 2};
  }
  static __device__ inline AxisPlace clipped(AxisPlace p, Long size) {
    const double last = static_cast<double>(size - 1);
    if (!(p.at > 0)) return {0.0, 0.0};
    return p.at >= last ? AxisPlace{last, 0.0} : p;
  }
  // Mirrored at both ends until it lies between them.
  __device__ inline AxisPlace reflected(AxisPlace p, Long size) const {
    const double low = corners ? 0.0 : -0.5;
    const double span = static_cast<double>(corners ? size - 1 : size);
    if (span == 0) return {0.0, 0.0};
    double away = p.at - low;
    const double sign = away < 0 ? -1.0 : 1.0;
    away = away < 0 ? -away : away;
    const double turns = math::floor(away / span);
    const double rest = away - turns * span;
    const bool even = turns - 2 * math::floor(turns / 2) == 0;
    return even ? AxisPlace{rest + low, p.slope * sign}
                : AxisPlace{span - rest + low, -p.slope * sign};
  }
  __device__ inline AxisPlace inside(AxisPlace p, Long size) const {
    if (beyond == 1) p = clipped(p, size);
    if (beyond == 2) p = clipped(reflected(p, size), size);
    // What no integer holds lies outside of every image; so does NaN.
    if (!(p.at > -2147483646.0 && p.at < 2147483646.0)) p.at = -100;
    return p;
  }
};

// The elements of one axis that a place reads: -1 stands for zero.
struct AxisTaps {
  int count = 0;
  Long at[4];
  double weight[4], slope[4];

  __device__ inline void add(Long i, Long size, double w, double s) {
    at[count] = i >= 0 && i < size ? i : -1;
    weight[count] = w;
    slope[count++] = s;
  }
  // Keys's cubic with -3/4 at distance x, and its derivative.
  __device__ inline void add_cubic(Long i, Long size, double x, double scale) {
    const double a = -0.75, d = x < 0 ? -x : x, sign = x < 0 ? -1.0 : 1.0;
    const double w = d <= 1 ? ((a + 2) * d - (a + 3)) * d * d + 1
                            : ((a * d - 5 * a) * d + 8 * a) * d - 4 * a;
    const double s = d <= 1 ? (3 * (a + 2) * d - 2 * (a + 3)) * d
                            : (3 * a * d - 10 * a) * d + 8 * a;
    add(i, size, w, sign * s * scale);
  }
  __device__ inline AxisTaps() {}
  __device__ inline AxisTaps(double place, Long size, const GridModes& modes) {
    const AxisPlace pixel = modes.pixel(place, size);
    if (modes.interpolation == 2) {
      const double low = math::floor(pixel.at);
      for (int k = -1; k <= 2; ++k) {
        const AxisPlace p = modes.inside({low + k, 0.0}, size);
        add_cubic(
            static_cast<Long>(p.at), size, pixel.at - low - k, pixel.slope);
      }
      return;
    }
    const AxisPlace p = modes.inside(pixel, size);
    if (modes.interpolation == 1) {
      add(static_cast<Long>(math::round(p.at)), size, 1, 0);
      return;
    }
    const double low = math::floor(p.at);
    const Long first = static_cast<Long>(low);
    add(first, size, low + 1 - p.at, -p.slope);
    add(first + 1, size, p.at - low, p.slope);
  }
};

// f(place in the plane, weight, derivatives by each axis of the image) for all
// elements that place `p` of the grid reads. kAxes is 2 or 3.
template <int kAxes, class G, class F>
__device__ inline void each_tap(const G& g, Long p, F f) {
  const GridModes modes(g);
  AxisTaps axes[kAxes];
  int all = 1;
  for (int d = 0; d < kAxes; ++d) {
    // The grid names the last axis first.
    const double place =
        static_cast<double>(g.grid.flat(p * kAxes + kAxes - 1 - d));
    axes[d] = AxisTaps(place, g.input.size(d + 2), modes);
    all *= axes[d].count;
  }
  for (int i = 0; i < all; ++i) {
    int index[kAxes];
    for (int d = kAxes - 1, rest = i; d >= 0; --d) {
      index[d] = rest % axes[d].count;
      rest /= axes[d].count;
    }
    Long at = 0;
    double weight = 1, slopes[kAxes];
    for (int d = 0; d < kAxes; ++d) {
      const Long here = axes[d].at[index[d]];
      at = here < 0 || at < 0 ? -1 : at * g.input.size(d + 2) + here;
      weight *= axes[d].weight[index[d]];
      slopes[d] = axes[d].slope[index[d]];
      for (int e = 0; e < kAxes; ++e) {
        if (e != d) slopes[d] *= axes[e].weight[index[e]];
      }
    }
    if (at >= 0) f(at, weight, slopes);
  }
}

// How many places a tensor [n, c, ...] has in a plane.
template <class T>
__device__ inline Long plane_of(const T& t) {
  Long count = 1;
  for (Long d = 2; d < t.rank(); ++d) count *= t.size(d);
  return count;
}

template <int kAxes, class G>
__device__ inline void sampled_at(const G& g, Long i) {
  using V = typename decltype(g.input)::Value;
  const Long places = plane_of(g.result), plane = plane_of(g.input);
  const Long channels = g.input.size(1);
  const Long first = i / places * plane;
  V sum = V(0);
  each_tap<kAxes>(g,
                  i / places / channels * places + i % places,
                  [&](Long at, double weight, const double*) {
                    sum += static_cast<V>(weight) * g.input.flat(first + at);
                  });
  g.result.write(i, sum);
}

// A thread for each place of the grid; gradients of the input are added up.
template <int kAxes, class G>
__device__ inline void sampled_back_at(const G& g, Long p) {
  using V = typename decltype(g.input)::Value;
  const Long places = plane_of(g.grad_output), plane = plane_of(g.input);
  const Long channels = g.input.size(1), n = p / places;
  V sums[kAxes];
  for (int d = 0; d < kAxes; ++d) sums[d] = V(0);
  each_tap<kAxes>(g, p, [&](Long at, double weight, const double* slopes) {
    for (Long c = 0; c < channels; ++c) {
      const Long image = n * channels + c;
      const V grad = g.grad_output.flat(image * places + p % places);
      const Long from = image * plane + at;
      if constexpr (!decltype(g.grad_input)::missing) {
        g.grad_input.add(g.grad_input.place(from),
                         static_cast<V>(weight) * grad);
      }
      const V moved = g.input.flat(from) * grad;
      for (int d = 0; d < kAxes; ++d) {
        sums[d] += static_cast<V>(slopes[d]) * moved;
      }
    }
  });
  if constexpr (!decltype(g.grad_grid)::missing) {
    for (int d = 0; d < kAxes; ++d) {
      g.grad_grid.write(p * kAxes + kAxes - 1 - d, sums[d]);
    }
  }
}

}  // namespace taeda
