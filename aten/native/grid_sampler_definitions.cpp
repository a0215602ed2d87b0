// Gradients of grid_sampler by other operators: what they are differentiated
// by. The names and steps are those of the kernel (grid_sampler.cpp), with all
// points of the grid in one tensor [n, points].
#include <taeda/aten/native/grid_sampler.h>
#include <taeda/gen/native/grid_sampler_2d_backward.h>
#include <taeda/gen/native/grid_sampler_3d_backward.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/floor.h>
#include <taeda/gen/ops/full_like.h>
#include <taeda/gen/ops/gather.h>
#include <taeda/gen/ops/ge.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/logical_and.h>
#include <taeda/gen/ops/logical_not.h>
#include <taeda/gen/ops/logical_or.h>
#include <taeda/gen/ops/lt.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/ones_like.h>
#include <taeda/gen/ops/remainder.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/round.h>
#include <taeda/gen/ops/scatter_add.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros_like.h>

#include <limits>
#include <utility>
#include <vector>

namespace taeda::native {

namespace {

Tensor shifted(const Tensor& t, double by) { return ops::add(t, Scalar(by)); }
Tensor scaled(const Tensor& t, double by) { return ops::mul(t, Scalar(by)); }

// Places on one axis. The slope by the coordinate has steps, no derivative.
struct Places {
  Tensor at, slope;
};

Places pixels_of(const Tensor& coordinate, int64_t size, bool align_corners) {
  double n = static_cast<double>(size);
  double slope = align_corners ? (n - 1) / 2 : n / 2;
  Tensor from_edge = shifted(coordinate, 1);
  Tensor at = align_corners ? scaled(scaled(from_edge, 0.5), n - 1)
                            : scaled(shifted(scaled(from_edge, n), -1), 0.5);
  return {at, ops::full_like(coordinate, Scalar(slope))};
}

Places clipped(const Places& p, int64_t size) {
  double last = static_cast<double>(size - 1);
  Tensor low = ops::logical_not(ops::gt(p.at, Scalar(0.0)));
  Tensor high = ops::ge(p.at, Scalar(last));
  Tensor at = ops::where(high, Scalar(last), p.at);
  return {ops::where(low, Scalar(0.0), at),
          ops::masked_fill(p.slope, ops::logical_or(low, high), Scalar(0))};
}

// Mirrored at low / 2 and high / 2 until they lie between them.
Places reflected(const Places& p, int64_t low, int64_t high) {
  if (low == high) return {ops::zeros_like(p.at), ops::zeros_like(p.slope)};
  double least = static_cast<double>(low) / 2,
         span = static_cast<double>(high - low) / 2;
  Tensor away = shifted(p.at, -least);
  Tensor before = ops::lt(away, Scalar(0.0));
  away = ops::where(before, ops::neg(away), away);
  Tensor turns = ops::floor(ops::div(away, Scalar(span)));
  Tensor rest = ops::sub(away, scaled(turns, span));
  Tensor even = ops::eq(ops::remainder(turns, Scalar(2)), Scalar(0));
  Tensor back = shifted(ops::neg(rest), span + least);
  return {ops::where(even, shifted(rest, least), back),
          ops::where(ops::eq(before, even), ops::neg(p.slope), p.slope)};
}

Places inside(Places p, int64_t size, const Sampling& how) {
  if (how.beyond == Sampling::kBorder) {
    p = clipped(p, size);
  } else if (how.beyond == Sampling::kReflection) {
    p = how.align_corners ? reflected(p, 0, 2 * (size - 1))
                          : reflected(p, -1, 2 * size - 1);
    p = clipped(p, size);
  }
  double most = std::numeric_limits<int32_t>::max() - 1;
  Tensor fits = ops::lt(ops::abs(p.at), Scalar(most));
  p.at = ops::where(fits, p.at, Scalar(-100.0));
  return p;
}

// One of the elements that each point reads along an axis.
struct Tap {
  Tensor at, weight, slope;
};

// Keys's cubic with -3/4 at part - k for k from -1 to 2, and its derivative.
Tap keys(const Tensor& part, int64_t k) {
  constexpr double kA = -0.75;
  double sign = k <= 0 ? 1.0 : -1.0;
  Tensor d = scaled(shifted(part, -static_cast<double>(k)), sign);
  auto poly = [&](double a, double b, double c, double e) {
    Tensor sum = shifted(scaled(d, a), b);
    sum = shifted(ops::mul(sum, d), c);
    return shifted(ops::mul(sum, d), e);
  };
  bool near = k == 0 || k == 1;
  if (near) {
    return {{},
            poly(kA + 2, -(kA + 3), 0, 1),
            scaled(poly(0, 3 * (kA + 2), -2 * (kA + 3), 0), sign)};
  }
  return {{},
          poly(kA, -5 * kA, 8 * kA, -4 * kA),
          scaled(poly(0, 3 * kA, -10 * kA, 8 * kA), sign)};
}

std::vector<Tap> axis_taps(const Tensor& coordinate,
                           int64_t size,
                           const Sampling& how) {
  Places pixels = pixels_of(coordinate, size, how.align_corners);
  std::vector<Tap> taps;
  if (how.interpolation == Sampling::kCubic) {
    Tensor floor = ops::floor(pixels.at), part = ops::sub(pixels.at, floor);
    for (int64_t k = -1; k <= 2; ++k) {
      Tap tap = keys(part, k);
      Tensor at = shifted(floor, static_cast<double>(k));
      tap.at = inside({at, pixels.slope}, size, how).at;
      tap.slope = ops::mul(tap.slope, pixels.slope);
      taps.push_back(std::move(tap));
    }
    return taps;
  }
  Places p = inside(pixels, size, how);
  if (how.interpolation == Sampling::kNearest) {
    taps.push_back(
        {ops::round(p.at), ops::ones_like(p.at), ops::zeros_like(p.at)});
    return taps;
  }
  Tensor floor = ops::floor(p.at), part = ops::sub(p.at, floor);
  taps.push_back({floor, shifted(ops::neg(part), 1), ops::neg(p.slope)});
  taps.push_back({shifted(floor, 1), part, p.slope});
  return taps;
}

// One of the elements that each point reads: its place in the image, its weight
// and that weight's slopes, all zero where the element lies outside.
struct Reading {
  Tensor at, weight;
  std::vector<Tensor> slopes;
};

Reading reading(const std::vector<Tap>& taps, IntArrayRef sizes) {
  Tensor at, out;
  for (size_t d = 0; d < taps.size(); ++d) {
    const Tensor& here = taps[d].at;
    Tensor beyond = ops::logical_not(ops::logical_and(
        ops::ge(here, Scalar(0.0)), ops::lt(here, Scalar(sizes[d]))));
    out = d == 0 ? beyond : ops::logical_or(out, beyond);
    double size = static_cast<double>(sizes[d]);
    at = d == 0 ? here : ops::add(scaled(at, size), here);
  }
  auto product = [&](size_t of_slope) {
    Tensor all;
    for (size_t d = 0; d < taps.size(); ++d) {
      const Tensor& factor = d == of_slope ? taps[d].slope : taps[d].weight;
      all = d == 0 ? factor : ops::mul(all, factor);
    }
    return ops::masked_fill(all, out, Scalar(0));
  };
  Reading r{ops::_to_copy(ops::masked_fill(at, out, Scalar(0)), kLong),
            product(taps.size()),
            {}};
  for (size_t d = 0; d < taps.size(); ++d) r.slopes.push_back(product(d));
  return r;
}

// All readings: each tap of an axis with each of the others.
std::vector<Reading> readings(const Tensor& grid,
                              IntArrayRef sizes,
                              const Sampling& how) {
  std::vector<std::vector<Tap>> chosen{{}};
  auto rank = static_cast<int64_t>(sizes.size());
  for (int64_t d = 0; d < rank; ++d) {
    // The grid names the last axis first.
    Tensor coordinate = ops::select(grid, -1, rank - 1 - d);
    std::vector<std::vector<Tap>> longer;
    for (const Tap& tap : axis_taps(coordinate, sizes[d], how)) {
      for (std::vector<Tap> taps : chosen) {
        taps.push_back(tap);
        longer.push_back(std::move(taps));
      }
    }
    chosen = std::move(longer);
  }
  std::vector<Reading> all;
  for (const auto& taps : chosen) all.push_back(reading(taps, sizes));
  return all;
}

std::tuple<Tensor, Tensor> gradients(const Tensor& grad,
                                     const Tensor& input,
                                     const Tensor& grid,
                                     const Sampling& how,
                                     ArrayRef<bool> wanted) {
  int64_t n = input.sizes()[0], c = input.sizes()[1], middle[] = {1};
  int64_t rank = input.dim() - 2, plane = 1, count = 1;
  for (int64_t d = 0; d < rank; ++d) {
    plane *= input.sizes()[d + 2], count *= grid.sizes()[d + 1];
  }
  ScalarType type = input.dtype();
  Tensor dy = ops::reshape(grad, {n, c, count}),
         x = ops::reshape(input, {n, c, plane});
  Tensor points = ops::_to_copy(ops::reshape(grid, {n, count, rank}), kDouble);
  Tensor gi = ops::zeros_like(x);
  std::vector<Tensor> sums(static_cast<size_t>(rank));
  for (const Reading& r : readings(points, input.sizes().slice(2), how)) {
    Tensor at = ops::expand(ops::unsqueeze(r.at, 1), dy.sizes());
    if (wanted[0]) {
      Tensor weight = ops::unsqueeze(ops::_to_copy(r.weight, type), 1);
      gi = ops::scatter_add(gi, 2, at, ops::mul(dy, weight));
    }
    if (!wanted[1]) continue;
    Tensor moved = ops::sum(
        ops::mul(ops::gather(x, 2, at), dy), IntArrayRef(middle), false);
    for (size_t d = 0; d < sums.size(); ++d) {
      // The grid names the last axis first.
      Tensor& sum = sums[sums.size() - 1 - d];
      Tensor part = ops::mul(moved, ops::_to_copy(r.slopes[d], type));
      sum = sum.defined() ? ops::add(sum, part) : part;
    }
  }
  Tensor gg;
  if (wanted[1]) gg = ops::reshape(ops::stack(sums, -1), grid.sizes());
  return {wanted[0] ? ops::reshape(gi, input.sizes()) : Tensor(), gg};
}

}  // namespace

std::tuple<Tensor, Tensor> grid_sampler_2d_backward_means(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& grid,
    int64_t mode,
    int64_t beyond,
    bool corners,
    ArrayRef<bool> wanted) {
  return gradients(grad, input, grid, {mode, beyond, corners}, wanted);
}

std::tuple<Tensor, Tensor> grid_sampler_3d_backward_means(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& grid,
    int64_t mode,
    int64_t beyond,
    bool corners,
    ArrayRef<bool> wanted) {
  return gradients(grad, input, grid, {mode, beyond, corners}, wanted);
}

}  // namespace taeda::native
