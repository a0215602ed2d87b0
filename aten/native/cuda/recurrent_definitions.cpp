// Recurrent layers: products of all rows at once, then a product and a kernel
// for each step.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/rnn_layer.h>
#include <taeda/c10/core/local_state.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/t.h>
#include <taeda/gen/ops/tanh.h>

#include <algorithm>
#include <vector>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using native::kGru;
using native::kLstm;
using native::kTanh;

struct Step {
  int64_t row, count;
};

// In the order of computation; Note [Packed rows].
std::vector<Step> steps_of(IntArrayRef counts, bool reverse) {
  std::vector<Step> steps;
  int64_t row = 0;
  for (int64_t count : counts) {
    steps.push_back({row, count});
    row += count;
  }
  if (reverse) std::reverse(steps.begin(), steps.end());
  return steps;
}

// Of the type of sums, and nobody else's memory.
Tensor own(const Tensor& t, ScalarType type) {
  Tensor made = make_tensor("rnn", t.sizes(), type, t.device());
  copy_into(made, t);
  return made;
}
Tensor own(const OptionalTensor& t, ScalarType type) {
  return t && t->defined() ? own(*t, type) : Tensor();
}
// For what is read alone.
Tensor as_type(const Tensor& t, ScalarType type) {
  return t.dtype() == type ? t : own(t, type);
}
Tensor as_type(const OptionalTensor& t, ScalarType type) {
  return t && t->defined() ? as_type(*t, type) : Tensor();
}
Tensor zeros(IntArrayRef sizes, ScalarType type, Device device) {
  Tensor made = make_tensor("rnn", sizes, type, device);
  fill_with(made, 0);
  return made;
}

struct Layer {
  int64_t mode;
  ScalarType type;
  Tensor x, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr;
  std::vector<Step> steps;

  Layer(int64_t mode,
        const Tensor& input,
        const Tensor& h0,
        const OptionalTensor& c0,
        const Tensor& w_ih,
        const Tensor& w_hh,
        const OptionalTensor& b_ih,
        const OptionalTensor& b_hh,
        const OptionalTensor& w_hr,
        IntArrayRef counts,
        bool reverse)
      : mode(mode),
        type(input.dtype() == kDouble ? kDouble : kFloat),
        x(as_type(input, type)),
        h0(as_type(h0, type)),
        c0(as_type(c0, type)),
        w_ih(as_type(w_ih, type)),
        w_hh(as_type(w_hh, type)),
        b_ih(as_type(b_ih, type)),
        b_hh(as_type(b_hh, type)),
        w_hr(as_type(w_hr, type)),
        steps(steps_of(counts, reverse)) {}

  Tensor empty(IntArrayRef sizes) const {
    return make_tensor("rnn", sizes, type, x.device());
  }
};

Tensor rows(const Tensor& t, const Step& step) {
  return ops::narrow(t, 0, step.row, step.count);
}
Tensor first(const Tensor& t, int64_t count) {
  return ops::narrow(t, 0, 0, count);
}

Tensor plus(const Tensor& t, const Tensor& bias) {
  return bias.defined() ? Tensor(ops::add(t, bias)) : t;
}

// Forward --------------------------------------------------------------------

using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

// One step's cells; `made` is what a projection would read.
void run_cells(const Layer& l,
               const Tensor& gates,
               const Tensor& hidden,
               const Tensor& state,
               const Tensor& cell,
               const Tensor& made) {
  if (l.mode == kLstm) {
    DeviceCall("rnn", "recurrent", "lstm_at(g, i);")
        .tensor("hidden", hidden)
        .tensor("gates", gates)
        .tensor("cell", cell)
        .tensor("result", made)
        .run(made.numel());
  } else if (l.mode == kGru) {
    DeviceCall("rnn", "recurrent", "gru_at(g, i);")
        .tensor("hidden", hidden)
        .tensor("state", state)
        .tensor("gates", gates)
        .tensor("result", made)
        .run(made.numel());
  } else {
    DeviceCall("rnn", "recurrent", "plain_at(g, i);")
        .number("bends", l.mode == kTanh ? 1 : 0)
        .tensor("hidden", hidden)
        .tensor("gates", gates)
        .tensor("result", made)
        .run(made.numel());
  }
}

Five rnn_layer(int64_t mode,
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
  // The products below are not autocast's business.
  ExcludeKeysGuard as_given(DispatchKey::Autocast);
  Layer l(mode, input, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, counts, reverse);
  int64_t all = input.size(0), width = w_hh.size(0) / native::gates_of(mode);
  Tensor gates = own(plus(ops::matmul(l.x, ops::t(l.w_ih)), l.b_ih), l.type);
  Tensor out = l.empty({all, h0.size(1)});
  Tensor h = own(l.h0, l.type), extra = l.empty({0, 0});
  Tensor c = mode == kLstm ? own(l.c0, l.type) : l.empty({0, 0});
  if (mode == kLstm) extra = l.empty({all, width});
  if (mode == kGru) extra = l.empty(gates.sizes());
  Tensor turned = ops::t(l.w_hh);
  for (const Step& step : l.steps) {
    Tensor state = first(h, step.count), result = rows(out, step);
    Tensor hidden = plus(ops::matmul(state, turned), l.b_hh);
    if (mode == kGru) copy_into(rows(extra, step), hidden);
    Tensor cell = mode == kLstm ? first(c, step.count) : Tensor();
    bool projects = l.w_hr.defined();
    Tensor made = projects ? l.empty({step.count, width}) : result;
    run_cells(l, rows(gates, step), hidden, state, cell, made);
    if (mode == kLstm) copy_into(rows(extra, step), cell);
    if (projects) copy_into(result, ops::matmul(made, ops::t(l.w_hr)));
    copy_into(state, result);
  }
  return {out, h, c, gates, extra};
}

// Backward -------------------------------------------------------------------

using Eight =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

// What the state was before each step, by replaying the steps.
Tensor states_before(const Layer& l, const Tensor& start, const Tensor& after) {
  Tensor before = l.empty(after.sizes()), state = own(start, l.type);
  for (const Step& step : l.steps) {
    copy_into(rows(before, step), first(state, step.count));
    copy_into(first(state, step.count), rows(after, step));
  }
  return before;
}

struct Backward {
  const Layer& l;
  Tensor y, dy;        // outputs; their gradients, if there are any
  Tensor gates, side;  // activations, which become gradients; Forward's extra
  Tensor dh, dc;
  Tensor before{}, cells{}, dw_hr{};

  void run() {
    before = states_before(l, l.h0, y);
    if (l.mode == kLstm) cells = states_before(l, l.c0, side);
    if (l.w_hr.defined()) {
      dw_hr = zeros(l.w_hr.sizes(), l.type, l.x.device());
    }
    for (size_t i = l.steps.size(); i-- > 0;) back(l.steps[i]);
  }

  // Through the projection: the gradient of o tanh(c), and of the projection.
  Tensor projected(const Step& step, const Tensor& total) {
    int64_t width = side.size(1);
    Tensor out = ops::narrow(rows(gates, step), 1, 3 * width, width);
    Tensor made = ops::mul(out, ops::tanh(rows(side, step)));
    copy_into(dw_hr, ops::add(dw_hr, ops::matmul(ops::t(total), made)));
    return ops::matmul(total, l.w_hr);
  }

  void back(const Step& step) {
    Tensor state = first(dh, step.count), own_gates = rows(gates, step);
    Tensor grad = own(state, l.type);
    if (dy.defined()) copy_into(grad, ops::add(grad, rows(dy, step)));
    Tensor turned = own_gates, direct;
    if (l.mode == kLstm) {
      if (l.w_hr.defined()) grad = projected(step, grad);
      DeviceCall("rnn", "recurrent", "lstm_back_at(g, i);")
          .tensor("grad", grad)
          .tensor("cell", rows(side, step))
          .tensor("old", rows(cells, step))
          .tensor("grad_cell", first(dc, step.count))
          .tensor("gates", own_gates)
          .run(grad.numel());
    } else if (l.mode == kGru) {
      turned = rows(side, step);
      DeviceCall("rnn", "recurrent", "gru_back_at(g, i);")
          .tensor("old", rows(before, step))
          .tensor("grad", grad)
          .tensor("hidden", turned)
          .tensor("gates", own_gates)
          .run(grad.numel());
      direct = grad;
    } else {
      DeviceCall("rnn", "recurrent", "plain_back_at(g, i);")
          .number("bends", l.mode == kTanh ? 1 : 0)
          .tensor("grad", grad)
          .tensor("state", rows(y, step))
          .tensor("gates", own_gates)
          .run(grad.numel());
    }
    copy_into(state, plus(ops::matmul(turned, l.w_hh), direct));
  }

  // What all steps together say about input and parameters.
  Eight results() const {
    const Tensor& turned = l.mode == kGru ? side : gates;
    Tensor db_ih, db_hh;
    if (l.b_ih.defined()) {
      int64_t along[] = {0};
      db_ih = ops::sum(gates, IntArrayRef(along));
      db_hh = ops::sum(turned, IntArrayRef(along));
    }
    return {ops::matmul(gates, l.w_ih),
            dh,
            dc,
            ops::matmul(ops::t(gates), l.x),
            ops::matmul(ops::t(turned), before),
            db_ih,
            db_hh,
            dw_hr};
  }
};

// The gradient of a state that nobody asked for is 0.
Tensor started(const Layer& l, const OptionalTensor& grad, const Tensor& like) {
  if (!like.defined() || (grad && grad->defined())) return own(grad, l.type);
  return zeros(like.sizes(), l.type, like.device());
}

Eight rnn_layer_backward(const OptionalTensor& grad_out,
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
                         bool reverse) {
  ExcludeKeysGuard as_given(DispatchKey::Autocast);
  Layer l(mode, input, h0, c0, w_ih, w_hh, b_ih, b_hh, w_hr, counts, reverse);
  Backward b{l,
             own(output, l.type),
             own(grad_out, l.type),
             own(gates, l.type),
             own(extra, l.type),
             started(l, grad_h, l.h0),
             mode == kLstm ? started(l, grad_c, l.c0) : Tensor()};
  b.run();
  return b.results();
}

}  // namespace

Definitions recurrent_definitions() {
  static const Definition all[] = {
      defined_as("_rnn_layer", rnn_layer),
      defined_as("_rnn_layer_backward", rnn_layer_backward),
  };
  return all;
}

}  // namespace taeda::cuda
