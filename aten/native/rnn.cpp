// Recurrent networks: layers, directions and packed sequences over _rnn_layer.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/rnn_layer.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/gru.h>
#include <taeda/gen/native/gru_cell.h>
#include <taeda/gen/native/lstm.h>
#include <taeda/gen/native/lstm_cell.h>
#include <taeda/gen/native/rnn_relu.h>
#include <taeda/gen/native/rnn_relu_cell.h>
#include <taeda/gen/native/rnn_tanh.h>
#include <taeda/gen/native/rnn_tanh_cell.h>
#include <taeda/gen/ops/_rnn_layer.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/dropout.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::native {

namespace {

struct Network {
  int64_t mode;
  TensorList params;
  bool has_biases;
  int64_t layers;
  double dropout;
  bool train;
  bool bidirectional;
};

struct States {
  Tensor out, h, c;
};

OptionalTensor maybe(TensorList list, size_t i, bool there) {
  return there ? OptionalTensor(list[i]) : std::nullopt;
}

// Gates mix a state with the one before it, so that the result has the wider
// dtype of the two where autocast computed the layer in a smaller one. (In a
// whole LSTM all is of the smaller one, as in PyTorch's fused layer.)
Tensor in_dtype_of(const Tensor& computed, const Tensor& state) {
  if (computed.dtype() == state.dtype()) return computed;
  return ops::to(computed, state.dtype());
}

using LayerResult = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

// The row counts of the steps may be symbols.
LayerResult rnn_layer_sized(int64_t mode,
                            const Tensor& input,
                            const Tensor& h0,
                            const OptionalTensor& c0,
                            const Tensor& w_ih,
                            const Tensor& w_hh,
                            const OptionalTensor& b_ih,
                            const OptionalTensor& b_hh,
                            const OptionalTensor& w_hr,
                            ArrayRef<SymInt> counts,
                            bool reverse) {
  if (TAEDA_LIKELY(all_plain(counts))) {
    return ops::_rnn_layer(mode,
                           input,
                           h0,
                           c0,
                           w_ih,
                           w_hh,
                           b_ih,
                           b_hh,
                           w_hr,
                           as_plain(counts),
                           reverse);
  }
  auto given = [](const OptionalTensor& t) {
    return t && t->defined() ? IValue(*t) : IValue();
  };
  Stack out = call_with(ops::entries::_rnn_layer,
                        std::vector<IValue>{mode,
                                            input,
                                            h0,
                                            given(c0),
                                            w_ih,
                                            w_hh,
                                            given(b_ih),
                                            given(b_hh),
                                            given(w_hr),
                                            counts.vec(),
                                            reverse});
  auto at = [&](size_t i) { return out[i].get<TensorBase>(); };
  return {at(0), at(1), at(2), at(3), at(4)};
}

// `data` has the rows of all steps; see Note [Packed rows].
States run(const Network& n,
           const Tensor& data,
           ArrayRef<SymInt> counts,
           const Tensor& h0,
           const Tensor& c0) {
  int64_t directions = n.bidirectional ? 2 : 1;
  size_t parts = static_cast<size_t>(n.layers * directions);
  size_t each = n.params.size() / std::max<size_t>(parts, 1);
  size_t plain = n.has_biases ? 4 : 2;
  TAEDA_CHECK(n.params.size() == parts * each &&
                  (each == plain || (each == plain + 1 && n.mode == kLstm)),
              "rnn: expected ",
              plain,
              " parameters per layer and direction for ",
              static_cast<int64_t>(parts),
              " of them, got ",
              static_cast<int64_t>(n.params.size()));
  Tensor x = data;
  std::vector<Tensor> hs, cs;
  for (int64_t layer = 0; layer < n.layers; ++layer) {
    std::vector<Tensor> outs;
    for (int64_t d = 0; d < directions; ++d) {
      int64_t at = layer * directions + d;
      TensorList p = n.params.slice(static_cast<size_t>(at) * each, each);
      OptionalTensor c;
      if (n.mode == kLstm) c = ops::select(c0, 0, at);
      auto [out, h, cell, gates, extra] =
          rnn_layer_sized(n.mode,
                          x,
                          ops::select(h0, 0, at),
                          c,
                          p[0],
                          p[1],
                          maybe(p, 2, n.has_biases),
                          maybe(p, 3, n.has_biases),
                          maybe(p, plain, each > plain),
                          counts,
                          d == 1);
      if (n.mode == kGru) {
        out = in_dtype_of(out, h0);
        h = in_dtype_of(h, h0);
      }
      outs.push_back(out);
      hs.push_back(h);
      if (n.mode == kLstm) cs.push_back(cell);
    }
    x = outs.size() == 1 ? outs[0] : ops::cat(outs, 1);
    if (n.train && n.dropout > 0 && layer + 1 < n.layers) {
      x = ops::dropout(x, n.dropout, true);
    }
  }
  return {x, ops::stack(hs, 0), n.mode == kLstm ? ops::stack(cs, 0) : Tensor()};
}

void check_state(const Network& n, const Tensor& input, const Tensor& h0) {
  int64_t wanted = n.params.empty() ? 0 : n.params[0].size(-1);
  TAEDA_CHECK(input.size(-1) == wanted,
              "input.size(-1) must be equal to input_size. Expected ",
              wanted,
              ", got ",
              input.size(-1));
  TAEDA_CHECK(h0.dim() == 3, "rnn: expected 3-D hidden states, got ", h0);
}

States run_padded(const Network& n,
                  const Tensor& input,
                  const Tensor& h0,
                  const Tensor& c0,
                  bool batch_first) {
  TAEDA_CHECK(input.dim() == 3, "rnn: expected 3-D input, got ", input);
  check_state(n, input, h0);
  Tensor x = batch_first ? ops::transpose(input, 0, 1) : input;
  int64_t steps = x.size(0);  // known: there is a row of the graph for each
  const SymInt batch = symbolic_sizes(x)[1];
  TAEDA_CHECK(steps > 0, "Expected sequence length to be larger than 0 in RNN");
  TAEDA_CHECK(symbolic_sizes(h0)[1] == batch,
              "Expected hidden size (",
              symbolic_sizes(h0)[0],
              ", ",
              batch,
              ", ",
              symbolic_sizes(h0)[2],
              "), got ",
              symbolic_sizes(h0));
  Dims<SymInt> counts(static_cast<size_t>(steps), batch);
  Tensor rows = reshape_sized(x, {steps * batch, symbolic_sizes(x)[2]});
  States s = run(n, rows, counts, h0, c0);
  s.out =
      reshape_sized(s.out, {SymInt(steps), batch, symbolic_sizes(s.out)[1]});
  if (batch_first) s.out = ops::transpose(s.out, 0, 1);
  return s;
}

States run_packed(const Network& n,
                  const Tensor& data,
                  const Tensor& batch_sizes,
                  const Tensor& h0,
                  const Tensor& c0) {
  check_state(n, data, h0);
  return run(n, data, as_symbolic(counts_of(batch_sizes)), h0, c0);
}

void check_pair(TensorList hx) {
  TAEDA_CHECK(hx.size() == 2, "lstm expects two hidden states");
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& input,
                                        TensorList hx,
                                        TensorList params,
                                        bool has_biases,
                                        int64_t num_layers,
                                        double dropout,
                                        bool train,
                                        bool bidirectional,
                                        bool batch_first) {
  check_pair(hx);
  Network n{
      kLstm, params, has_biases, num_layers, dropout, train, bidirectional};
  States s = run_padded(n, input, hx[0], hx[1], batch_first);
  return {s.out, s.h, s.c};
}

std::tuple<Tensor, Tensor, Tensor> lstm(const Tensor& data,
                                        const Tensor& batch_sizes,
                                        TensorList hx,
                                        TensorList params,
                                        bool has_biases,
                                        int64_t num_layers,
                                        double dropout,
                                        bool train,
                                        bool bidirectional) {
  check_pair(hx);
  Network n{
      kLstm, params, has_biases, num_layers, dropout, train, bidirectional};
  States s = run_packed(n, data, batch_sizes, hx[0], hx[1]);
  return {s.out, s.h, s.c};
}

#define TAEDA_RNN(NAME, MODE)                                                 \
  std::tuple<Tensor, Tensor> NAME(const Tensor& input,                        \
                                  const Tensor& hx,                           \
                                  TensorList params,                          \
                                  bool has_biases,                            \
                                  int64_t num_layers,                         \
                                  double dropout,                             \
                                  bool train,                                 \
                                  bool bidirectional,                         \
                                  bool batch_first) {                         \
    Network n{                                                                \
        MODE, params, has_biases, num_layers, dropout, train, bidirectional}; \
    States s = run_padded(n, input, hx, {}, batch_first);                     \
    return {s.out, s.h};                                                      \
  }                                                                           \
  std::tuple<Tensor, Tensor> NAME(const Tensor& data,                         \
                                  const Tensor& batch_sizes,                  \
                                  const Tensor& hx,                           \
                                  TensorList params,                          \
                                  bool has_biases,                            \
                                  int64_t num_layers,                         \
                                  double dropout,                             \
                                  bool train,                                 \
                                  bool bidirectional) {                       \
    Network n{                                                                \
        MODE, params, has_biases, num_layers, dropout, train, bidirectional}; \
    States s = run_packed(n, data, batch_sizes, hx, {});                      \
    return {s.out, s.h};                                                      \
  }
TAEDA_RNN(gru, kGru)
TAEDA_RNN(rnn_tanh, kTanh)
TAEDA_RNN(rnn_relu, kRelu)
#undef TAEDA_RNN

// Cells -----------------------------------------------------------------------

namespace {

std::pair<Tensor, Tensor> cell(int64_t mode,
                               const Tensor& input,
                               const Tensor& h,
                               const OptionalTensor& c,
                               const Tensor& w_ih,
                               const Tensor& w_hh,
                               const OptionalTensor& b_ih,
                               const OptionalTensor& b_hh) {
  TAEDA_CHECK_AS(Index,
                 input.dim() == 2 && h.dim() == 2,
                 "rnn cell: expected 2-D input and hidden state, got ",
                 input,
                 " and ",
                 h);
  TAEDA_CHECK(input.size(1) == w_ih.size(1),
              "input has inconsistent input_size: got ",
              input.size(1),
              " expected ",
              w_ih.size(1));
  TAEDA_CHECK(same_size(input, 0, h, 0),
              "Input batch size ",
              symbolic_sizes(input)[0],
              " doesn't match hidden0 batch size ",
              symbolic_sizes(h)[0]);
  TAEDA_CHECK(h.size(1) == w_hh.size(1),
              "hidden0 has inconsistent hidden_size: got ",
              h.size(1),
              ", expected ",
              w_hh.size(1));
  bool both = b_ih && b_ih->defined() && b_hh && b_hh->defined();
  auto [out, hn, cn, gates, extra] =
      rnn_layer_sized(mode,
                      input,
                      h,
                      c,
                      w_ih,
                      w_hh,
                      both ? b_ih : OptionalTensor(),
                      both ? b_hh : OptionalTensor(),
                      std::nullopt,
                      symbolic_sizes(input).slice(0, 1),
                      false);
  if (mode == kGru || mode == kLstm) out = in_dtype_of(out, h);
  return {out, mode == kLstm ? in_dtype_of(cn, *c) : cn};
}

}  // namespace

std::tuple<Tensor, Tensor> lstm_cell(const Tensor& input,
                                     TensorList hx,
                                     const Tensor& w_ih,
                                     const Tensor& w_hh,
                                     const OptionalTensor& b_ih,
                                     const OptionalTensor& b_hh) {
  check_pair(hx);
  auto [h, c] = cell(kLstm, input, hx[0], hx[1], w_ih, w_hh, b_ih, b_hh);
  return {h, c};
}

#define TAEDA_RNN_CELL(NAME, MODE)                                  \
  Tensor NAME(const Tensor& input,                                  \
              const Tensor& hx,                                     \
              const Tensor& w_ih,                                   \
              const Tensor& w_hh,                                   \
              const OptionalTensor& b_ih,                           \
              const OptionalTensor& b_hh) {                         \
    return cell(MODE, input, hx, {}, w_ih, w_hh, b_ih, b_hh).first; \
  }
TAEDA_RNN_CELL(gru_cell, kGru)
TAEDA_RNN_CELL(rnn_tanh_cell, kTanh)
TAEDA_RNN_CELL(rnn_relu_cell, kRelu)
#undef TAEDA_RNN_CELL

}  // namespace taeda::native
