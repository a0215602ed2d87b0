// The gradient of a recurrent layer: its loop over time backwards.
#include <taeda/aten/native/cpu/rnn_layer.h>
#include <taeda/gen/native/_rnn_layer_backward.h>

namespace taeda::native {

namespace rnn {
namespace {

struct Grads {
  Tensor x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr;
};

// What the state was before each step, by replaying the steps.
template <class A>
std::vector<A> states_before(const Layer& l,
                             const Tensor& start,
                             const A* after,
                             int64_t width) {
  std::vector<A> before(static_cast<size_t>(l.steps.rows * width));
  std::vector<A> state(start.const_data<A>(),
                       start.const_data<A>() + start.numel());
  for (const Steps::Step& step : l.steps.steps) {
    std::copy_n(
        state.data(), step.count * width, before.data() + step.row * width);
    std::copy_n(after + step.row * width, step.count * width, state.data());
  }
  return before;
}

// The time loop backwards. `gates` holds activations and becomes gradients, as
// `side` does for the GRU.
template <class A>
struct Backward {
  const Layer& l;
  const Grads& g;
  const A* y;   // outputs
  const A* dy;  // their gradients, or null
  A* gates;
  A* side;
  std::vector<A> before = {}, cells = {}, total = {}, full = {};
  const Sizes& z = l.sizes;
  const RnnKernels<A>& k = kernels<A>();

  void run() {
    before = states_before<A>(l, l.h0, y, z.state);
    if (l.mode == kLstm) cells = states_before<A>(l, l.c0, side, z.hidden);
    total.resize(static_cast<size_t>(z.batch * z.state));
    full.resize(static_cast<size_t>(z.batch * z.hidden));
    for (size_t i = l.steps.steps.size(); i-- > 0;) back(l.steps.steps[i]);
    parameters();
  }

  void back(const Steps::Step& step) {
    int64_t n = step.count;
    A* dh = g.h0.mutable_data<A>();
    A* own = gates + step.row * z.gates;
    for (int64_t j = 0; j < n * z.state; ++j) {
      total[static_cast<size_t>(j)] =
          dh[j] + (dy ? dy[step.row * z.state + j] : A(0));
    }
    A* d = l.w_hr.defined() ? projected(step) : total.data();
    const A* turned = own;
    if (l.mode == kLstm) {
      int64_t at = step.row * z.hidden;
      A* dc = g.c0.mutable_data<A>();
      k.lstm_backward(own, side + at, cells.data() + at, d, dc, n, z.hidden);
    } else if (l.mode == kGru) {
      A* hidden = side + step.row * z.gates;
      const A* old = before.data() + step.row * z.state;
      k.gru_backward(own, hidden, old, d, n, z.hidden);
      turned = hidden;
    } else {
      const A* h = y + step.row * z.state;
      auto fn = l.mode == kTanh ? k.tanh_backward : k.relu_backward;
      fn(h, d, own, n * z.hidden);
    }
    bool keeps = l.mode == kGru;  // part of dh reaches the old state directly
    if (keeps) std::copy_n(d, n * z.state, dh);
    times<A>(kPlain,
             kPlain,
             n,
             z.state,
             z.gates,
             turned,
             z.gates,
             l.w_hh.const_data<A>(),
             z.state,
             keeps ? A(1) : A(0),
             dh,
             z.state);
  }

  // Through the projection: the gradient of o tanh(c), and of the projection.
  A* projected(const Steps::Step& step) {
    int64_t n = step.count;
    A* made = full.data();
    const A* c = side + step.row * z.hidden;
    for (int64_t r = 0; r < n; ++r) {
      const A* o = gates + (step.row + r) * z.gates + 3 * z.hidden;
      k.tanh(c + r * z.hidden, made + r * z.hidden, z.hidden);
      for (int64_t j = 0; j < z.hidden; ++j) made[r * z.hidden + j] *= o[j];
    }
    const A* d = total.data();
    times<A>(kTurned,
             kPlain,
             z.state,
             z.hidden,
             n,
             d,
             z.state,
             made,
             z.hidden,
             A(1),
             g.w_hr.mutable_data<A>(),
             z.hidden);
    times<A>(kPlain,
             kPlain,
             n,
             z.hidden,
             z.state,
             d,
             z.state,
             l.w_hr.const_data<A>(),
             z.hidden,
             A(0),
             made,
             z.hidden);
    return made;
  }

  // What all steps together say about input and parameters.
  void parameters() {
    const A* turned = l.mode == kGru ? side : gates;
    weight(gates, l.x.const_data<A>(), z.input, g.w_ih);
    weight(turned, before.data(), z.state, g.w_hh);
    times<A>(kPlain,
             kPlain,
             l.steps.rows,
             z.input,
             z.gates,
             gates,
             z.gates,
             l.w_ih.const_data<A>(),
             z.input,
             A(0),
             g.x.mutable_data<A>(),
             z.input);
    if (!g.b_ih.defined()) return;
    auto sums = norm_kernels<A>().sum_rows;
    sums(gates, g.b_ih.mutable_data<A>(), l.steps.rows, z.gates);
    sums(turned, g.b_hh.mutable_data<A>(), l.steps.rows, z.gates);
  }

  void weight(const A* grads, const A* rows, int64_t width, const Tensor& out) {
    times<A>(kTurned,
             kPlain,
             z.gates,
             width,
             l.steps.rows,
             grads,
             z.gates,
             rows,
             width,
             A(0),
             out.mutable_data<A>(),
             width);
  }
};

}  // namespace
}  // namespace rnn

void _rnn_layer_backward_cpu(const OptionalTensor& grad_out,
                             const OptionalTensor& grad_h,
                             const OptionalTensor& grad_c,
                             int64_t mode,
                             const Tensor& input,
                             const Tensor& h0,
                             const OptionalTensor& c0,
                             const Tensor& w_ih,
                             const Tensor& w_hh,
                             const OptionalTensor& b_ih,
                             const OptionalTensor& b_hh,
                             const OptionalTensor& w_hr,
                             const Tensor& output,
                             const Tensor& gates,
                             const Tensor& extra,
                             ArrayRef<int64_t> counts,
                             bool reverse,
                             const Tensor& dx,
                             const Tensor& dh0,
                             const Tensor& dc0,
                             const Tensor& dw_ih,
                             const Tensor& dw_hh,
                             const Tensor& db_ih,
                             const Tensor& db_hh,
                             const Tensor& dw_hr) {
  using namespace rnn;
  Layer l = make_layer(
      mode, input, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, counts, reverse);
  auto into = [&](const Tensor& t) { return RowMajor(t, l.type); };
  const RowMajor results[] = {into(dx),
                              into(dh0),
                              into(dc0),
                              into(dw_ih),
                              into(dw_hh),
                              into(db_ih),
                              into(db_hh),
                              into(dw_hr)};
  Grads g{results[0].tensor(),
          results[1].tensor(),
          results[2].tensor(),
          results[3].tensor(),
          results[4].tensor(),
          results[5].tensor(),
          results[6].tensor(),
          results[7].tensor()};
  auto start = [](const Tensor& t, const OptionalTensor& from) {
    if (!t.defined()) return;
    fill_with(t, int64_t{0});
    if (from && from->defined()) copy_into(t, *from);
  };
  start(g.h0, grad_h);
  start(g.c0, grad_c);
  for (const Tensor* t : {&g.b_ih, &g.b_hh, &g.w_hr}) start(*t, std::nullopt);
  auto copied = [&](const Tensor& t) {
    Tensor own = make_tensor("rnn", t.sizes(), l.type);
    copy_into(own, t);
    return own;
  };
  Tensor dy = plain(grad_out, l.type), y = contiguous_as(output, l.type);
  Tensor own = copied(gates);
  Tensor side = mode == kGru ? copied(extra) : extra;
  visit_sum_type(l.type, [&](auto tag) {
    using A = decltype(tag);
    Backward<A>{l,
                g,
                y.const_data<A>(),
                data_or_null<A>(dy),
                own.mutable_data<A>(),
                side.mutable_data<A>()}
        .run();
  });
  for (const RowMajor& t : results) t.finish();
}

}  // namespace taeda::native
