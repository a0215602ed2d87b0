// Gradients of sampled images, histograms, vectors of random shares.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/counting.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/gen/ops/_standard_gamma.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/item.h>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Pair = std::tuple<Tensor, Tensor>;

Tensor as_dtype(const Tensor& t, ScalarType dtype) {
  if (t.dtype() == dtype) return t;
  Tensor made = make_tensor("to", t.sizes(), dtype, t.device());
  copy_into(made, t);
  return made;
}

// Gradients of 16 bits are added up as float.
template <int kAxes>
Pair grid_sampler_backward(const Tensor& grad_output,
                           const Tensor& input,
                           const Tensor& grid,
                           int64_t interpolation,
                           int64_t beyond,
                           bool corners,
                           ArrayRef<bool> wanted) {
  bool small = input.dtype() == kHalf || input.dtype() == kBFloat16;
  ScalarType wide = small ? kFloat : input.dtype();
  Tensor grad_input, grad_grid;
  if (wanted[0]) {
    grad_input =
        make_tensor("grid_sampler", input.sizes(), wide, input.device());
    fill_with(grad_input, 0);
  }
  if (wanted[1]) {
    grad_grid =
        make_tensor("grid_sampler", grid.sizes(), grid.dtype(), grid.device());
  }
  if (wanted[0] || wanted[1]) {
    constexpr const char* kBody =
        kAxes == 2 ? "sampled_back_at<2>(g, i);" : "sampled_back_at<3>(g, i);";
    DeviceCall("grid_sampler", "sampling", kBody)
        .number("interpolation_mode", interpolation)
        .number("padding_mode", beyond)
        .number("align_corners", corners ? 1 : 0)
        .tensor("grad_output", grad_output)
        .tensor("input", input)
        .tensor("grid", grid)
        .tensor("grad_input", grad_input)
        .tensor("grad_grid", grad_grid)
        .run(grid.numel() / kAxes);
  }
  if (wanted[0]) grad_input = as_dtype(grad_input, input.dtype());
  return {grad_input, grad_grid};
}

double item_of(const Tensor& t) { return ops::item(t).to_double(); }

// Waits for the device where the range is that of the elements.
Tensor histc(const Tensor& self,
             int64_t bins,
             const Scalar& min,
             const Scalar& max) {
  double low = min.to_double(), high = max.to_double();
  if (low == high && self.numel() > 0) {
    low = item_of(ops::amin(self, IntArrayRef{}));
    high = item_of(ops::amax(self, IntArrayRef{}));
  }
  native::settle_histc_range(self.dtype(), low, high);
  Tensor counts = make_tensor("histc", {bins}, kLong, self.device());
  fill_with(counts, 0);
  DeviceCall("histc", "counting", "count_at(g, i);")
      .number("low", low)
      .number("high", high)
      .tensor("self", self)
      .tensor("result", counts)
      .run(self.numel());
  return as_dtype(counts, self.dtype());
}

Tensor sample_dirichlet(const Tensor& self,
                        const std::optional<Generator>& generator) {
  Tensor drawn = ops::_standard_gamma(as_dtype(self, kDouble), generator);
  Tensor out = make_tensor(
      "_sample_dirichlet", self.sizes(), self.dtype(), self.device());
  DeviceCall("_sample_dirichlet", "distributions", "dirichlet_row(g, i);")
      .tensor("drawn", drawn)
      .tensor("result", out)
      .run(out.numel() == 0 ? 0 : out.numel() / out.size(-1));
  return out;
}

}  // namespace

Definitions sampling_definitions() {
  static const Definition all[] = {
      defined_as("grid_sampler_2d_backward", grid_sampler_backward<2>),
      defined_as("grid_sampler_3d_backward", grid_sampler_backward<3>),
      defined_as("histc", histc),
      defined_as("_sample_dirichlet", sample_dirichlet),
  };
  return all;
}

}  // namespace taeda::cuda
