// softmax, log_softmax and their derivatives: shapes and dtypes.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/gen/native/_log_softmax.h>
#include <taeda/gen/native/_log_softmax_backward_data.h>
#include <taeda/gen/native/_softmax.h>
#include <taeda/gen/native/_softmax_backward_data.h>
#include <taeda/gen/native/log_softmax.h>
#include <taeda/gen/native/softmax.h>
#include <taeda/gen/ops/_log_softmax.h>
#include <taeda/gen/ops/_softmax.h>
#include <taeda/gen/ops/_to_copy.h>

namespace taeda::native {

namespace {

template <class I>
void plan_softmax(std::string_view op,
                  const Spec<I>& self,
                  int64_t dim,
                  bool half_to_float,
                  Plan<I>& plan) {
  wrap_dim(dim, self.dim());
  TAEDA_CHECK(
      !half_to_float,
      op,
      ": softmax with half to float conversion is not supported on CPU");
  if (!self.is_floating_point() || is_float8(self.dtype())) {
    not_implemented_for(op, self.dtype());
  }
  plan.set(0, self.sizes(), self.dtype());
}

}  // namespace

template <class I>
void softmax_shape(const Spec<I>& self,
                   int64_t dim,
                   bool half_to_float,
                   Plan<I>& plan) {
  plan_softmax("softmax", self, dim, half_to_float, plan);
}
TAEDA_SHAPE(softmax_shape);

template <class I>
void log_softmax_shape(const Spec<I>& self,
                       int64_t dim,
                       bool half_to_float,
                       Plan<I>& plan) {
  plan_softmax("log_softmax", self, dim, half_to_float, plan);
}
TAEDA_SHAPE(log_softmax_shape);

template <class I>
void softmax_backward_shape(const Spec<I>& grad_output,
                            const Spec<I>& output,
                            int64_t dim,
                            ScalarType input_dtype,
                            Plan<I>& plan) {
  wrap_dim(dim, output.dim());
  constexpr std::string_view kName = "softmax_backward";
  check_shape(kName, "grad_output", grad_output, output.sizes());
  for (ScalarType t : {grad_output.dtype(), output.dtype()}) {
    if (!is_floating(t) || is_float8(t)) not_implemented_for(kName, t);
  }
  plan.set(0, grad_output.sizes(), input_dtype);
}
TAEDA_SHAPE(softmax_backward_shape);

namespace {

Tensor as_dtype(const Tensor& self, std::optional<ScalarType> dtype) {
  return dtype && *dtype != self.dtype() ? ops::_to_copy(self, dtype) : self;
}

}  // namespace

Tensor softmax(const Tensor& self,
               int64_t dim,
               std::optional<ScalarType> dtype) {
  return ops::_softmax(as_dtype(self, dtype), dim, false);
}
Tensor log_softmax(const Tensor& self,
                   int64_t dim,
                   std::optional<ScalarType> dtype) {
  return ops::_log_softmax(as_dtype(self, dtype), dim, false);
}

}  // namespace taeda::native
