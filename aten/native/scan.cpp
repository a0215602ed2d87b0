// cumsum, cumprod, logcumsumexp, cummax, cummin: shapes.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/exact_out.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/gen/native/_cumprod_backward.h>
#include <taeda/gen/native/_logcumsumexp_backward.h>
#include <taeda/gen/native/_reverse_cumsum.h>
#include <taeda/gen/native/cummax.h>
#include <taeda/gen/native/cummin.h>
#include <taeda/gen/native/cumprod.h>
#include <taeda/gen/native/cumsum.h>
#include <taeda/gen/native/logcumsumexp.h>
#include <taeda/gen/ops/cumprod.h>
#include <taeda/gen/ops/cumsum.h>

namespace taeda::native {

namespace {

template <class I>
void plan_scan(std::string_view op,
               const Spec<I>& self,
               int64_t dim,
               std::optional<ScalarType> dtype,
               Plan<I>& plan) {
  wrap_dim(dim, self.dim());
  ScalarType type = dtype ? *dtype : self.dtype();
  if (!dtype && is_integral(type, /*include_bool=*/true)) type = kLong;
  if (is_float8(type)) not_implemented_for(op, type);
  if (type == kBool) not_implemented_for(str_cat(op, "_out_cpu"), type);
  plan.set(0, self.sizes(), type);
}

}  // namespace

template <class I>
void cumsum_shape(const Spec<I>& self,
                  int64_t dim,
                  std::optional<ScalarType> dtype,
                  Plan<I>& plan) {
  plan_scan("cumsum", self, dim, dtype, plan);
}
TAEDA_SHAPE(cumsum_shape);

template <class I>
void reverse_cumsum_shape(const Spec<I>& self, int64_t dim, Plan<I>& plan) {
  wrap_dim(dim, self.dim());
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(reverse_cumsum_shape);

template <class I>
void cumprod_shape(const Spec<I>& self,
                   int64_t dim,
                   std::optional<ScalarType> dtype,
                   Plan<I>& plan) {
  plan_scan("cumprod", self, dim, dtype, plan);
}
TAEDA_SHAPE(cumprod_shape);

// Without a dtype the scan is done in that of `out`.
void cumsum_out(const Tensor& self,
                int64_t dim,
                std::optional<ScalarType> dtype,
                const Tensor& out) {
  ScalarType type = derived::dtype_into("cumsum", dtype, out);
  write_out("cumsum", ops::cumsum(self, dim, type), out);
}
void cumprod_out(const Tensor& self,
                 int64_t dim,
                 std::optional<ScalarType> dtype,
                 const Tensor& out) {
  ScalarType type = derived::dtype_into("cumprod", dtype, out);
  write_out("cumprod", ops::cumprod(self, dim, type), out);
}

template <class I>
void logcumsumexp_shape(const Spec<I>& self, int64_t dim, Plan<I>& plan) {
  wrap_dim(dim, self.dim());
  ScalarType t = self.dtype();
  bool known = (is_floating(t) && !is_float8(t)) || t == kComplexFloat ||
               t == kComplexDouble;
  if (!known) not_implemented_for("logcumsumexp", t);
  plan.set(0, self.sizes(), t);
}
TAEDA_SHAPE(logcumsumexp_shape);

template <class I>
void cumextremum_shape(const Spec<I>& self, int64_t dim, Plan<I>& plan) {
  wrap_dim(dim, self.dim());
  refuse_unordered("cummax", self.dtype());
  plan.set(0, self.sizes(), self.dtype());
  plan.set(1, self.sizes(), kLong);
}
TAEDA_SHAPE(cumextremum_shape);

// With p[k] the product of all elements before k, the result is p[k] s[k],
// where s[k] = grad[k] + self[k + 1] s[k + 1]: right where elements are 0.
template <class I>
void cumprod_backward_shape(const Spec<I>& grad,
                            const Spec<I>& self,
                            int64_t dim,
                            Plan<I>& plan) {
  check_shape("cumprod_backward", "grad", grad, self.sizes());
  wrap_dim(dim, self.dim());
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(cumprod_backward_shape);

// Totals never fall, so that no factor of s[k] = grad[k] + e^(total[k] -
// total[k + 1]) s[k + 1] exceeds 1; the result is e^(self[k] - total[k]) s[k].
template <class I>
void logcumsumexp_backward_shape(const Spec<I>& grad,
                                 const Spec<I>& self,
                                 const Spec<I>& result,
                                 int64_t dim,
                                 Plan<I>& plan) {
  check_shape("logcumsumexp_backward", "grad", grad, self.sizes());
  check_shape("logcumsumexp_backward", "result", result, self.sizes());
  wrap_dim(dim, self.dim());
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(logcumsumexp_backward_shape);

}  // namespace taeda::native
