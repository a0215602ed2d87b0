// Derivatives of attention.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

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

}  // namespace taeda::autograd
