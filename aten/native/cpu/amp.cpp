// What GradScaler does to gradients and to the factor of the loss.
#include <taeda/aten/iter/pointwise.h>
#include <taeda/gen/native/_amp_foreach_non_finite_check_and_unscale_.h>
#include <taeda/gen/native/_amp_update_scale_.h>
#include <taeda/gen/ops/fill.h>
#include <taeda/gen/ops/linalg_vector_norm.h>
#include <taeda/gen/ops/mul.h>

#include <cmath>
#include <limits>

namespace taeda::native {

namespace {

double one_element(const Tensor& t, ScalarType dtype, std::string_view name) {
  TAEDA_CHECK(
      t.numel() == 1, name, " must be a 1-element tensor, got ", t.sizes());
  std::string_view kind = dtype == kInt ? "an int" : "a float";
  TAEDA_CHECK(
      t.dtype() == dtype, name, " must be ", kind, " tensor, got ", t.dtype());
  return Scalar::load(dtype, t.const_raw_data()).to_double();
}

// The largest magnitude tells: infinity is the largest and NaN is kept.
bool is_finite(const Tensor& t) {
  if (t.numel() == 0) return true;
  Tensor largest =
      ops::linalg_vector_norm(t, std::numeric_limits<double>::infinity());
  Scalar value = Scalar::load(largest.dtype(), largest.const_raw_data());
  return std::isfinite(value.to_double());
}

}  // namespace

void _amp_foreach_non_finite_check_and_unscale_(TensorList self,
                                                const Tensor& found_inf,
                                                const Tensor& inv_scale) {
  one_element(found_inf, kFloat, "found_inf");
  double factor = one_element(inv_scale, kFloat, "inv_scale");
  for (const Tensor& grad : self) {
    if (!is_floating(grad.dtype())) {
      not_implemented_for("_amp_foreach_non_finite_check_and_unscale_",
                          grad.dtype());
    }
    if (!is_finite(grad)) ops::fill_(found_inf, 1);
    ops::mul_(grad, factor);
  }
}

void _amp_update_scale_(const Tensor& self,
                        const Tensor& growth_tracker,
                        const Tensor& found_inf,
                        double scale_growth_factor,
                        double scale_backoff_factor,
                        int64_t growth_interval) {
  double scale = one_element(self, kFloat, "current_scale");
  double steps = one_element(growth_tracker, kInt, "growth_tracker") + 1;
  if (one_element(found_inf, kFloat, "found_inf") != 0) {
    ops::fill_(self, scale * scale_backoff_factor);
    steps = 0;
  } else if (steps == static_cast<double>(growth_interval)) {
    auto grown = static_cast<float>(scale * scale_growth_factor);
    if (std::isfinite(grown)) ops::fill_(self, grown);
    steps = 0;
  }
  ops::fill_(growth_tracker, steps);
}

}  // namespace taeda::native
