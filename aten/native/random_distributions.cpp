// Random numbers whose distribution is given by tensors (normal, poisson,
// binomial, multinomial, gamma, Dirichlet): shapes.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/random.h>
#include <taeda/gen/native/_dirichlet_grad.h>
#include <taeda/gen/native/_sample_dirichlet.h>
#include <taeda/gen/native/_standard_gamma.h>
#include <taeda/gen/native/binomial.h>
#include <taeda/gen/native/multinomial.h>
#include <taeda/gen/native/normal.h>
#include <taeda/gen/native/normal_functional.h>
#include <taeda/gen/native/poisson.h>
#include <taeda/gen/ops/_beta_quantile_slope.h>
#include <taeda/gen/ops/sub.h>

namespace taeda::native {

// normal ---------------------------------------------------------------------

namespace {

template <class I>
void check_real_std(const Spec<I>& std) {
  TAEDA_CHECK(!std.is_complex(),
              "normal expects standard deviation to be non-complex");
}

}  // namespace

template <class I>
void normal_tensor_float_shape(const Spec<I>& mean,
                               double std,
                               const MaybeGenerator&,
                               Plan<I>& plan) {
  check_std(std);
  plan.set(0, mean.sizes(), mean.dtype());
}
TAEDA_SHAPE(normal_tensor_float_shape);

template <class I>
void normal_float_tensor_shape(double,
                               const Spec<I>& std,
                               const MaybeGenerator&,
                               Plan<I>& plan) {
  check_real_std(std);
  plan.set(0, std.sizes(), std.dtype());
}
TAEDA_SHAPE(normal_float_tensor_shape);

template <class I>
void normal_tensor_tensor_shape(const Spec<I>& mean,
                                const Spec<I>& std,
                                const MaybeGenerator&,
                                Plan<I>& plan) {
  check_real_std(std);
  plan.set(0,
           broadcast_shapes<I>("normal", mean.sizes(), std.sizes()),
           mean.dtype());
}
TAEDA_SHAPE(normal_tensor_tensor_shape);

template <class I>
void normal_float_float_shape(double,
                              double std,
                              ArrayRef<I> size,
                              const MaybeGenerator&,
                              Dtype dtype,
                              MaybeLayout layout,
                              MaybeDevice,
                              MaybeBool,
                              Plan<I>& plan) {
  check_std(std);
  plan_size(plan, size, dtype.value_or(default_dtype()), layout);
}
TAEDA_SHAPE(normal_float_float_shape);

template <class I>
void normal_functional_shape(const Spec<I>& self,
                             double,
                             double std,
                             const MaybeGenerator&,
                             Plan<I>& plan) {
  check_std(std);
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(normal_functional_shape);

// PyTorch does not resize here.
template <class I>
void normal_tensor_float_out_shape(const Spec<I>&,
                                   double std,
                                   const MaybeGenerator&,
                                   const Spec<I>& out,
                                   Plan<I>& plan) {
  check_std(std);
  plan_into(plan, out.sizes(), out);
}
TAEDA_SHAPE(normal_tensor_float_out_shape);

template <class I>
void normal_float_tensor_out_shape(double,
                                   const Spec<I>& std,
                                   const MaybeGenerator&,
                                   const Spec<I>& out,
                                   Plan<I>& plan) {
  check_real_std(std);
  plan_into(plan, std.sizes(), out);
}
TAEDA_SHAPE(normal_float_tensor_out_shape);

template <class I>
void normal_tensor_tensor_out_shape(const Spec<I>& mean,
                                    const Spec<I>& std,
                                    const MaybeGenerator&,
                                    const Spec<I>& out,
                                    Plan<I>& plan) {
  check_real_std(std);
  plan_into<I>(
      plan, broadcast_shapes<I>("normal", mean.sizes(), std.sizes()), out);
}
TAEDA_SHAPE(normal_tensor_tensor_out_shape);

template <class I>
void normal_float_float_out_shape(double,
                                  double std,
                                  ArrayRef<I> size,
                                  const MaybeGenerator&,
                                  const Spec<I>& out,
                                  Plan<I>& plan) {
  check_std(std);
  plan_into(plan, size, out);
}
TAEDA_SHAPE(normal_float_float_out_shape);

// poisson, binomial ----------------------------------------------------------

template <class I>
void poisson_shape(const Spec<I>& self, const MaybeGenerator&, Plan<I>& plan) {
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(poisson_shape);

template <class I>
void binomial_shape(const Spec<I>& count,
                    const Spec<I>& prob,
                    const MaybeGenerator&,
                    Plan<I>& plan) {
  TAEDA_CHECK(count.dtype() == prob.dtype(),
              "binomial: Found dtype ",
              prob.dtype(),
              " but expected ",
              count.dtype());
  plan.set(0,
           broadcast_shapes<I>("binomial", count.sizes(), prob.sizes()),
           count.dtype());
}
TAEDA_SHAPE(binomial_shape);

template <class I>
void multinomial_shape(const Spec<I>& self,
                       I num_samples,
                       bool replacement,
                       const MaybeGenerator&,
                       Plan<I>& plan) {
  TAEDA_CHECK(self.dim() > 0 && self.dim() <= 2,
              "multinomial: prob_dist must be 1 or 2 dim, got ",
              self);
  TAEDA_CHECK(
      self.is_floating_point(),
      "multinomial only supports floating-point dtypes for input, got: ",
      self.dtype());
  TAEDA_CHECK(num_samples > 0,
              "multinomial: cannot sample n_sample <= 0 samples, got ",
              num_samples);
  TAEDA_CHECK(replacement || num_samples <= self.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without "
              "replacement");
  Dims<I> shape(self.sizes());
  shape.back() = num_samples;
  plan.set(0, shape, kLong);
}
TAEDA_SHAPE(multinomial_shape);

template <class I>
void standard_gamma_shape(const Spec<I>& self,
                          const MaybeGenerator&,
                          Plan<I>& plan) {
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(standard_gamma_shape);

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

Tensor dirichlet_grad(const Tensor& x,
                      const Tensor& alpha,
                      const Tensor& total) {
  return ops::_beta_quantile_slope(x, alpha, ops::sub(total, alpha, 1));
}

}  // namespace taeda::native
