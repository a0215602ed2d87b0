#include <taeda/csrc/autograd/formulas_rnn.h>

#include <taeda/gen/sym/_rnn_layer_backward.h>

namespace taeda::autograd {

namespace {
OptionalTensor maybe(const Tensor& t) {
  return t.defined() ? OptionalTensor(t) : std::nullopt;
}
}  // namespace

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
                    bool reverse) {
  return sym::_rnn_layer_backward(maybe(grad_out),
                                  maybe(grad_h),
                                  maybe(grad_c),
                                  mode,
                                  input,
                                  h0,
                                  maybe(c0),
                                  w_ih,
                                  w_hh,
                                  maybe(b_ih),
                                  maybe(b_hh),
                                  maybe(w_hr),
                                  output,
                                  gates,
                                  extra,
                                  counts,
                                  reverse);
}

}  // namespace taeda::autograd
