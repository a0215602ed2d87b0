// Images and volumes sampled at the places of a grid: the elements around each
// place, weighted.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/grid_sampler.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/grid_sampler_2d.h>
#include <taeda/gen/native/grid_sampler_2d_backward.h>
#include <taeda/gen/native/grid_sampler_3d.h>
#include <taeda/gen/native/grid_sampler_3d_backward.h>

#include <array>
#include <cmath>
#include <limits>

namespace taeda::native {

namespace {

// A place on one axis, with its derivative with respect to the grid. In double
// for all dtypes: far from 0, float places lose the digits behind the point.
struct Place {
  double at, slope;
};

Place pixel_of(double coordinate, int64_t size, bool align_corners) {
  double n = static_cast<double>(size);
  if (align_corners) return {(coordinate + 1) / 2 * (n - 1), (n - 1) / 2};
  return {((coordinate + 1) * n - 1) / 2, n / 2};
}

Place clipped(Place p, int64_t size) {
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

Place inside(Place p, int64_t size, const Sampling& how) {
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
template <class T>
struct AxisTaps {
  int count = 0;
  std::array<int64_t, 4> at;
  std::array<T, 4> weight, slope;
  void add(int64_t i, int64_t size, double w, double s) {
    size_t k = static_cast<size_t>(count++);
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

template <class T>
AxisTaps<T> axis_taps(double coordinate, int64_t size, const Sampling& how) {
  AxisTaps<T> taps;
  Place pixel = pixel_of(coordinate, size, how.align_corners);
  if (how.interpolation == Sampling::kCubic) {
    double floor = std::floor(pixel.at), part = pixel.at - floor;
    for (int k = -1; k <= 2; ++k) {
      auto [w, s] = keys(part - k);
      Place at = inside(Place{floor + k, 0.0}, size, how);
      taps.add(static_cast<int64_t>(at.at), size, w, s * pixel.slope);
    }
    return taps;
  }
  Place p = inside(pixel, size, how);
  if (how.interpolation == Sampling::kNearest) {
    taps.add(static_cast<int64_t>(std::nearbyint(p.at)), size, 1, 0);
    return taps;
  }
  double floor = std::floor(p.at);
  int64_t low = static_cast<int64_t>(floor);
  taps.add(low, size, floor + 1 - p.at, -p.slope);
  taps.add(low + 1, size, p.at - floor, p.slope);
  return taps;
}

// All elements that a place reads: the product of its axes' taps.
template <class T, size_t D>
struct PlaceTaps {
  int count = 0;
  std::array<int64_t, 16> at;
  std::array<T, 16> weight;
  std::array<std::array<T, 16>, D> slope;
};

template <class T, size_t D>
PlaceTaps<T, D> place_taps(const T* place,
                           const std::array<int64_t, D>& sizes,
                           const Sampling& how) {
  std::array<AxisTaps<T>, D> axes;
  // The grid names the last axis first.
  for (size_t d = 0; d < D; ++d) {
    axes[d] = axis_taps<T>(place[D - 1 - d], sizes[d], how);
  }
  PlaceTaps<T, D> taps;
  int each = axes[0].count, all = 1;
  for (size_t d = 0; d < D; ++d) all *= each;
  for (int i = 0; i < all; ++i) {
    int64_t at = 0;
    std::array<size_t, D> index;
    for (int rest = i, d = static_cast<int>(D) - 1; d >= 0; --d, rest /= each) {
      index[static_cast<size_t>(d)] = static_cast<size_t>(rest % each);
    }
    for (size_t d = 0; d < D && at >= 0; ++d) {
      int64_t here = axes[d].at[index[d]];
      at = here < 0 ? -1 : at * sizes[d] + here;
    }
    if (at < 0) continue;
    size_t k = static_cast<size_t>(taps.count++);
    taps.at[k] = at;
    taps.weight[k] = T(1);
    for (size_t d = 0; d < D; ++d) taps.weight[k] *= axes[d].weight[index[d]];
    for (size_t d = 0; d < D; ++d) {
      T slope = axes[d].slope[index[d]];
      for (size_t e = 0; e < D; ++e) {
        if (e != d) slope *= axes[e].weight[index[e]];
      }
      taps.slope[d][k] = slope;
    }
  }
  return taps;
}

template <size_t D>
struct Grid {
  std::array<int64_t, D> sizes;
  int64_t batch, channels, plane = 1, places = 1;
};

template <size_t D>
Grid<D> make_grid(const Tensor& input, const Tensor& grid) {
  Grid<D> g;
  g.batch = input.sizes()[0], g.channels = input.sizes()[1];
  for (size_t d = 0; d < D; ++d) {
    g.plane *= g.sizes[d] = input.sizes()[d + 2];
    g.places *= grid.sizes()[d + 1];
  }
  return g;
}

template <class F>
void visit_sampled(ScalarType t, F&& f) {
  if (t == kFloat) return f(float{});
  if (t == kDouble) return f(double{});
  not_implemented_for("grid_sampler", t);
}

// Where a result of 16 bits is computed: in float, until all is added up.
Tensor widened(const Tensor& t, ScalarType type) {
  if (!t.defined() || t.dtype() == type) return t;
  return make_tensor("grid_sampler", t.sizes(), type);
}

template <size_t D>
void sample(const Tensor& input,
            const Tensor& grid,
            const Sampling& how,
            const Tensor& out) {
  ScalarType type = wide_type(input.dtype());
  Tensor x = contiguous_as(input, type), where = contiguous_as(grid, type);
  Tensor wide = widened(out, type);
  Grid<D> g = make_grid<D>(input, grid);
  visit_sampled(type, [&](auto tag) {
    using T = decltype(tag);
    parallel_for(0, g.batch * g.places, 256, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        int64_t n = i / g.places, p = i % g.places;
        PlaceTaps<T, D> taps = place_taps<T, D>(
            where.const_data<T>() + i * static_cast<int64_t>(D), g.sizes, how);
        const T* from = x.const_data<T>() + n * g.channels * g.plane;
        T* to = wide.mutable_data<T>() + n * g.channels * g.places + p;
        for (int64_t c = 0; c < g.channels; ++c) {
          T sum = 0;
          for (size_t k = 0; k < static_cast<size_t>(taps.count); ++k) {
            sum += taps.weight[k] * from[taps.at[k]];
          }
          *to = sum;
          from += g.plane, to += g.places;
        }
      }
    });
  });
  if (!wide.is_same(out)) copy_into(out, wide);
}

template <class T, size_t D>
void place_gradients(const PlaceTaps<T, D>& taps,
                     const Grid<D>& g,
                     const T* x,
                     const T* dy,
                     T* dx,
                     T* dgrid) {
  std::array<T, D> sums{};
  for (int64_t c = 0; c < g.channels; ++c, dy += g.places) {
    for (size_t k = 0; k < static_cast<size_t>(taps.count); ++k) {
      int64_t at = c * g.plane + taps.at[k];
      if (dx != nullptr) dx[at] += taps.weight[k] * *dy;
      T moved = x[at] * *dy;
      for (size_t d = 0; d < D; ++d) sums[d] += taps.slope[d][k] * moved;
    }
  }
  if (dgrid == nullptr) return;
  for (size_t d = 0; d < D; ++d) dgrid[D - 1 - d] = sums[d];
}

template <size_t D>
void sample_backward(const Tensor& grad,
                     const Tensor& input,
                     const Tensor& grid,
                     const Sampling& how,
                     const Tensor& grad_input,
                     const Tensor& grad_grid) {
  ScalarType type = wide_type(input.dtype());
  Tensor dx = widened(grad_input, type), dgrid = widened(grad_grid, type);
  if (dx.defined()) fill_with(dx, int64_t{0});
  Tensor x = contiguous_as(input, type), where = contiguous_as(grid, type);
  Tensor g = contiguous_as(grad, type);
  Grid<D> shape = make_grid<D>(input, grid);
  int64_t block = shape.channels * shape.plane;
  visit_sampled(type, [&](auto tag) {
    using T = decltype(tag);
    // One batch element at a time: its places add into the same image.
    parallel_for(0, shape.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * shape.places; i < end * shape.places; ++i) {
        int64_t n = i / shape.places, p = i % shape.places;
        int64_t at = i * static_cast<int64_t>(D);
        place_gradients<T, D>(
            place_taps<T, D>(where.const_data<T>() + at, shape.sizes, how),
            shape,
            x.const_data<T>() + n * block,
            g.const_data<T>() + n * shape.channels * shape.places + p,
            dx.defined() ? dx.mutable_data<T>() + n * block : nullptr,
            dgrid.defined() ? dgrid.mutable_data<T>() + at : nullptr);
      }
    });
  });
  if (!dx.is_same(grad_input)) copy_into(grad_input, dx);
  if (!dgrid.is_same(grad_grid)) copy_into(grad_grid, dgrid);
}

}  // namespace

#define TAEDA_GRID_SAMPLER(D)                                      \
  void grid_sampler_##D##d_cpu(const Tensor& input,                \
                               const Tensor& grid,                 \
                               int64_t mode,                       \
                               int64_t beyond,                     \
                               bool corners,                       \
                               const Tensor& out) {                \
    sample<D>(input, grid, {mode, beyond, corners}, out);          \
  }                                                                \
  void grid_sampler_##D##d_backward_cpu(const Tensor& grad_output, \
                                        const Tensor& input,       \
                                        const Tensor& grid,        \
                                        int64_t mode,              \
                                        int64_t beyond,            \
                                        bool corners,              \
                                        ArrayRef<bool>,            \
                                        const Tensor& grad_input,  \
                                        const Tensor& grad_grid) { \
    sample_backward<D>(grad_output,                                \
                       input,                                      \
                       grid,                                       \
                       {mode, beyond, corners},                    \
                       grad_input,                                 \
                       grad_grid);                                 \
  }
TAEDA_GRID_SAMPLER(2)
TAEDA_GRID_SAMPLER(3)
#undef TAEDA_GRID_SAMPLER

}  // namespace taeda::native
