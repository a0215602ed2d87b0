// Activations with options, over pointwise records; what they refuse.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/formula_support.h>
#include <taeda/gen/native/_prelu_kernel_backward.h>
#include <taeda/gen/native/celu.h>
#include <taeda/gen/native/gelu.h>
#include <taeda/gen/native/gelu_backward.h>
#include <taeda/gen/native/hardtanh.h>
#include <taeda/gen/native/log_sigmoid_forward.h>
#include <taeda/gen/native/prelu.h>
#include <taeda/gen/native/relu.h>
#include <taeda/gen/native/softshrink.h>
#include <taeda/gen/ops/_prelu_kernel.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/log_sigmoid.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/where.h>

#include <limits>

namespace taeda::native {

namespace {

void check_approximate(std::string_view approximate) {
  TAEDA_CHECK(approximate == "none" || approximate == "tanh",
              "gelu: approximate argument must be either none or tanh. Got '",
              approximate,
              "'");
}

}  // namespace

void check_relu(const Tensor& self) {
  TAEDA_CHECK(self.dtype() != kBool,
              "relu: Boolean inputs not supported for relu");
}

void check_hardtanh(const Tensor& self,
                    const Scalar& min_val,
                    const Scalar& max_val) {
  TAEDA_CHECK(self.dtype() != kBool,
              "hardtanh: Bool inputs not supported for hardtanh");
  bool negative = min_val.to_double() < 0 || max_val.to_double() < 0;
  TAEDA_CHECK(self.dtype() != kByte || !negative,
              "hardtanh: cannot do hardtanh on an unsigned type with negative "
              "limits [",
              min_val,
              ", ",
              max_val,
              "]");
}

void check_softshrink(const Tensor& self, const Scalar& lambd) {
  // Integers are refused by their dtype.
  const double most = is_integral(self.dtype(), /*include_bool=*/true)
                          ? std::numeric_limits<double>::max()
                          : limit_or(std::nullopt, self.dtype(), 1.0);
  TAEDA_CHECK(lambd.to_double() >= 0 && lambd.to_double() <= most,
              "softshrink: lambda must be in range [0, ",
              most,
              "] for input dtype ",
              self.dtype(),
              ", but found ",
              lambd);
}

void check_celu(const Tensor& self, const Scalar& alpha) {
  (void)self;
  TAEDA_CHECK(!alpha.equal(0.0),
              "celu: ZeroDivisionError: alpha cannot be 0 for CELU");
}

void check_gelu(const Tensor& self, std::string_view approximate) {
  (void)self;
  check_approximate(approximate);
}
void check_gelu_backward(const Tensor& grad_output,
                         const Tensor& self,
                         std::string_view approximate) {
  (void)grad_output;
  (void)self;
  check_approximate(approximate);
}

Tensor prelu(const Tensor& self, const Tensor& weight) {
  TAEDA_CHECK(self.dtype() == weight.dtype(),
              "prelu: Type promoting not supported. Got ",
              self.dtype(),
              " and ",
              weight.dtype());
  TAEDA_CHECK(weight.dim() <= 1,
              "prelu: Expected `weight` to be a scalar or 1D tensor, but got: "
              "ndim = ",
              weight.dim());
  if (weight.numel() == 1) {
    return ops::_prelu_kernel(
        self, weight.dim() == 0 ? weight : ops::reshape(weight, IntArrayRef()));
  }
  TAEDA_CHECK(self.dim() > 0, "prelu: Not allow zero-dim input tensor.");
  int64_t channels = self.dim() > 1 ? self.size(1) : 1;
  TAEDA_CHECK(channels == weight.numel(),
              "prelu: Mismatch of parameter numbers and input channel size. "
              "Found parameter numbers = ",
              weight.numel(),
              " and channel size = ",
              channels,
              ".");
  DimVector shape(static_cast<size_t>(self.dim()), 1);
  if (self.dim() > 1) shape[1] = channels;
  return ops::_prelu_kernel(self, ops::reshape(weight, shape));
}

std::tuple<Tensor, Tensor> _prelu_kernel_backward(const Tensor& grad_output,
                                                  const Tensor& self,
                                                  const Tensor& weight) {
  Tensor positive = ops::gt(self, Scalar(0));
  return {ops::where(positive, grad_output, ops::mul(weight, grad_output)),
          ops::where(positive, Scalar(0.0), ops::mul(self, grad_output))};
}

std::tuple<Tensor, Tensor> log_sigmoid_forward(const Tensor& self) {
  return {ops::log_sigmoid(self), ops::exp(ops::neg(ops::abs(self)))};
}

}  // namespace taeda::native
