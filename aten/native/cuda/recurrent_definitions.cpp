// Recurrent layers: products of all rows at once, then a product and a kernel
// for each step, which between them read and write nothing twice.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/rnn_layer.h>
#include <taeda/c10/core/local_state.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/addmm.h>
#include <taeda/gen/ops/linear.h>
#include <taeda/gen/ops/mm.h>
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
  bool reverse;
  bool even;  // whether all steps have as many rows

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
        steps(steps_of(counts, reverse)),
        reverse(reverse),
        even(counts.empty() || counts.front() == counts.back()) {}

  Tensor empty(IntArrayRef sizes) const {
    return make_tensor("rnn", sizes, type, x.device());
  }
};

// Several for each step: without a call of an operator.
Tensor rows(const Tensor& t, const Step& step) {
  DimVector sizes(t.sizes().begin(), t.sizes().end());
  DimVector strides(t.strides().begin(), t.strides().end());
  sizes[0] = step.count;
  return make_view(
      t, sizes, strides, t.storage_offset() + step.row * strides[0]);
}
Tensor first(const Tensor& t, int64_t count) {
  return count == t.sizes()[0] ? t : rows(t, {0, count});
}

// The gates as far as input and biases tell. In a GRU the reset gate lies
// between the two biases.
Tensor input_gates(const Layer& l) {
  if (!l.b_ih.defined()) return ops::linear(l.x, l.w_ih, std::nullopt);
  if (l.mode == kGru) return ops::linear(l.x, l.w_ih, l.b_ih);
  return ops::linear(l.x, l.w_ih, Tensor(ops::add(l.b_ih, l.b_hh)));
}

// Forward --------------------------------------------------------------------

using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

// What the cells of a step read and write.
struct Cells {
  Tensor gates, hidden;
  Tensor cell, kept;     // of an LSTM; of a GRU what is kept of `hidden`
  Tensor state, result;  // undefined: a projection makes the state
};

void run_cells(const Layer& l, const Cells& s) {
  if (l.mode == kLstm) {
    DeviceCall("rnn", "recurrent", "lstm_at(g, i);")
        .tensor("hidden", s.hidden)
        .tensor("gates", s.gates)
        .tensor("cell", s.cell)
        .tensor("kept", s.kept)
        .tensor("state", s.state)
        .tensor("result", s.result)
        .run(s.result.numel());
  } else if (l.mode == kGru) {
    DeviceCall("rnn", "recurrent", "gru_at(g, i);")
        .tensor("hidden", s.hidden)
        .tensor("bias", l.b_hh)
        .tensor("gates", s.gates)
        .tensor("kept", s.kept)
        .tensor("state", s.state)
        .tensor("result", s.result)
        .run(s.result.numel());
  } else {
    DeviceCall("rnn", "recurrent", "plain_at(g, i);")
        .number("bends", l.mode == kTanh ? 1 : 0)
        .tensor("hidden", s.hidden)
        .tensor("gates", s.gates)
        .tensor("state", s.state)
        .tensor("result", s.result)
        .run(s.result.numel());
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
  Tensor gates = input_gates(l);
  Tensor out = l.empty({all, h0.size(1)});
  Tensor h = own(l.h0, l.type), extra = l.empty({0, 0});
  Tensor c = mode == kLstm ? own(l.c0, l.type) : l.empty({0, 0});
  if (mode == kLstm) extra = l.empty({all, width});
  if (mode == kGru) extra = l.empty(gates.sizes());
  Tensor turned = ops::t(l.w_hh);
  for (const Step& step : l.steps) {
    Tensor state = first(h, step.count), result = rows(out, step);
    Cells cells{rows(gates, step), ops::mm(state, turned), {}, {}, {}, {}};
    if (mode == kLstm) cells.cell = first(c, step.count);
    if (mode == kLstm || mode == kGru) cells.kept = rows(extra, step);
    bool projects = l.w_hr.defined();
    if (!projects) cells.state = state;
    cells.result = projects ? l.empty({step.count, width}) : result;
    run_cells(l, cells);
    if (!projects) continue;
    copy_into(state, ops::mm(cells.result, ops::t(l.w_hr)));
    copy_into(result, state);
  }
  return {out, h, c, gates, extra};
}

// Backward -------------------------------------------------------------------

using Eight =
    std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor>;

// What the state was before each step: that after the one before it, or, where
// steps differ in rows, by replaying them.
Tensor states_before(const Layer& l, const Tensor& start, const Tensor& after) {
  Tensor before = l.empty(after.sizes());
  if (l.even && !l.steps.empty()) {
    int64_t count = l.steps[0].count, others = after.size(0) - count;
    int64_t from = l.reverse ? count : 0, to = count - from;
    copy_into(rows(before, l.steps[0]), start);
    if (others > 0) {
      copy_into(ops::narrow(before, 0, to, others),
                ops::narrow(after, 0, from, others));
    }
    return before;
  }
  Tensor state = own(start, l.type);
  for (const Step& step : l.steps) {
    copy_into(rows(before, step), first(state, step.count));
    copy_into(first(state, step.count), rows(after, step));
  }
  return before;
}

struct Backward {
  const Layer& l;
  Tensor y, dy;        // outputs; their gradients, if there are any
  Tensor gates, side;  // activations; Forward's extra
  Tensor dh, dc;
  // Gradients of the gates on the input's side, and on the old state's.
  Tensor changes{}, turned{};
  Tensor before{}, cells{}, dw_hr{};

  void run() {
    before = states_before(l, l.h0, y);
    changes = l.empty(gates.sizes());
    turned = l.mode == kGru ? l.empty(gates.sizes()) : changes;
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
    copy_into(dw_hr, ops::add(dw_hr, ops::mm(ops::t(total), made)));
    return ops::mm(total, l.w_hr);
  }

  // The gradient of the state before becomes `made`, the other sequences'
  // stays.
  void set_state(const Step& step, const Tensor& made) {
    if (l.even) {
      dh = made;
    } else {
      copy_into(first(dh, step.count), made);
    }
  }

  void back(const Step& step) {
    Tensor state = first(dh, step.count), own_gates = rows(gates, step);
    Tensor grad, change = rows(changes, step);
    if (dy.defined()) grad = rows(dy, step);
    if (l.mode == kLstm) {
      if (l.w_hr.defined()) {
        Tensor total = grad.defined() ? Tensor(ops::add(state, grad)) : state;
        state = projected(step, total);
        grad = Tensor();
      }
      DeviceCall("rnn", "recurrent", "lstm_back_at(g, i);")
          .tensor("grad", grad)
          .tensor("state", state)
          .tensor("gates", own_gates)
          .tensor("cell", rows(side, step))
          .tensor("old", rows(cells, step))
          .tensor("grad_cell", first(dc, step.count))
          .tensor("change", change)
          .run(state.numel());
      set_state(step, ops::mm(change, l.w_hh));
    } else if (l.mode == kGru) {
      Tensor direct = l.empty(state.sizes()), to_state = rows(turned, step);
      DeviceCall("rnn", "recurrent", "gru_back_at(g, i);")
          .tensor("old", rows(before, step))
          .tensor("grad", grad)
          .tensor("state", state)
          .tensor("gates", own_gates)
          .tensor("kept", rows(side, step))
          .tensor("direct", direct)
          .tensor("turned", to_state)
          .tensor("change", change)
          .run(state.numel());
      set_state(step, ops::addmm(direct, to_state, l.w_hh, 1, 1));
    } else {
      DeviceCall("rnn", "recurrent", "plain_back_at(g, i);")
          .number("bends", l.mode == kTanh ? 1 : 0)
          .tensor("grad", grad)
          .tensor("state", state)
          .tensor("result", rows(y, step))
          .tensor("change", change)
          .run(state.numel());
      set_state(step, ops::mm(change, l.w_hh));
    }
  }

  // What all steps together say about input and parameters.
  Eight results() const {
    Tensor db_ih, db_hh;
    if (l.b_ih.defined()) {
      int64_t along[] = {0};
      db_ih = ops::sum(changes, IntArrayRef(along));
      db_hh = ops::sum(turned, IntArrayRef(along));
    }
    return {ops::mm(changes, l.w_ih),
            dh,
            dc,
            ops::mm(ops::t(changes), l.x),
            ops::mm(ops::t(turned), before),
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
             as_type(output, l.type),
             as_type(grad_out, l.type),
             as_type(gates, l.type),
             as_type(extra, l.type),
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
