// Scaled gradients of mixed precision, norms of lists, and vectors of random
// shares.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/gen/ops/_standard_gamma.h>
#include <taeda/gen/ops/linalg_vector_norm.h>

#include <vector>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

void check_one(const Tensor& t, ScalarType dtype, const char* name) {
  TAEDA_CHECK(
      t.numel() == 1, name, " must be a 1-element tensor, got ", t.sizes());
  TAEDA_CHECK(t.dtype() == dtype,
              name,
              dtype == kInt ? " must be an int" : " must be a float",
              " tensor, got ",
              t.dtype());
}

// Waits for nothing: the flag is written and the factor read on the device.
void unscale(TensorList self,
             const Tensor& found_inf,
             const Tensor& inv_scale) {
  constexpr const char* kName = "_amp_foreach_non_finite_check_and_unscale_";
  check_one(found_inf, kFloat, "found_inf");
  check_one(inv_scale, kFloat, "inv_scale");
  for (const Tensor& grad : self) {
    TAEDA_CHECK_AS(NotImplemented,
                   is_floating(grad.dtype()),
                   kName,
                   ": not implemented for '",
                   grad.dtype(),
                   "'");
    DeviceCall(kName, "scaling", "unscale_at(g, i);")
        .tensor("inv_scale", inv_scale)
        .tensor("found_inf", found_inf)
        .tensor("result", grad)
        .run(grad.numel());
    grad.impl()->bump_version();
  }
  found_inf.impl()->bump_version();
}

void update_scale(const Tensor& self,
                  const Tensor& growth_tracker,
                  const Tensor& found_inf,
                  double growth,
                  double backoff,
                  int64_t interval) {
  check_one(self, kFloat, "current_scale");
  check_one(growth_tracker, kInt, "growth_tracker");
  check_one(found_inf, kFloat, "found_inf");
  DeviceCall("_amp_update_scale_", "scaling", "update_scale(g);")
      .number("growth", growth)
      .number("backoff", backoff)
      .number("interval", interval)
      .tensor("found_inf", found_inf)
      .tensor("steps", growth_tracker)
      .tensor("scale", self)
      .run(1);
  self.impl()->bump_version();
  growth_tracker.impl()->bump_version();
}

std::vector<Tensor> foreach_norm(TensorList self,
                                 const Scalar& ord,
                                 std::optional<ScalarType> dtype) {
  std::vector<Tensor> norms;
  for (const Tensor& t : self) {
    norms.push_back(ops::linalg_vector_norm(
        t, ord, std::nullopt, /*keepdim=*/false, dtype));
  }
  return norms;
}

Tensor sample_dirichlet(const Tensor& self,
                        const std::optional<Generator>& generator) {
  Tensor shapes = make_tensor("to", self.sizes(), kDouble, self.device());
  copy_into(shapes, self);
  Tensor drawn = ops::_standard_gamma(shapes, generator);
  Tensor out = make_tensor(
      "_sample_dirichlet", self.sizes(), self.dtype(), self.device());
  DeviceCall("_sample_dirichlet", "distributions", "dirichlet_row(g, i);")
      .tensor("drawn", drawn)
      .tensor("result", out)
      .run(out.numel() == 0 ? 0 : out.numel() / out.size(-1));
  return out;
}

}  // namespace

Definitions scaling_definitions() {
  static const Definition all[] = {
      defined_as("_amp_foreach_non_finite_check_and_unscale_", unscale),
      defined_as("_amp_update_scale_", update_scale),
      defined_as("_foreach_norm.Scalar", foreach_norm),
      defined_as("_sample_dirichlet", sample_dirichlet),
  };
  return all;
}

}  // namespace taeda::cuda
