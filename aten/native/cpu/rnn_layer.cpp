// One direction of one recurrent layer: a loop over time.
#include <taeda/aten/native/cpu/rnn_layer.h>
#include <taeda/gen/native/_rnn_layer.h>

namespace taeda::native {

namespace rnn {
namespace {

struct Saved {
  Tensor out, h, c, gates, extra;
};

// `gates` keeps the activations; `extra` the cells (LSTM) or the hidden side of
// the gates (GRU) of every row.
template <class A>
void run_forward(const Layer& l, const Saved& s) {
  const Sizes& z = l.sizes;
  const RnnKernels<A>& k = kernels<A>();
  A* gates = s.gates.mutable_data<A>();
  A* out = s.out.mutable_data<A>();
  A* h = s.h.mutable_data<A>();
  A* c = writable_or_null<A>(s.c);
  A* extra = writable_or_null<A>(s.extra);
  start_rows<A>(
      gates, l.steps.rows, z.gates, l.b_ih, l.mode == kGru ? Tensor() : l.b_hh);
  times<A>(kPlain,
           kTurned,
           l.steps.rows,
           z.gates,
           z.input,
           l.x.const_data<A>(),
           z.input,
           l.w_ih.const_data<A>(),
           z.input,
           A(1),
           gates,
           z.gates);
  std::vector<A> full(l.w_hr.defined() ? static_cast<size_t>(z.batch * z.hidden)
                                       : 0);
  // Turned once: every step's product would turn it again.
  Tensor turned = transposed(l.w_hh);
  auto by_state = [&](int64_t n, A* into) {
    times<A>(kPlain,
             kPlain,
             n,
             z.gates,
             z.state,
             h,
             z.state,
             turned.const_data<A>(),
             z.gates,
             A(1),
             into,
             z.gates);
  };
  for (const Steps::Step& step : l.steps.steps) {
    int64_t n = step.count;
    A* g = gates + step.row * z.gates;
    A* y = out + step.row * z.state;
    if (l.mode == kGru) {
      A* hidden = extra + step.row * z.gates;
      start_rows<A>(hidden, n, z.gates, l.b_hh, {});
      by_state(n, hidden);
      k.gru(g, hidden, h, y, n, z.hidden);
    } else if (l.mode == kLstm) {
      by_state(n, g);
      A* made = full.empty() ? y : full.data();
      k.lstm(g, c, made, n, z.hidden);
      std::copy_n(c, n * z.hidden, extra + step.row * z.hidden);
      if (!full.empty()) project<A>(l, n, made, y);
    } else {
      by_state(n, g);
      (l.mode == kTanh ? k.tanh : k.relu)(g, y, n * z.hidden);
    }
    std::copy_n(y, n * z.state, h);
  }
}

}  // namespace
}  // namespace rnn

void _rnn_layer_cpu(int64_t mode,
                    const Tensor& input,
                    const Tensor& h0,
                    const OptionalTensor& c0,
                    const Tensor& w_ih,
                    const Tensor& w_hh,
                    const OptionalTensor& b_ih,
                    const OptionalTensor& b_hh,
                    const OptionalTensor& w_hr,
                    ArrayRef<int64_t> counts,
                    bool reverse,
                    const Tensor& output,
                    const Tensor& h,
                    const Tensor& c,
                    const Tensor& gates,
                    const Tensor& extra) {
  using namespace rnn;
  Layer l = make_layer(
      mode, input, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, counts, reverse);
  RowMajor y(output, l.type), state(h, l.type), cells(c, l.type);
  copy_into(state.tensor(), l.h0);
  if (mode == kLstm) copy_into(cells.tensor(), l.c0);
  Saved s{y.tensor(), state.tensor(), cells.tensor(), gates, extra};
  visit_sum_type(l.type, [&](auto tag) { run_forward<decltype(tag)>(l, s); });
  for (const RowMajor* t : {&y, &state, &cells}) t->finish();
}

}  // namespace taeda::native
