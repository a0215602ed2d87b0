// Derivatives of convolutions.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

#include <array>
#include <tuple>

namespace taeda::autograd {

// Gradients of input, weight and bias; of differentiable convolutions where a
// graph over them is wanted.
TAEDA_API std::tuple<Tensor, Tensor, Tensor> convolution_gradients(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& weight,
    IntArrayRef bias_sizes,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool transposed,
    IntArrayRef output_padding,
    int64_t groups,
    std::array<bool, 3> wanted);

}  // namespace taeda::autograd
