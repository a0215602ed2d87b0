// Gamma and Dirichlet random numbers, and their derivatives by the parameters.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cpu/distribution_samplers.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/random.h>
#include <taeda/gen/native/_dirichlet_grad.h>
#include <taeda/gen/native/_sample_dirichlet.h>
#include <taeda/gen/native/_standard_gamma.h>
#include <taeda/gen/ops/_beta_quantile_slope.h>
#include <taeda/gen/ops/sub.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace taeda::native {

template <class I>
void standard_gamma_shape(const Spec<I>& self,
                          const MaybeGenerator&,
                          Plan<I>& plan) {
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(standard_gamma_shape);

void standard_gamma_cpu(const Tensor& self,
                        const MaybeGenerator& generator,
                        const Tensor& out) {
  Tensor shapes = contiguous(self);
  Tensor drawn = make_tensor("_standard_gamma", self.sizes(), self.dtype());
  {
    LockedGenerator locked(generator);
    visit_floating("gamma_cpu", self.dtype(), [&](auto tag) {
      using T = decltype(tag);
      fill_standard_gamma<T>(drawn.mutable_data<T>(),
                             1,
                             shapes.const_data<T>(),
                             1,
                             drawn.numel(),
                             *locked);
    });
  }
  copy_into(out, drawn);
}

namespace {

// Rows of gamma numbers become rows that sum to 1 and stay inside (0, 1) in T,
// so that logarithms of a sample and of its complement are finite.
template <class T>
void normalise_rows(const double* drawn, T* out, int64_t rows, int64_t width) {
  const double largest = std::is_same_v<T, BFloat16> ? 1 - 0x1p-8
                         : std::is_same_v<T, Half>   ? 1 - 0x1p-11
                         : std::is_same_v<T, float>  ? 1 - 0x1p-24
                                                     : 1 - 0x1p-53;
  const double least = std::is_same_v<T, Half> ? 0x1p-14
                       : std::is_same_v<T, double>
                           ? std::numeric_limits<double>::min()
                           : double{std::numeric_limits<float>::min()};
  for (int64_t row = 0; row < rows; ++row, drawn += width, out += width) {
    double sum = 0;
    for (int64_t k = 0; k < width; ++k) sum += drawn[k];
    for (int64_t k = 0; k < width; ++k) {
      out[k] = static_cast<T>(std::clamp(drawn[k] / sum, least, largest));
    }
  }
}

}  // namespace

template <class I>
void sample_dirichlet_shape(const Spec<I>& self,
                            const MaybeGenerator&,
                            Plan<I>& plan) {
  TAEDA_CHECK(self.dim() > 0,
              "_sample_dirichlet: expected concentrations along a dim, got ",
              self);
  if (!is_floating(self.dtype()) || is_float8(self.dtype())) {
    not_implemented_for("dirichlet", self.dtype());
  }
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(sample_dirichlet_shape);

void sample_dirichlet_cpu(const Tensor& self,
                          const MaybeGenerator& generator,
                          const Tensor& out) {
  if (out.numel() == 0) return;
  // Small concentrations give numbers far below the least float.
  Tensor shapes = contiguous_as(self, kDouble);
  Tensor drawn = make_tensor("_sample_dirichlet", self.sizes(), kDouble);
  double* numbers = drawn.mutable_data<double>();
  {
    LockedGenerator locked(generator);
    fill_standard_gamma<double>(
        numbers, 1, shapes.const_data<double>(), 1, drawn.numel(), *locked);
  }
  const int64_t width = self.size(-1);
  visit_floating("dirichlet", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    normalise_rows<T>(
        numbers, out.mutable_data<T>(), drawn.numel() / width, width);
  });
}

Tensor dirichlet_grad(const Tensor& x,
                      const Tensor& alpha,
                      const Tensor& total) {
  return ops::_beta_quantile_slope(x, alpha, ops::sub(total, alpha, 1));
}

}  // namespace taeda::native
