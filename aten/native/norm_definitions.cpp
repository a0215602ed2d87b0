// Normalisations of rows, and gradients of all, by other operators: what they
// are differentiated and mapped by, and what fused loops compute.
#include <taeda/gen/native/_fused_rms_norm.h>
#include <taeda/gen/native/_fused_rms_norm_backward.h>
#include <taeda/gen/native/native_batch_norm_backward.h>
#include <taeda/gen/native/native_group_norm_backward.h>
#include <taeda/gen/native/native_layer_norm.h>
#include <taeda/gen/native/native_layer_norm_backward.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/detach.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/pow.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/rsqrt.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>

#include <limits>

namespace taeda::native {

namespace {

// Means over the last dims of these sizes, which are kept.
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

// 1 / deviation as a function of the variance. What was added to the variance
// is told by the value that the forward call had.
Tensor inverse_deviation(const Tensor& variance, const Tensor& known) {
  Tensor square = ops::pow(ops::detach(known), Scalar(-2));
  Tensor added = ops::sub(square, ops::detach(variance));
  return ops::rsqrt(ops::add(variance, added));
}

// x over its deviation, its factor, and the gradient with respect to x.
struct RowNorm {
  RowNorm(const RowMean& mean, const Tensor& x, const Tensor& known)
      : rstd(inverse_deviation(mean(ops::mul(x, x)), known)),
        scaled(ops::mul(x, rstd)) {}
  Tensor input_gradient(const RowMean& mean,
                        const Tensor& weighted,
                        bool centred) const {
    Tensor g = weighted;
    if (centred) g = ops::sub(g, mean(weighted));
    Tensor slope = mean(ops::mul(weighted, scaled));
    return ops::mul(ops::sub(g, ops::mul(scaled, slope)), rstd);
  }
  Tensor rstd, scaled;
};

// Sums over the dims in front of the last `count` ones.
Tensor over_rows(const Tensor& t, size_t count) {
  DimVector dims;
  for (int64_t d = 0; d < t.dim() - static_cast<int64_t>(count); ++d) {
    dims.push_back(d);
  }
  return dims.empty() ? t : ops::sum(t, IntArrayRef(dims), false);
}

Tensor times(const Tensor& t, const OptionalTensor& factor) {
  return factor ? ops::mul(t, *factor) : t;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> layer_norm_means(
    const Tensor& input,
    IntArrayRef shape,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    double eps) {
  RowMean average(shape);
  Tensor mean = average(input);
  Tensor centred = ops::sub(input, mean);
  Tensor variance = average(ops::mul(centred, centred));
  Tensor rstd = ops::rsqrt(ops::add(variance, Scalar(eps)));
  Tensor out = times(ops::mul(centred, rstd), weight);
  return {bias ? ops::add(out, *bias) : out, mean, rstd};
}

std::tuple<Tensor, Tensor> rms_norm_means(const Tensor& input,
                                          IntArrayRef shape,
                                          const OptionalTensor& weight,
                                          std::optional<double> eps) {
  double smallest = input.dtype() == kDouble
                        ? std::numeric_limits<double>::epsilon()
                        : std::numeric_limits<float>::epsilon();
  Tensor square = RowMean(shape)(ops::mul(input, input));
  Tensor rstd = ops::rsqrt(ops::add(square, Scalar(eps.value_or(smallest))));
  return {times(ops::mul(input, rstd), weight), rstd};
}

std::tuple<Tensor, Tensor, Tensor> layer_norm_backward_means(
    const Tensor& grad,
    const Tensor& input,
    IntArrayRef shape,
    const Tensor&,
    const Tensor& rstd,
    const OptionalTensor& weight,
    const OptionalTensor&,
    ArrayRef<bool> wanted) {
  RowMean average(shape);
  RowNorm row(average, ops::sub(input, average(input)), rstd);
  Tensor gi, gw, gb;
  if (wanted[0]) gi = row.input_gradient(average, times(grad, weight), true);
  if (wanted[1]) gw = over_rows(ops::mul(grad, row.scaled), shape.size());
  if (wanted[2]) gb = over_rows(grad, shape.size());
  return {gi, gw, gb};
}

std::tuple<Tensor, Tensor> rms_norm_backward_means(const Tensor& grad,
                                                   const Tensor& input,
                                                   IntArrayRef shape,
                                                   const Tensor& rstd,
                                                   const OptionalTensor& weight,
                                                   ArrayRef<bool> wanted) {
  RowMean average(shape);
  RowNorm row(average, input, rstd);
  Tensor gi, gw;
  if (wanted[0]) gi = row.input_gradient(average, times(grad, weight), false);
  if (wanted[1]) gw = over_rows(ops::mul(grad, row.scaled), shape.size());
  return {gi, gw};
}

std::tuple<Tensor, Tensor, Tensor> group_norm_backward_means(
    const Tensor& grad,
    const Tensor& input,
    const Tensor&,
    const Tensor& rstd,
    const OptionalTensor& weight,
    int64_t n,
    int64_t channels,
    int64_t plane,
    int64_t groups,
    ArrayRef<bool> wanted) {
  int64_t size = channels / groups * plane;
  RowMean average(IntArrayRef(&size, 1));
  int64_t by_group[] = {n, groups, size}, by_channel[] = {n, channels, plane};
  Tensor x = ops::reshape(input, by_group);
  RowNorm norm(
      average, ops::sub(x, average(x)), ops::reshape(rstd, {n, groups, 1}));
  Tensor dy = ops::reshape(grad, by_channel);
  Tensor gi, gw, gb;
  if (wanted[0]) {
    Tensor g = dy;
    if (weight) g = ops::mul(dy, ops::reshape(*weight, {channels, 1}));
    g = norm.input_gradient(average, ops::reshape(g, by_group), true);
    gi = ops::reshape(g, input.sizes());
  }
  int64_t outside[] = {0, 2};
  if (wanted[1]) {
    Tensor scaled = ops::reshape(norm.scaled, by_channel);
    gw = ops::sum(ops::mul(dy, scaled), IntArrayRef(outside), false);
  }
  if (wanted[2]) gb = ops::sum(dy, IntArrayRef(outside), false);
  return {gi, gw, gb};
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

std::tuple<Tensor, Tensor, Tensor> batch_norm_backward_means(
    const Tensor& grad,
    const Tensor& input,
    const OptionalTensor& weight,
    const OptionalTensor& running_mean,
    const OptionalTensor& running_var,
    const OptionalTensor&,
    const OptionalTensor&,
    bool training,
    double eps,
    ArrayRef<bool> wanted) {
  ChannelMean average(input);
  Tensor centre = training ? average(input) : average.shaped(*running_mean);
  Tensor x = ops::sub(input, centre);
  Tensor variance =
      training ? average(ops::mul(x, x)) : average.shaped(*running_var);
  Tensor scale = ops::rsqrt(ops::add(variance, Scalar(eps)));
  Tensor scaled = ops::mul(x, scale);
  Tensor gi, gw, gb;
  if (wanted[0]) {
    Tensor g = weight ? ops::mul(grad, average.shaped(*weight)) : grad;
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

}  // namespace taeda::native
