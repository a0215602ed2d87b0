// One direction of one recurrent layer: a loop over time with its gradient.
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/cpu/kernels/rnn.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/rnn_layer.h>
#include <taeda/gen/native/_rnn_layer.h>
#include <taeda/gen/native/_rnn_layer_backward.h>

#include <algorithm>
#include <vector>

namespace taeda::native {

namespace {

template <class A>
const RnnKernels<A>& kernels() {
  const RnnTable& table = TAEDA_ISA_TABLE(kRnnTable);
  if constexpr (std::is_same_v<A, float>) {
    return table.f32;
  } else {
    return table.f64;
  }
}

// Note [Packed rows]
// Input and output hold the rows of all time steps behind each other, `count`
// of them at each step, never more than at the step before. The state has one
// row per sequence; a step updates its first `count` rows, so that backward in
// time sequences join with their initial state, and forward in time the state
// of an ended sequence stays as it was.
struct Steps {
  struct Step {
    int64_t row, count;
  };
  std::vector<Step> steps;  // in the order of computation
  int64_t rows = 0;
  Steps(ArrayRef<int64_t> counts, bool reverse) {
    for (int64_t c : counts) {
      steps.push_back({rows, c});
      rows += c;
    }
    if (reverse) std::reverse(steps.begin(), steps.end());
  }
};
using Sizes = SizesOver<int64_t>;

template <class A>
void times(blas::Op ta,
           blas::Op tb,
           int64_t m,
           int64_t n,
           int64_t k,
           const A* a,
           int64_t lda,
           const A* b,
           int64_t ldb,
           A beta,
           A* c,
           int64_t ldc) {
  blas::gemm<A>(ta,
                tb,
                m,
                n,
                k,
                A(1),
                a,
                std::max<int64_t>(lda, 1),
                b,
                std::max<int64_t>(ldb, 1),
                beta,
                c,
                std::max<int64_t>(ldc, 1));
}
constexpr blas::Op kPlain = blas::Op::kNone, kTurned = blas::Op::kTrans;

template <class A>
void start_rows(
    A* to, int64_t rows, int64_t n, const Tensor& a, const Tensor& b) {
  const A* x = data_or_null<A>(a);
  const A* y = data_or_null<A>(b);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < n; ++j) {
      to[r * n + j] = (x ? x[j] : A(0)) + (y ? y[j] : A(0));
    }
  }
}

// All operands row-major and of the type of sums.
struct Layer {
  int64_t mode;
  Tensor x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr;
  Sizes sizes;
  Steps steps;
  ScalarType type;
};

struct Saved {
  Tensor out, h, c, gates, extra;
};

template <class A>
void project(const Layer& l, int64_t n, const A* made, A* y) {
  times<A>(kPlain,
           kTurned,
           n,
           l.sizes.state,
           l.sizes.hidden,
           made,
           l.sizes.hidden,
           l.w_hr.const_data<A>(),
           l.sizes.hidden,
           A(0),
           y,
           l.sizes.state);
}

template <class A>
std::vector<A> transposed(const Tensor& matrix) {
  int64_t rows = matrix.sizes()[0], width = matrix.sizes()[1];
  std::vector<A> out(static_cast<size_t>(rows * width));
  const A* from = matrix.const_data<A>();
  constexpr int64_t kTile = 16;
  for (int64_t r = 0; r < rows; r += kTile) {
    int64_t end = std::min(r + kTile, rows);
    for (int64_t c = 0; c < width; ++c) {
      A* to = out.data() + c * rows;
      for (int64_t i = r; i < end; ++i) to[i] = from[i * width + c];
    }
  }
  return out;
}

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
  std::vector<A> turned = transposed<A>(l.w_hh);
  auto by_state = [&](int64_t n, A* into) {
    times<A>(kPlain,
             kPlain,
             n,
             z.gates,
             z.state,
             h,
             z.state,
             turned.data(),
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

Tensor plain(const OptionalTensor& t, ScalarType type) {
  return t && t->defined() ? contiguous_as(*t, type) : Tensor();
}

Layer make_layer(int64_t mode,
                 const Tensor& input,
                 const Tensor& h0,
                 const OptionalTensor& c0,
                 const Tensor& w_ih,
                 const Tensor& w_hh,
                 const OptionalTensor& b_ih,
                 const OptionalTensor& b_hh,
                 const OptionalTensor& w_hr,
                 ArrayRef<int64_t> counts,
                 bool reverse) {
  ScalarType type = compute_type(input.dtype());
  return {mode,
          contiguous_as(input, type),
          contiguous_as(h0, type),
          plain(c0, type),
          contiguous_as(w_ih, type),
          contiguous_as(w_hh, type),
          plain(b_ih, type),
          plain(b_hh, type),
          plain(w_hr, type),
          Sizes(mode, input, h0, w_hh),
          Steps(counts, reverse),
          type};
}

template <class F>
void visit_sum_type(ScalarType t, F&& f) {
  t == kDouble ? f(double{}) : f(float{});
}

}  // namespace

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
  Layer l = make_layer(
      mode, input, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, counts, reverse);
  RowMajor y(output, l.type), state(h, l.type), cells(c, l.type);
  copy_into(state.tensor(), l.h0);
  if (mode == kLstm) copy_into(cells.tensor(), l.c0);
  Saved s{y.tensor(), state.tensor(), cells.tensor(), gates, extra};
  visit_sum_type(l.type, [&](auto tag) { run_forward<decltype(tag)>(l, s); });
  for (const RowMajor* t : {&y, &state, &cells}) t->finish();
}

// Backward --------------------------------------------------------------------

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
