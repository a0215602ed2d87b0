#include <taeda/csrc/autograd/formulas_rnn.h>

#include <taeda/csrc/autograd/graph.h>
#include <taeda/csrc/autograd/record.h>

#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/alias.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/chunk.h>
#include <taeda/gen/ops/linear.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/relu.h>
#include <taeda/gen/ops/sigmoid.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/tanh.h>
#include <taeda/gen/sym/_rnn_layer_backward.h>

namespace taeda::autograd {

namespace {
OptionalTensor maybe(const Tensor& t) {
  return t.defined() ? OptionalTensor(t) : std::nullopt;
}

// Note [Derivatives of recurrent derivatives]
// The kernel that goes back through a layer has none. Where its result is to be
// differentiated again, the layer runs once more in operators that have all
// derivatives, and that graph's own pass is the gradient.
struct Layer {
  int64_t mode;  // those of the record
  const Tensor &w_ih, &w_hh, &b_ih, &b_hh, &w_hr;

  struct State {
    Tensor h, c;
  };

  State step(const Tensor& input, const State& s) const {
    Tensor a = ops::linear(input, w_ih, maybe(b_ih));
    Tensor b = ops::linear(s.h, w_hh, maybe(b_hh));
    switch (mode) {
      case 0:
        return lstm(ops::chunk(ops::add(a, b), 4, 1), s.c);
      case 1:
        return {gru(ops::chunk(a, 3, 1), ops::chunk(b, 3, 1), s.h), {}};
      case 2:
        return {ops::tanh(ops::add(a, b)), {}};
      default:
        return {ops::relu(ops::add(a, b)), {}};
    }
  }

 private:
  State lstm(const std::vector<Tensor>& gates, const Tensor& c) const {
    Tensor in = ops::sigmoid(gates[0]), keep = ops::sigmoid(gates[1]);
    Tensor cell =
        ops::add(ops::mul(keep, c), ops::mul(in, ops::tanh(gates[2])));
    Tensor h = ops::mul(ops::sigmoid(gates[3]), ops::tanh(cell));
    return {w_hr.defined() ? ops::linear(h, w_hr, {}) : h, cell};
  }
  static Tensor gru(const std::vector<Tensor>& a,
                    const std::vector<Tensor>& b,
                    const Tensor& h) {
    Tensor reset = ops::sigmoid(ops::add(a[0], b[0]));
    Tensor keep = ops::sigmoid(ops::add(a[1], b[1]));
    Tensor fresh = ops::tanh(ops::add(a[2], ops::mul(reset, b[2])));
    return ops::add(fresh, ops::mul(keep, ops::sub(h, fresh)));
  }
};

// The first rows replaced: sequences that have ended keep their state.
Tensor with_rows(const Tensor& all, const Tensor& rows) {
  int64_t n = rows.size(0), rest = all.size(0) - n;
  if (rest == 0) return rows;
  return ops::cat({rows, ops::narrow(all, 0, n, rest)}, 0);
}

// Output, last hidden state and, of an LSTM, last cell.
std::vector<Tensor> run_layer(const Layer& layer,
                              const Tensor& input,
                              Layer::State s,
                              SymIntArrayRef counts,
                              bool reverse) {
  const size_t steps = counts.size();
  std::vector<Tensor> rows(steps);
  int64_t start = reverse ? input.size(0) : 0;
  for (size_t i = 0; i < steps; ++i) {
    const size_t t = reverse ? steps - 1 - i : i;
    const int64_t n = counts[t].guard();
    if (reverse) start -= n;
    Layer::State old{ops::narrow(s.h, 0, 0, n),
                     s.c.defined() ? ops::narrow(s.c, 0, 0, n) : Tensor()};
    Layer::State made = layer.step(ops::narrow(input, 0, start, n), old);
    rows[t] = made.h;
    s.h = with_rows(s.h, made.h);
    if (s.c.defined()) s.c = with_rows(s.c, made.c);
    if (!reverse) start += n;
  }
  std::vector<Tensor> out{ops::cat(rows, 0), s.h};
  if (s.c.defined()) out.push_back(s.c);
  return out;
}

using LayerGradients =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

// The gradients of `outputs` by those of `inputs` that have any.
LayerGradients gradients_by_graph(const std::vector<Tensor>& outputs,
                                  const std::array<Tensor, 3>& grads,
                                  const std::array<Tensor, 8>& inputs) {
  std::vector<Tensor> reached, given, asked;
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!grads[i].defined() || !outputs[i].requires_grad()) continue;
    reached.push_back(outputs[i]);
    given.push_back(grads[i]);
  }
  for (const Tensor& t : inputs) {
    if (needs_grad(t)) asked.push_back(t);
  }
  std::vector<Tensor> found = grad(reached,
                                   asked,
                                   given,
                                   /*keep_graph=*/true,
                                   /*create_graph=*/true,
                                   /*allow_unused=*/true);
  std::array<Tensor, 8> all;
  for (size_t i = 0, next = 0; i < inputs.size(); ++i) {
    if (needs_grad(inputs[i])) all[i] = found[next++];
  }
  return std::apply([](auto&... t) { return LayerGradients(t...); }, all);
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
  if (grad_enabled() &&
      any_needs_grad(input, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr)) {
    std::array<Tensor, 8> own{input, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr};
    // Hooks of the arguments are for the pass that this is a part of.
    for (Tensor& t : own) {
      if (needs_grad(t)) t = ops::alias(t);
    }
    Layer layer{mode, own[3], own[4], own[5], own[6], own[7]};
    return gradients_by_graph(
        run_layer(layer, own[0], {own[1], own[2]}, counts, reverse),
        {grad_out, grad_h, grad_c},
        own);
  }
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
