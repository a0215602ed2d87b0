// Images and volumes sampled at the places of a grid (Jaderberg et al.,
// "Spatial Transformer Networks", 2015): shapes, and affine grids.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/grid_sampler.h>
#include <taeda/gen/native/affine_grid_generator.h>
#include <taeda/gen/native/affine_grid_generator_backward.h>
#include <taeda/gen/native/grid_sampler.h>
#include <taeda/gen/native/grid_sampler_2d.h>
#include <taeda/gen/native/grid_sampler_2d_backward.h>
#include <taeda/gen/native/grid_sampler_3d.h>
#include <taeda/gen/native/grid_sampler_3d_backward.h>
#include <taeda/gen/ops/bmm.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/grid_sampler_2d.h>
#include <taeda/gen/ops/grid_sampler_3d.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::native {

namespace {

template <size_t D, class T>
void check_grid(const T& input,
                const T& grid,
                int64_t interpolation,
                int64_t beyond) {
  auto check_dims = [&](bool fit) {
    TAEDA_CHECK(fit,
                "grid_sampler(): expected ",
                D + 2,
                "D input and grid with same number of dimensions, but got "
                "input with sizes ",
                input.sizes(),
                " and grid with sizes ",
                grid.sizes());
  };
  check_dims(input.dim() >= 2 && grid.dim() >= 1);
  TAEDA_CHECK(input.sizes()[0] == grid.sizes()[0],
              "grid_sampler(): expected grid and input to have same batch "
              "size, but got input with sizes ",
              input.sizes(),
              " and grid with sizes ",
              grid.sizes());
  TAEDA_CHECK(grid.sizes()[grid.dim() - 1] == input.dim() - 2,
              "grid_sampler(): expected grid to have size ",
              input.dim() - 2,
              " in last dimension, but got grid with sizes ",
              grid.sizes());
  check_dims(input.dim() == static_cast<int64_t>(D) + 2 &&
             grid.dim() == input.dim());
  for (size_t d = 2; d < D + 2; ++d) {
    TAEDA_CHECK(input.sizes()[d] > 0,
                "grid_sampler(): expected input to have non-empty spatial "
                "dimensions, but input has sizes ",
                input.sizes(),
                " with dimension ",
                d,
                " being empty");
  }
  TAEDA_CHECK(input.dtype() == grid.dtype(),
              "grid_sampler(): expected input and grid of the same dtype, but "
              "got ",
              input.dtype(),
              " and ",
              grid.dtype());
  TAEDA_CHECK(D == 2 || interpolation != Sampling::kCubic,
              "grid_sampler(): bicubic interpolation only supports 4D input");
  TAEDA_CHECK(interpolation >= Sampling::kLinear &&
                  interpolation <= Sampling::kCubic &&
                  beyond >= Sampling::kZeros && beyond <= Sampling::kReflection,
              "grid_sampler(): unknown mode ",
              interpolation,
              " or padding mode ",
              beyond);
}

template <size_t D, class I>
void sample_shape(const Spec<I>& input,
                  const Spec<I>& grid,
                  const Sampling& how,
                  Plan<I>& plan) {
  check_grid<D>(input, grid, how.interpolation, how.beyond);
  Dims<I> sizes{input.sizes()[0], input.sizes()[1]};
  for (size_t d = 0; d < D; ++d) sizes.push_back(grid.sizes()[d + 1]);
  plan.set(0, sizes, input.dtype());
}

template <size_t D, class I>
void sample_backward_shape(const Spec<I>& input,
                           const Spec<I>& grid,
                           const Sampling& how,
                           ArrayRef<bool> wanted,
                           Plan<I>& plan) {
  check_grid<D>(input, grid, how.interpolation, how.beyond);
  if (wanted[0]) plan.set(0, input.sizes(), input.dtype());
  if (wanted[1]) plan.set(1, grid.sizes(), grid.dtype());
}

}  // namespace

#define TAEDA_GRID_SAMPLER(D)                                         \
  template <class I>                                                  \
  void grid_sampler_##D##d_shape(const Spec<I>& input,                \
                                 const Spec<I>& grid,                 \
                                 int64_t mode,                        \
                                 int64_t beyond,                      \
                                 bool corners,                        \
                                 Plan<I>& plan) {                     \
    sample_shape<D>(input, grid, {mode, beyond, corners}, plan);      \
  }                                                                   \
  TAEDA_SHAPE(grid_sampler_##D##d_shape);                             \
  template <class I>                                                  \
  void grid_sampler_##D##d_backward_shape(const Spec<I>&,             \
                                          const Spec<I>& input,       \
                                          const Spec<I>& grid,        \
                                          int64_t mode,               \
                                          int64_t beyond,             \
                                          bool corners,               \
                                          ArrayRef<bool> output_mask, \
                                          Plan<I>& plan) {            \
    sample_backward_shape<D>(                                         \
        input, grid, {mode, beyond, corners}, output_mask, plan);     \
  }                                                                   \
  TAEDA_SHAPE(grid_sampler_##D##d_backward_shape);
TAEDA_GRID_SAMPLER(2)
TAEDA_GRID_SAMPLER(3)
#undef TAEDA_GRID_SAMPLER

Tensor grid_sampler(const Tensor& input,
                    const Tensor& grid,
                    int64_t interpolation_mode,
                    int64_t padding_mode,
                    bool align_corners) {
  if (input.dim() == 5 && grid.dim() == 5) {
    return ops::grid_sampler_3d(
        input, grid, interpolation_mode, padding_mode, align_corners);
  }
  return ops::grid_sampler_2d(
      input, grid, interpolation_mode, padding_mode, align_corners);
}

namespace {

// n places from -1 to 1: the corners, or the centres of n equal parts.
double place_of(int64_t i, int64_t n, bool align_corners) {
  if (n <= 1) return 0;
  double at = -1 + 2 * static_cast<double>(i) / static_cast<double>(n - 1);
  if (align_corners) return at;
  return at * static_cast<double>(n - 1) / static_cast<double>(n);
}

// Homogeneous coordinates of all places, x first: [n, places, dims + 1].
Tensor places_of_grid(ArrayRef<int64_t> size,
                      bool align_corners,
                      ScalarType dtype) {
  TAEDA_CHECK(size.size() == 4 || size.size() == 5,
              "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) "
              "inputs, got size ",
              size);
  int64_t dims = static_cast<int64_t>(size.size()) - 2, places = 1;
  for (int64_t d = 0; d < dims; ++d) places *= size[static_cast<size_t>(d) + 2];
  Tensor base = make_tensor("affine_grid", {places, dims + 1}, kDouble);
  double* at = base.mutable_data<double>();
  for (int64_t i = 0; i < places; ++i) {
    int64_t rest = i;
    for (int64_t d = 0; d < dims; ++d) {
      int64_t n = size[static_cast<size_t>(dims + 1 - d)];
      *at++ = place_of(rest % n, n, align_corners);
      rest /= n;
    }
    *at++ = 1;
  }
  return ops::expand(cast(base, dtype), {size[0], places, dims + 1}, false);
}

}  // namespace

Tensor affine_grid_generator(const Tensor& theta,
                             ArrayRef<int64_t> size,
                             bool align_corners) {
  Tensor base = places_of_grid(size, align_corners, theta.dtype());
  Tensor grid = ops::bmm(base, ops::transpose(theta, 1, 2));
  DimVector shape(size);
  shape.erase(shape.begin() + 1);
  shape.push_back(static_cast<int64_t>(size.size()) - 2);
  return ops::reshape(grid, shape);
}

Tensor affine_grid_generator_backward(const Tensor& grad,
                                      ArrayRef<int64_t> size,
                                      bool align_corners) {
  Tensor base = places_of_grid(size, align_corners, grad.dtype());
  int64_t dims = base.size(2) - 1;
  Tensor rows = ops::reshape(grad, {size[0], base.size(1), dims});
  return ops::bmm(ops::transpose(rows, 1, 2), base);
}

}  // namespace taeda::native
