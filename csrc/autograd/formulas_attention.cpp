#include <taeda/csrc/autograd/formulas_attention.h>

#include <taeda/aten/native/attention_scale.h>
#include <taeda/gen/ops/_scaled_dot_product_attention_math.h>
#include <taeda/gen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::autograd {

namespace {
Tensor turned(const Tensor& t) { return ops::transpose(t, -2, -1); }
}  // namespace

std::tuple<Tensor, Tensor, Tensor> attention_gradients(
    const Tensor& grad,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const Tensor& output,
    const Tensor& log_sums,
    bool is_causal,
    const Tensor& mask,
    std::optional<double> scale) {
  OptionalTensor given = mask.defined() ? OptionalTensor(mask) : std::nullopt;
  if (!grad_enabled()) {
    return ops::_scaled_dot_product_flash_attention_for_cpu_backward(grad,
                                                                     query,
                                                                     key,
                                                                     value,
                                                                     output,
                                                                     log_sums,
                                                                     0.0,
                                                                     is_causal,
                                                                     given,
                                                                     scale);
  }
  // With a graph over it: from the weights, which are computed again.
  auto [again, weights] = ops::_scaled_dot_product_attention_math(
      query, key, value, given, 0.0, is_causal, std::nullopt, scale, false);
  (void)again;
  double factor = native::attention_scale(scale, query.size(-1));
  Tensor dv = ops::matmul(turned(weights), grad);
  Tensor dp = ops::mul(ops::matmul(grad, turned(value)), weights);
  Tensor sums = ops::sum(dp, IntArrayRef{-1}, true);
  Tensor ds = ops::mul(ops::sub(dp, ops::mul(weights, sums)), Scalar(factor));
  return {ops::matmul(ds, key), ops::matmul(turned(ds), query), dv};
}

}  // namespace taeda::autograd
