#include <taeda/csrc/autograd/formulas_attention.h>

#include <taeda/aten/native/attention_scale.h>
#include <taeda/gen/ops/_scaled_dot_product_attention_math.h>
#include <taeda/gen/ops/_scaled_dot_product_efficient_attention_backward.h>
#include <taeda/gen/ops/_scaled_dot_product_flash_attention_for_cpu_backward.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/repeat_interleave.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/sym/_flash_attention_backward.h>

namespace taeda::autograd {

namespace {
Tensor turned(const Tensor& t) { return ops::transpose(t, -2, -1); }

struct ScoreGradients {
  Tensor query, key, value, scores;
};

// With a graph over it: from the weights, which are computed again.
ScoreGradients again(const Tensor& grad,
                     const Tensor& query,
                     const Tensor& key,
                     const Tensor& value,
                     const OptionalTensor& mask,
                     bool is_causal,
                     std::optional<double> scale) {
  auto [output, weights] = ops::_scaled_dot_product_attention_math(
      query, key, value, mask, 0.0, is_causal, std::nullopt, scale, false);
  (void)output;
  double factor = native::attention_scale(scale, query.size(-1));
  Tensor dv = ops::matmul(turned(weights), grad);
  Tensor dp = ops::mul(ops::matmul(grad, turned(value)), weights);
  Tensor sums = ops::sum(dp, IntArrayRef{-1}, true);
  Tensor scores = ops::sub(dp, ops::mul(weights, sums));
  Tensor ds = ops::mul(scores, Scalar(factor));
  return {ops::matmul(ds, key), ops::matmul(turned(ds), query), dv, scores};
}
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
  ScoreGradients all = again(grad, query, key, value, given, is_causal, scale);
  return {all.query, all.key, all.value};
}

std::tuple<Tensor, Tensor, Tensor, Tensor> efficient_attention_gradients(
    const Tensor& grad,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const Tensor& bias,
    const Tensor& output,
    const Tensor& log_sums,
    const Tensor& seed,
    const Tensor& offset,
    double dropout_p,
    bool is_causal,
    std::optional<double> scale,
    std::array<bool, 4> wanted) {
  OptionalTensor given = bias.defined() ? OptionalTensor(bias) : std::nullopt;
  if (!grad_enabled()) {
    return ops::_scaled_dot_product_efficient_attention_backward(grad,
                                                                 query,
                                                                 key,
                                                                 value,
                                                                 given,
                                                                 output,
                                                                 log_sums,
                                                                 seed,
                                                                 offset,
                                                                 dropout_p,
                                                                 wanted,
                                                                 is_causal,
                                                                 scale);
  }
  TAEDA_CHECK_AS(NotImplemented,
                 dropout_p == 0,
                 "the derivative for "
                 "'_scaled_dot_product_efficient_attention_backward' is not "
                 "implemented with dropout");
  TAEDA_CHECK_AS(NotImplemented,
                 !given || !is_causal,
                 "the derivative for "
                 "'_scaled_dot_product_efficient_attention_backward' is not "
                 "implemented with both attn_bias and is_causal");
  // Heads of keys as often as queries share them.
  int64_t heads = query.size(1), own = key.size(1);
  auto shared = [&](const Tensor& t) {
    if (heads == own) return t;
    return ops::repeat_interleave(t, heads / own, int64_t{1}, std::nullopt);
  };
  auto joined = [&](const Tensor& t) {
    if (heads == own) return t;
    DimVector sizes{t.size(0), own, heads / own, t.size(2), t.size(3)};
    return ops::sum(ops::reshape(t, sizes), IntArrayRef{2});
  };
  ScoreGradients all =
      again(grad, query, shared(key), shared(value), given, is_causal, scale);
  Tensor of_bias;
  if (wanted[3]) of_bias = all.scores;
  return {all.query, joined(all.key), joined(all.value), of_bias};
}

std::tuple<Tensor, Tensor, Tensor> flash_attention_gradients(
    const Tensor& grad,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const Tensor& output,
    const Tensor& log_sums,
    const Tensor& query_starts,
    const Tensor& key_starts,
    const SymInt& queries,
    const SymInt& keys,
    double dropout_p,
    bool is_causal,
    const Tensor& drawn,
    const Tensor& unused,
    std::optional<double> scale,
    const std::optional<SymInt>& left,
    const std::optional<SymInt>& right) {
  TAEDA_CHECK_AS(NotImplemented,
                 !grad_enabled(),
                 "the derivative for '_flash_attention_backward' is not "
                 "implemented");
  auto given = [&](const Tensor& starts) {
    return starts.defined() ? starts : unused;
  };
  return sym::_flash_attention_backward(grad,
                                        query,
                                        key,
                                        value,
                                        output,
                                        log_sums,
                                        given(query_starts),
                                        given(key_starts),
                                        queries,
                                        keys,
                                        dropout_p,
                                        is_causal,
                                        drawn,
                                        unused,
                                        scale,
                                        left,
                                        right);
}

}  // namespace taeda::autograd
