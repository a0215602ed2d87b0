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

// Where sequences have one length, `query_starts` and `key_starts` are
// undefined.
TAEDA_API std::tuple<Tensor, Tensor, Tensor> flash_attention_gradients(
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
    const std::optional<SymInt>& right);

}  // namespace taeda::autograd
