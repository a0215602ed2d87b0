// Derivatives of normalisation layers. Where a graph over the gradient is
// wanted, they are composed of differentiable operators; else one fused kernel
// computes them.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

#include <array>
#include <tuple>

namespace taeda::autograd {

TAEDA_API std::tuple<Tensor, Tensor, Tensor> layer_norm_gradients(
    const Tensor& grad,
    const Tensor& input,
    IntArrayRef shape,
    const Tensor& mean,
    const Tensor& rstd,
    const Tensor& weight,
    const Tensor& bias,
    double eps,
    std::array<bool, 3> wanted);
TAEDA_API std::tuple<Tensor, Tensor> rms_norm_gradients(
    const Tensor& grad,
    const Tensor& input,
    IntArrayRef shape,
    const Tensor& rstd,
    const Tensor& weight,
    std::optional<double> eps,
    std::array<bool, 2> wanted);
TAEDA_API std::tuple<Tensor, Tensor, Tensor> batch_norm_gradients(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& weight,
    const Tensor& running_mean,
    const Tensor& running_var,
    const Tensor& mean,
    const Tensor& rstd,
    bool training,
    double eps,
    std::array<bool, 3> wanted);
TAEDA_API std::tuple<Tensor, Tensor, Tensor> group_norm_gradients(
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
    std::array<bool, 3> wanted);

}  // namespace taeda::autograd
