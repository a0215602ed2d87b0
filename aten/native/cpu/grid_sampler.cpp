// Images and volumes sampled at the places of a grid: the elements around each
// place, weighted.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/grid_sampler.h>
#include <taeda/aten/native/grid_sampler.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/grid_sampler_2d.h>
#include <taeda/gen/native/grid_sampler_2d_backward.h>
#include <taeda/gen/native/grid_sampler_3d.h>
#include <taeda/gen/native/grid_sampler_3d_backward.h>

#include <algorithm>

namespace taeda::native {

namespace {

template <size_t D>
GridJob make_job(const Tensor& input, const Tensor& grid, const Sampling& how) {
  GridJob job{how, {}, input.sizes()[1], 1, 1};
  for (size_t d = 0; d < D; ++d) {
    job.plane *= job.sizes[d] = input.sizes()[d + 2];
    job.places *= grid.sizes()[d + 1];
  }
  return job;
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
  GridJob job = make_job<D>(input, grid, how);
  int64_t batch = input.sizes()[0], axes = static_cast<int64_t>(D);
  visit_sampled(type, [&](auto tag) {
    using T = decltype(tag);
    const GridKernels<T>& kernels = TAEDA_ISA_TABLE(kGridTable).of(tag, D);
    parallel_for(0, batch * job.places, 256, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        int64_t n = begin / job.places, p = begin % job.places;
        int64_t count = std::min(end - begin, job.places - p);
        kernels.sample(
            job,
            where.const_data<T>() + begin * axes,
            x.const_data<T>() + n * job.channels * job.plane,
            wide.mutable_data<T>() + n * job.channels * job.places + p,
            count);
        begin += count;
      }
    });
  });
  if (!wide.is_same(out)) copy_into(out, wide);
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
  GridJob job = make_job<D>(input, grid, how);
  int64_t block = job.channels * job.plane;
  visit_sampled(type, [&](auto tag) {
    using T = decltype(tag);
    const GridKernels<T>& kernels = TAEDA_ISA_TABLE(kGridTable).of(tag, D);
    // One batch element at a time: its places add into the same image.
    parallel_for(0, input.sizes()[0], 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        int64_t at = n * job.places * static_cast<int64_t>(D);
        kernels.gradients(
            job,
            where.const_data<T>() + at,
            x.const_data<T>() + n * block,
            g.const_data<T>() + n * job.channels * job.places,
            dx.defined() ? dx.mutable_data<T>() + n * block : nullptr,
            dgrid.defined() ? dgrid.mutable_data<T>() + at : nullptr,
            job.places);
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
