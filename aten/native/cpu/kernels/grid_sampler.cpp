#include <taeda/aten/native/cpu/kernels/grid_sampler.h>
#include <taeda/aten/native/cpu/kernels/isa.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <type_traits>

TAEDA_ISA_BEGIN

namespace {

using native::Sampling;

// A place on one axis, with its derivative with respect to the grid. In double
// for all dtypes: far from 0, float places lose the digits behind the point.
struct Place {
  double at, slope;
};

[[gnu::always_inline]] inline Place pixel_of(double coordinate,
                                             int64_t size,
                                             bool align_corners) {
  double n = static_cast<double>(size);
  if (align_corners) return {(coordinate + 1) / 2 * (n - 1), (n - 1) / 2};
  return {((coordinate + 1) * n - 1) / 2, n / 2};
}

[[gnu::always_inline]] inline Place clipped(Place p, int64_t size) {
  double last = static_cast<double>(size - 1);
  if (!(p.at > 0)) return {0.0, 0.0};
  return p.at >= last ? Place{last, 0.0} : p;
}

// Mirrored at low / 2 and high / 2 until it lies between them.
Place reflected(Place p, int64_t low, int64_t high) {
  if (low == high) return {0.0, 0.0};
  double least = static_cast<double>(low) / 2,
         span = static_cast<double>(high - low) / 2;
  double away = p.at - least;
  double sign = away < 0 ? -1.0 : 1.0;
  away = std::abs(away);
  double rest = std::fmod(away, span);
  bool even = std::fmod(std::floor(away / span), 2.0) == 0;
  return even ? Place{rest + least, p.slope * sign}
              : Place{span - rest + least, -p.slope * sign};
}

[[gnu::always_inline]] inline Place inside(Place p,
                                           int64_t size,
                                           const Sampling& how) {
  if (how.beyond == Sampling::kBorder) {
    p = clipped(p, size);
  } else if (how.beyond == Sampling::kReflection) {
    p = how.align_corners ? reflected(p, 0, 2 * (size - 1))
                          : reflected(p, -1, 2 * size - 1);
    p = clipped(p, size);
  }
  // What no integer can hold lies outside of every image.
  bool fits = std::abs(p.at) <
              static_cast<double>(std::numeric_limits<int32_t>::max() - 1);
  if (!fits) p.at = -100;
  return p;
}

// The elements of one axis that a place reads: -1 stands for zero.
template <class T, size_t N>
struct AxisTaps {
  std::array<int64_t, N> at;
  std::array<T, N> weight, slope;
  void set(size_t k, int64_t i, int64_t size, double w, double s) {
    at[k] = i >= 0 && i < size ? i : -1;
    weight[k] = static_cast<T>(w), slope[k] = static_cast<T>(s);
  }
};

// Keys's cubic with -3/4 at distance x, and its derivative.
std::array<double, 2> keys(double x) {
  constexpr double kA = -0.75;
  double d = std::abs(x), sign = x < 0 ? -1.0 : 1.0;
  if (d <= 1) {
    return {((kA + 2) * d - (kA + 3)) * d * d + 1,
            sign * (3 * (kA + 2) * d - 2 * (kA + 3)) * d};
  }
  return {((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA,
          sign * ((3 * kA * d - 10 * kA) * d + 8 * kA)};
}

// N is how many elements the interpolation reads: 1, 2 or 4.
template <class T, size_t N>
[[gnu::always_inline]] inline AxisTaps<T, N> axis_taps(double coordinate,
                                                       int64_t size,
                                                       const Sampling& how) {
  AxisTaps<T, N> taps;
  Place pixel = pixel_of(coordinate, size, how.align_corners);
  if constexpr (N == 4) {
    double floor = std::floor(pixel.at), part = pixel.at - floor;
    for (int k = 0; k < 4; ++k) {
      auto [w, s] = keys(part - (k - 1));
      Place at = inside(Place{floor + (k - 1), 0.0}, size, how);
      taps.set(static_cast<size_t>(k),
               static_cast<int64_t>(at.at),
               size,
               w,
               s * pixel.slope);
    }
    return taps;
  }
  Place p = inside(pixel, size, how);
  if constexpr (N == 1) {
    taps.set(0, static_cast<int64_t>(std::nearbyint(p.at)), size, 1, 0);
  } else if constexpr (N == 2) {
    double floor = std::floor(p.at);
    int64_t low = static_cast<int64_t>(floor);
    taps.set(0, low, size, floor + 1 - p.at, -p.slope);
    taps.set(1, low + 1, size, p.at - floor, p.slope);
  }
  return taps;
}

template <size_t N, size_t D>
constexpr size_t kProduct = N * kProduct<N, D - 1>;
template <size_t N>
constexpr size_t kProduct<N, 0> = 1;

// All elements that a place reads, the product of its axes' taps, without those
// that lie outside.
template <class T, size_t N, size_t D>
struct PlaceTaps {
  static constexpr size_t kAll = kProduct<N, D>;
  size_t count;
  int64_t at[kAll];
  T weight[kAll];
  T slope[D][kAll];
};

template <bool kSlopes, class T, size_t N, size_t D>
[[gnu::always_inline]] inline void place_taps(const T* place,
                                              const GridJob& job,
                                              PlaceTaps<T, N, D>& taps) {
  std::array<AxisTaps<T, N>, D> axes;
  // The grid names the last axis first.
  for (size_t d = 0; d < D; ++d) {
    axes[d] = axis_taps<T, N>(place[D - 1 - d], job.sizes[d], job.how);
  }
  size_t k = 0;
  for (size_t i = 0; i < taps.kAll; ++i) {
    std::array<size_t, D> index;
    for (size_t rest = i, d = D; d-- > 0; rest /= N) index[d] = rest % N;
    int64_t at = 0;
    bool outside = false;
    T weight = 1;
    for (size_t d = 0; d < D; ++d) {
      int64_t here = axes[d].at[index[d]];
      outside |= here < 0;
      at = at * job.sizes[d] + here;
      weight *= axes[d].weight[index[d]];
    }
    taps.at[k] = at;
    taps.weight[k] = weight;
    for (size_t d = 0; kSlopes && d < D; ++d) {
      T slope = axes[d].slope[index[d]];
      for (size_t e = 0; e < D; ++e) {
        if (e != d) slope *= axes[e].weight[index[e]];
      }
      taps.slope[d][k] = slope;
    }
    k += !outside;
  }
  taps.count = k;
}

// kChannels channels of one place. A place whose taps all lie inside has a
// constant count of them.
template <int kChannels, class T, size_t N, size_t D>
[[gnu::always_inline]] inline void sample_place(const PlaceTaps<T, N, D>& taps,
                                                const GridJob& job,
                                                const T* image,
                                                T* to) {
  T sums[kChannels] = {};
  auto add = [&](size_t count) __attribute__((always_inline)) {
    for (size_t k = 0; k < count; ++k) {
      const T* from = image + taps.at[k];
      for (int c = 0; c < kChannels; ++c) {
        sums[c] += taps.weight[k] * from[c * job.plane];
      }
    }
  };
  if (taps.count == taps.kAll) {
    add(taps.kAll);
  } else {
    add(taps.count);
  }
  for (int c = 0; c < kChannels; ++c) to[c * job.places] = sums[c];
}

// Calls f with the number of elements an axis reads.
template <class F>
void visit_taps(const Sampling& how, F&& f) {
  if (how.interpolation == Sampling::kNearest) {
    return f(std::integral_constant<size_t, 1>{});
  }
  if (how.interpolation == Sampling::kLinear) {
    return f(std::integral_constant<size_t, 2>{});
  }
  f(std::integral_constant<size_t, 4>{});
}

// A block of places for a few channels at a time: the planes of many channels
// lie a power of two apart and would share the lines of the first cache.
template <class T, size_t D>
void sample(
    const GridJob& job, const T* grid, const T* image, T* out, int64_t count) {
  constexpr int64_t kBlock = 32, kChannels = 4;
  visit_taps(job.how, [&](auto n) {
    PlaceTaps<T, n(), D> taps[kBlock];
    for (int64_t begin = 0; begin < count; begin += kBlock) {
      int64_t places = std::min(kBlock, count - begin);
      for (int64_t i = 0; i < places; ++i) {
        const T* place = grid + (begin + i) * static_cast<int64_t>(D);
        place_taps<false>(place, job, taps[i]);
      }
      int64_t c = 0;
      for (; c + kChannels <= job.channels; c += kChannels) {
        T* to = out + c * job.places + begin;
        for (int64_t i = 0; i < places; ++i) {
          sample_place<kChannels>(taps[i], job, image + c * job.plane, to + i);
        }
      }
      for (; c < job.channels; ++c) {
        T* to = out + c * job.places + begin;
        for (int64_t i = 0; i < places; ++i) {
          sample_place<1>(taps[i], job, image + c * job.plane, to + i);
        }
      }
    }
  });
}

template <class T, size_t N, size_t D>
void place_gradients(const PlaceTaps<T, N, D>& taps,
                     const GridJob& job,
                     const T* image,
                     const T* dy,
                     T* dx,
                     T* dgrid) {
  T sums[D] = {};
  for (int64_t c = 0; c < job.channels; ++c, dy += job.places) {
    for (size_t k = 0; k < taps.count; ++k) {
      int64_t at = c * job.plane + taps.at[k];
      if (dx != nullptr) dx[at] += taps.weight[k] * *dy;
      T moved = image[at] * *dy;
      for (size_t d = 0; d < D; ++d) sums[d] += taps.slope[d][k] * moved;
    }
  }
  if (dgrid == nullptr) return;
  for (size_t d = 0; d < D; ++d) dgrid[D - 1 - d] = sums[d];
}

template <class T, size_t D>
void gradients(const GridJob& job,
               const T* grid,
               const T* image,
               const T* dy,
               T* dx,
               T* dgrid,
               int64_t count) {
  visit_taps(job.how, [&](auto n) {
    PlaceTaps<T, n(), D> taps;
    for (int64_t i = 0; i < count; ++i) {
      int64_t at = i * static_cast<int64_t>(D);
      place_taps<true>(grid + at, job, taps);
      T* to = dgrid == nullptr ? nullptr : dgrid + at;
      place_gradients(taps, job, image, dy + i, dx, to);
    }
  });
}

}  // namespace

extern const GridTable kGridTable = {
    {{sample<float, 2>, gradients<float, 2>},
     {sample<float, 3>, gradients<float, 3>}},
    {{sample<double, 2>, gradients<double, 2>},
     {sample<double, 3>, gradients<double, 3>}}};

TAEDA_ISA_END
