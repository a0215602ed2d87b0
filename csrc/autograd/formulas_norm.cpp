#include <taeda/csrc/autograd/formulas_norm.h>

#include <taeda/gen/ops/_fused_rms_norm_backward.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/native_batch_norm_backward.h>
#include <taeda/gen/ops/native_group_norm_backward.h>
#include <taeda/gen/ops/native_layer_norm_backward.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/rsqrt.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>

#include <limits>

namespace taeda::autograd {

namespace {

OptionalTensor given(const Tensor& t) {
  return t.defined() ? OptionalTensor(t) : std::nullopt;
}

// Means over the last `count` dims, which are kept.
struct RowMean {
  DimVector dims;
  Scalar factor;
  explicit RowMean(IntArrayRef shape) {
    double n = 1;
    for (size_t i = 0; i < shape.size(); ++i) {
      dims.push_back(-1 - static_cast<int64_t>(i));
      n *= static_cast<double>(shape[i]);
    }
    factor = 1.0 / n;
  }
  Tensor operator()(const Tensor& t) const {
    return ops::mul(ops::sum(t, IntArrayRef(dims), true), factor);
  }
};

// x / deviation, its factor, and the gradient with respect to x.
struct RowNorm {
  Tensor rstd, scaled;
  Tensor input_gradient(const RowMean& mean,
                        const Tensor& weighted,
                        bool centred) const {
    Tensor g = weighted;
    if (centred) g = ops::sub(g, mean(weighted));
    Tensor slope = mean(ops::mul(weighted, scaled));
    return ops::mul(ops::sub(g, ops::mul(scaled, slope)), rstd);
  }
};

RowNorm normalise(const RowMean& mean, const Tensor& x, double eps) {
  Tensor variance = mean(ops::mul(x, x));
  Tensor rstd = ops::rsqrt(ops::add(variance, Scalar(eps)));
  return {rstd, ops::mul(x, rstd)};
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> layer_norm_gradients(
    const Tensor& grad,
    const Tensor& input,
    IntArrayRef shape,
    const Tensor& mean,
    const Tensor& rstd,
    const Tensor& weight,
    const Tensor& bias,
    double eps,
    std::array<bool, 3> wanted) {
  if (!grad_enabled()) {
    return ops::native_layer_norm_backward(
        grad, input, shape, mean, rstd, given(weight), given(bias), wanted);
  }
  RowMean average(shape);
  RowNorm row = normalise(average, ops::sub(input, average(input)), eps);
  Tensor gi, gw, gb;
  if (wanted[0]) {
    Tensor g = weight.defined() ? ops::mul(grad, weight) : grad;
    gi = row.input_gradient(average, g, true);
  }
  if (wanted[1]) gw = sum_to(ops::mul(grad, row.scaled), shape);
  if (wanted[2]) gb = sum_to(grad, shape);
  return {gi, gw, gb};
}

std::tuple<Tensor, Tensor> rms_norm_gradients(const Tensor& grad,
                                              const Tensor& input,
                                              IntArrayRef shape,
                                              const Tensor& rstd,
                                              const Tensor& weight,
                                              std::optional<double> eps,
                                              std::array<bool, 2> wanted) {
  if (!grad_enabled()) {
    return ops::_fused_rms_norm_backward(
        grad, input, shape, rstd, given(weight), wanted);
  }
  double smallest = input.dtype() == kDouble
                        ? std::numeric_limits<double>::epsilon()
                        : std::numeric_limits<float>::epsilon();
  RowMean average(shape);
  RowNorm row = normalise(average, input, eps.value_or(smallest));
  Tensor gi, gw;
  if (wanted[0]) {
    Tensor g = weight.defined() ? ops::mul(grad, weight) : grad;
    gi = row.input_gradient(average, g, false);
  }
  if (wanted[1]) gw = sum_to(ops::mul(grad, row.scaled), shape);
  return {gi, gw};
}

namespace {

// Over all dims but the channels', which are kept.
struct ChannelMean {
  DimVector dims, shape;
  Scalar factor;
  explicit ChannelMean(const Tensor& x) : shape(x.sizes().size(), 1) {
    double n = 1;
    for (int64_t d = 0; d < x.dim(); ++d) {
      if (d == 1) continue;
      dims.push_back(d);
      n *= static_cast<double>(x.size(d));
    }
    shape[1] = x.size(1);
    factor = 1.0 / n;
  }
  Tensor sum(const Tensor& t) const {
    return ops::sum(t, IntArrayRef(dims), true);
  }
  Tensor operator()(const Tensor& t) const { return ops::mul(sum(t), factor); }
  Tensor shaped(const Tensor& t) const { return ops::reshape(t, shape); }
};

}  // namespace

std::tuple<Tensor, Tensor, Tensor> batch_norm_gradients(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& weight,
    const Tensor& running_mean,
    const Tensor& running_var,
    const Tensor& mean,
    const Tensor& rstd,
    bool training,
    double eps,
    std::array<bool, 3> wanted) {
  if (!grad_enabled()) {
    return ops::native_batch_norm_backward(grad,
                                           input,
                                           given(weight),
                                           given(running_mean),
                                           given(running_var),
                                           given(mean),
                                           given(rstd),
                                           training,
                                           eps,
                                           wanted);
  }
  ChannelMean average(input);
  Tensor centre = training ? average(input) : average.shaped(running_mean);
  Tensor x = ops::sub(input, centre);
  Tensor variance =
      training ? average(ops::mul(x, x)) : average.shaped(running_var);
  Tensor scale = ops::rsqrt(ops::add(variance, Scalar(eps)));
  Tensor scaled = ops::mul(x, scale);
  Tensor gi, gw, gb;
  if (wanted[0]) {
    Tensor g = weight.defined() ? ops::mul(grad, average.shaped(weight)) : grad;
    if (training) {
      Tensor slope = average(ops::mul(g, scaled));
      g = ops::sub(ops::sub(g, average(g)), ops::mul(scaled, slope));
    }
    gi = ops::mul(g, scale);
  }
  IntArrayRef flat(&average.shape[1], 1);
  if (wanted[1]) {
    gw = ops::reshape(average.sum(ops::mul(grad, scaled)), flat);
  }
  if (wanted[2]) gb = ops::reshape(average.sum(grad), flat);
  return {gi, gw, gb};
}

std::tuple<Tensor, Tensor, Tensor> group_norm_gradients(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& mean,
    const Tensor& rstd,
    const Tensor& weight,
    int64_t n,
    int64_t channels,
    int64_t plane,
    int64_t groups,
    double eps,
    std::array<bool, 3> wanted) {
  if (!grad_enabled()) {
    return ops::native_group_norm_backward(grad,
                                           input,
                                           mean,
                                           rstd,
                                           given(weight),
                                           n,
                                           channels,
                                           plane,
                                           groups,
                                           wanted);
  }
  int64_t size = channels / groups * plane;
  IntArrayRef row(&size, 1);
  RowMean average(row);
  int64_t by_group[] = {n, groups, size}, by_channel[] = {n, channels, plane};
  Tensor x = ops::reshape(input, by_group);
  RowNorm norm = normalise(average, ops::sub(x, average(x)), eps);
  Tensor dy = ops::reshape(grad, by_channel);
  Tensor gi, gw, gb;
  if (wanted[0]) {
    Tensor g = dy;
    if (weight.defined()) {
      g = ops::mul(dy, ops::reshape(weight, {channels, 1}));
    }
    g = norm.input_gradient(average, ops::reshape(g, by_group), true);
    gi = ops::reshape(g, input.sizes());
  }
  DimVector outside{0, 2};
  if (wanted[1]) {
    Tensor scaled = ops::reshape(norm.scaled, by_channel);
    gw = ops::sum(ops::mul(dy, scaled), IntArrayRef(outside), false);
  }
  if (wanted[2]) gb = ops::sum(dy, IntArrayRef(outside), false);
  return {gi, gw, gb};
}

}  // namespace taeda::autograd
