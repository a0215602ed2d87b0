// A step of recurrent cells: a thread for each unit of each row. Gates stand
// beside each other in a row, in PyTorch's order: i f g o (LSTM), r z n (GRU).
#pragma once

#include <taeda/aten/native/cuda/products.cuh>

namespace taeda {

template <class V>
__device__ inline V squash(V x) {
  return V(1) / (V(1) + math::exp(-x));
}

// The unit i of a step, and its gates among those of its row.
struct Unit {
  Long row, column, width;

  __device__ inline Unit(Long i, Long units)
      : row(i / units), column(i % units), width(units) {}
  template <class T>
  __device__ inline typename T::Value of(const T& t) const {
    return t.at(row, column);
  }
  template <class T, class V>
  __device__ inline void set(const T& t, V value) const {
    t.store(t.place_of(row, column), value);
  }
  template <class T>
  __device__ inline typename T::Value gate(const T& t, Long k) const {
    return t.at(row, k * width + column);
  }
  template <class T, class V>
  __device__ inline void set_gate(const T& t, Long k, V value) const {
    t.store(t.place_of(row, k * width + column), value);
  }
};

// `hidden` is what comes from the old state. Gates become their activations,
// the cell the new one.
template <class G>
__device__ inline void lstm_at(const G& g, Long i) {
  const Unit u(i, g.result.size(1));
  const auto in = squash(u.gate(g.gates, 0) + u.gate(g.hidden, 0));
  const auto keep = squash(u.gate(g.gates, 1) + u.gate(g.hidden, 1));
  const auto made = math::tanh(u.gate(g.gates, 2) + u.gate(g.hidden, 2));
  const auto out = squash(u.gate(g.gates, 3) + u.gate(g.hidden, 3));
  const auto cell = keep * u.of(g.cell) + in * made;
  u.set_gate(g.gates, 0, in);
  u.set_gate(g.gates, 1, keep);
  u.set_gate(g.gates, 2, made);
  u.set_gate(g.gates, 3, out);
  u.set(g.cell, cell);
  u.set(g.result, out * math::tanh(cell));
}

// Gates become their gradients, `grad_cell` that of the old cell.
template <class G>
__device__ inline void lstm_back_at(const G& g, Long i) {
  using V = typename decltype(g.gates)::Value;
  const Unit u(i, g.cell.size(1));
  const V in = u.gate(g.gates, 0), keep = u.gate(g.gates, 1);
  const V made = u.gate(g.gates, 2), out = u.gate(g.gates, 3);
  const V grad = u.of(g.grad), bent = math::tanh(u.of(g.cell));
  const V total = u.of(g.grad_cell) + grad * out * (V(1) - bent * bent);
  u.set(g.grad_cell, total * keep);
  u.set_gate(g.gates, 0, total * made * in * (V(1) - in));
  u.set_gate(g.gates, 1, total * u.of(g.old) * keep * (V(1) - keep));
  u.set_gate(g.gates, 2, total * in * (V(1) - made * made));
  u.set_gate(g.gates, 3, grad * bent * out * (V(1) - out));
}

// `hidden` has the bias of the old state's side, and stays.
template <class G>
__device__ inline void gru_at(const G& g, Long i) {
  const Unit u(i, g.result.size(1));
  const auto reset = squash(u.gate(g.gates, 0) + u.gate(g.hidden, 0));
  const auto keep = squash(u.gate(g.gates, 1) + u.gate(g.hidden, 1));
  const auto made =
      math::tanh(u.gate(g.gates, 2) + reset * u.gate(g.hidden, 2));
  u.set_gate(g.gates, 0, reset);
  u.set_gate(g.gates, 1, keep);
  u.set_gate(g.gates, 2, made);
  u.set(g.result, made + keep * (u.of(g.state) - made));
}

// Gates become the gradients on the input's side, `hidden` those on the old
// state's; `grad` becomes what reaches the old state directly.
template <class G>
__device__ inline void gru_back_at(const G& g, Long i) {
  using V = typename decltype(g.gates)::Value;
  const Unit u(i, g.old.size(1));
  const V reset = u.gate(g.gates, 0), keep = u.gate(g.gates, 1);
  const V made = u.gate(g.gates, 2), grad = u.of(g.grad);
  const V to_made = grad * (V(1) - keep) * (V(1) - made * made);
  const V to_keep = grad * (u.of(g.old) - made) * keep * (V(1) - keep);
  const V to_reset = to_made * u.gate(g.hidden, 2) * reset * (V(1) - reset);
  u.set(g.grad, grad * keep);
  for (Long side = 0; side < 2; ++side) {
    const auto& to = side == 0 ? g.gates : g.hidden;
    u.set_gate(to, 0, to_reset);
    u.set_gate(to, 1, to_keep);
    u.set_gate(to, 2, side == 0 ? to_made : to_made * reset);
  }
}

template <class G>
__device__ inline void plain_at(const G& g, Long i) {
  using V = typename decltype(g.gates)::Value;
  const Unit u(i, g.result.size(1));
  const V sum = u.of(g.gates) + u.of(g.hidden);
  const V cut = sum < V(0) ? V(0) : sum;
  u.set(g.gates, sum);
  u.set(g.result, g.bends.truth() ? math::tanh(sum) : cut);
}

template <class G>
__device__ inline void plain_back_at(const G& g, Long i) {
  using V = typename decltype(g.gates)::Value;
  const Unit u(i, g.state.size(1));
  const V state = u.of(g.state), grad = u.of(g.grad);
  const V cut = state > V(0) ? grad : V(0);
  u.set(g.gates, g.bends.truth() ? grad * (V(1) - state * state) : cut);
}

}  // namespace taeda
