// Derivatives of recurrent layers.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

#include <tuple>

namespace taeda::autograd {

TAEDA_API
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>
rnn_layer_gradients(const Tensor& grad_out,
                    const Tensor& grad_h,
                    const Tensor& grad_c,
                    int64_t mode,
                    const Tensor& input,
                    const Tensor& h0,
                    const Tensor& c0,
                    const Tensor& w_ih,
                    const Tensor& w_hh,
                    const Tensor& b_ih,
                    const Tensor& b_hh,
                    const Tensor& w_hr,
                    const Tensor& output,
                    const Tensor& gates,
                    const Tensor& extra,
                    SymIntArrayRef counts,
                    bool reverse);

}  // namespace taeda::autograd
