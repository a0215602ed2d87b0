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

// What is written where there is such a tensor.
template <class T, class V>
__device__ inline void set_if_there(const Unit& u, const T& t, V value) {
  if constexpr (!T::missing) u.set(t, value);
}

// `hidden` is what comes from the old state. Gates become their activations;
// `cell` and `state` the new ones, of which `kept` and `result` are copies.
template <class G>
__device__ inline void lstm_at(const G& g, Long i) {
  const Unit u(i, g.result.size(1));
  const auto in = squash(u.gate(g.gates, 0) + u.gate(g.hidden, 0));
  const auto keep = squash(u.gate(g.gates, 1) + u.gate(g.hidden, 1));
  const auto made = math::tanh(u.gate(g.gates, 2) + u.gate(g.hidden, 2));
  const auto out = squash(u.gate(g.gates, 3) + u.gate(g.hidden, 3));
  const auto cell = keep * u.of(g.cell) + in * made;
  const auto state = out * math::tanh(cell);
  u.set_gate(g.gates, 0, in);
  u.set_gate(g.gates, 1, keep);
  u.set_gate(g.gates, 2, made);
  u.set_gate(g.gates, 3, out);
  u.set(g.cell, cell);
  u.set(g.kept, cell);
  set_if_there(u, g.state, state);
  u.set(g.result, state);
}

// The gradient of a step's result: of what follows, and of the caller.
template <class G>
__device__ inline auto grad_at(const G& g, const Unit& u) {
  if constexpr (decltype(g.grad)::missing) {
    return u.of(g.state);
  } else {
    return u.of(g.state) + u.of(g.grad);
  }
}

// `change` are the gradients of the gates, `grad_cell` becomes that of the old
// cell.
template <class G>
__device__ inline void lstm_back_at(const G& g, Long i) {
  using V = typename decltype(g.gates)::Value;
  const Unit u(i, g.cell.size(1));
  const V in = u.gate(g.gates, 0), keep = u.gate(g.gates, 1);
  const V made = u.gate(g.gates, 2), out = u.gate(g.gates, 3);
  const V grad = grad_at(g, u), bent = math::tanh(u.of(g.cell));
  const V total = u.of(g.grad_cell) + grad * out * (V(1) - bent * bent);
  u.set(g.grad_cell, total * keep);
  u.set_gate(g.change, 0, total * made * in * (V(1) - in));
  u.set_gate(g.change, 1, total * u.of(g.old) * keep * (V(1) - keep));
  u.set_gate(g.change, 2, total * in * (V(1) - made * made));
  u.set_gate(g.change, 3, grad * bent * out * (V(1) - out));
}

// `kept` is what comes from the old state, with its side's bias.
template <class G>
__device__ inline void gru_at(const G& g, Long i) {
  using V = typename decltype(g.gates)::Value;
  const Unit u(i, g.result.size(1));
  V hidden[3];
  for (Long k = 0; k < 3; ++k) {
    hidden[k] = u.gate(g.hidden, k);
    if constexpr (!decltype(g.bias)::missing) {
      hidden[k] += g.bias.at(k * u.width + u.column);
    }
    u.set_gate(g.kept, k, hidden[k]);
  }
  const V reset = squash(u.gate(g.gates, 0) + hidden[0]);
  const V keep = squash(u.gate(g.gates, 1) + hidden[1]);
  const V made = math::tanh(u.gate(g.gates, 2) + reset * hidden[2]);
  u.set_gate(g.gates, 0, reset);
  u.set_gate(g.gates, 1, keep);
  u.set_gate(g.gates, 2, made);
  const V state = made + keep * (u.of(g.state) - made);
  u.set(g.state, state);
  u.set(g.result, state);
}

// `change` are the gradients on the input's side, `turned` those on the old
// state's; `direct` is what reaches the old state directly.
template <class G>
__device__ inline void gru_back_at(const G& g, Long i) {
  using V = typename decltype(g.gates)::Value;
  const Unit u(i, g.old.size(1));
  const V reset = u.gate(g.gates, 0), keep = u.gate(g.gates, 1);
  const V made = u.gate(g.gates, 2), grad = grad_at(g, u);
  const V to_made = grad * (V(1) - keep) * (V(1) - made * made);
  const V to_keep = grad * (u.of(g.old) - made) * keep * (V(1) - keep);
  const V to_reset = to_made * u.gate(g.kept, 2) * reset * (V(1) - reset);
  u.set(g.direct, grad * keep);
  for (Long side = 0; side < 2; ++side) {
    const auto& to = side == 0 ? g.change : g.turned;
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
  const V state = g.bends.truth() ? math::tanh(sum) : cut;
  u.set(g.gates, sum);
  u.set(g.state, state);
  u.set(g.result, state);
}

template <class G>
__device__ inline void plain_back_at(const G& g, Long i) {
  using V = typename decltype(g.change)::Value;
  const Unit u(i, g.result.size(1));
  const V result = u.of(g.result), grad = grad_at(g, u);
  const V cut = result > V(0) ? grad : V(0);
  u.set(g.change, g.bends.truth() ? grad * (V(1) - result * result) : cut);
}

}  // namespace taeda
