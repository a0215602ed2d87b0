// Derivatives of attention.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

#include <array>
#include <tuple>

namespace taeda::autograd {

TAEDA_API std::tuple<Tensor, Tensor, Tensor> attention_gradients(
    const Tensor& grad,
    const Tensor& query,
    const Tensor& key,
    const Tensor& value,
    const Tensor& output,
    const Tensor& log_sums,
    bool is_causal,
    const Tensor& mask,
    std::optional<double> scale);

// Of query, key, value and bias, those that are wanted.
TAEDA_API std::tuple<Tensor, Tensor, Tensor, Tensor>
efficient_attention_gradients(const Tensor& grad,
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
                              std::array<bool, 4> wanted);

}  // namespace taeda::autograd
