// Batch norm: statistics of a channel's elements, which lie in planes (rows for
// the kernels of rows.cuh) or in columns. Partial states, one step that joins
// them for each channel, and one pass that writes.
#pragma once

#include <taeda/aten/native/cuda/row_norms.cuh>

namespace taeda {

template <class S>
using Moments = NormRow<S, S, true, false>;

template <class S, class>
using PlaneMoments = Moments<S>;

// Columns of [rows, channels]: neighbouring threads have neighbouring channels,
// and differences from a column's first element are added, which are small
// where its spread is.
template <class S, int kLanes>
__device__ inline void column_moments(const ChannelCall& call) {
  using T = Accumulated<S>;
  using Folded = State<T, 3>;
  __shared__ Folded memory[kLanes * 32];
  const int id = static_cast<int>(threadIdx.x);
  const Long channel = static_cast<Long>(blockIdx.x) * 32 + id % 32;
  const bool there = channel < call.channels;
  const Long share = (call.rows + call.splits - 1) / call.splits;
  const Long begin = share * blockIdx.y;
  const Long end = begin + share < call.rows ? begin + share : call.rows;
  Folded mine = Moments<S>::none();
  if (there && begin + id / 32 < end) {
    const S* in = row_at<S>(call.in[0], channel);
    const T base = converted<T>(in[(begin + id / 32) * call.channels]);
    T sum = T(0), squares = T(0), count = T(0);
#pragma unroll 4
    for (Long r = begin + id / 32; r < end; r += kLanes) {
      const T v = converted<T>(in[r * call.channels]) - base;
      sum += v;
      squares += v * v;
      count += T(1);
    }
    mine = {{count, base + sum / count, squares - sum * sum / count}};
    if (mine.at[2] < T(0)) mine.at[2] = T(0);
  }
  memory[id] = mine;
  __syncthreads();
  if (id >= 32 || !there) return;
  for (int l = 1; l < kLanes; ++l) {
    mine = Moments<S>::both(mine, memory[l * 32 + id]);
  }
  Folded* states = static_cast<Folded*>(call.states);
  states[blockIdx.y * call.channels + channel] = mine;
}

// in: gradient, input. {sum(g), sum(g (x - mean))} likewise.
template <class S, int kLanes>
__device__ inline void column_slopes(const ChannelCall& call) {
  using T = Accumulated<S>;
  using Folded = State<T, 2>;
  __shared__ Folded memory[kLanes * 32];
  const int id = static_cast<int>(threadIdx.x);
  const Long channel = static_cast<Long>(blockIdx.x) * 32 + id % 32;
  const bool there = channel < call.channels;
  const Long share = (call.rows + call.splits - 1) / call.splits;
  const Long begin = share * blockIdx.y;
  const Long end = begin + share < call.rows ? begin + share : call.rows;
  Folded mine{{T(0), T(0)}};
  if (there) {
    const S *grad = row_at<S>(call.in[0], channel),
            *in = row_at<S>(call.in[1], channel);
    const T mean = static_cast<const T*>(call.mean)[channel];
#pragma unroll 4
    for (Long r = begin + id / 32; r < end; r += kLanes) {
      const T g = converted<T>(grad[r * call.channels]);
      mine.at[0] += g;
      mine.at[1] += g * (converted<T>(in[r * call.channels]) - mean);
    }
  }
  memory[id] = mine;
  __syncthreads();
  if (id >= 32 || !there) return;
  for (int l = 1; l < kLanes; ++l) {
    for (int i = 0; i < 2; ++i) mine.at[i] += memory[l * 32 + id].at[i];
  }
  Folded* states = static_cast<Folded*>(call.states);
  states[blockIdx.y * call.channels + channel] = mine;
}

// State `i` of a channel, of `outer` groups of `splits` states.
template <class Folded>
__device__ inline Folded channel_state(const ChannelCall& call,
                                       Long channel,
                                       Long i) {
  const Long group = i / call.splits, split = i - group * call.splits;
  return static_cast<const Folded*>(
      call.states)[(group * call.channels + channel) * call.splits + split];
}

// A warp joins the states of a channel.
template <class S>
__device__ inline void join_moments(const ChannelCall& call) {
  using T = Accumulated<S>;
  using Folded = State<T, 3>;
  const Long channel =
      static_cast<Long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Folded all = Moments<S>::none();
  const Long states = channel < call.channels ? call.outer * call.splits : 0;
  for (Long i = lane; i < states; i += 32) {
    all = Moments<S>::both(all, channel_state<Folded>(call, channel, i));
  }
  all = meet_states<32>(
      all,
      [](Folded a, Folded b) { return Moments<S>::both(a, b); },
      static_cast<Folded*>(nullptr));
  if (lane != 0 || channel >= call.channels) return;
  const T count = static_cast<T>(call.count), mean = all.at[1];
  static_cast<T*>(call.mean)[channel] = mean;
  static_cast<T*>(call.rstd)[channel] =
      T(1) / math::sqrt(all.at[2] / count + static_cast<T>(call.eps));
  const T part = static_cast<T>(call.momentum);
  auto move = [&](void* running, T value) {
    if (running == nullptr) return;
    T& at = static_cast<T*>(running)[channel];
    at = at * (T(1) - part) + value * part;
  };
  move(call.running_mean, mean);
  move(call.running_var, all.at[2] / (count - T(1)));
}

// Sums of all states, and the gradients of factors and summands, of type W.
template <class S, class W>
__device__ inline void join_slopes(const ChannelCall& call) {
  using T = Accumulated<S>;
  using Folded = State<T, 2>;
  const Long channel =
      static_cast<Long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  Folded all{{T(0), T(0)}};
  auto both = [](Folded a, Folded b) {
    return Folded{{a.at[0] + b.at[0], a.at[1] + b.at[1]}};
  };
  const Long states = channel < call.channels ? call.outer * call.splits : 0;
  for (Long i = lane; i < states; i += 32) {
    all = both(all, channel_state<Folded>(call, channel, i));
  }
  all = meet_states<32>(all, both, static_cast<Folded*>(nullptr));
  if (lane != 0 || channel >= call.channels) return;
  static_cast<Folded*>(call.sums)[channel] = all;
  const T rstd = static_cast<const T*>(call.rstd)[channel];
  auto write = [&](void* to, T value) {
    if (to != nullptr) static_cast<W*>(to)[channel] = converted<W>(value);
  };
  write(call.of_factor, all.at[1] * rstd);
  write(call.of_summand, all.at[0]);
}

// first, second: means and 1 / deviations of channels. A row is a plane of a
// channel, or one element of each.
template <class S, class W, bool kColumns>
struct ChannelRow {
  using T = Accumulated<S>;
  using Folded = State<T, 1>;
  static constexpr int kInputs = 1;
  static constexpr bool kFolds = false, kWrites = true;

  __device__ inline ChannelRow(const RowCall& c, Long row, Long b)
      : call(c), begin(b) {
    if constexpr (!kColumns) set(row % call.groups);
  }
  static __device__ inline Folded none() { return {{T(0)}}; }
  static __device__ inline Folded both(Folded a, Folded) { return a; }
  template <class Shape, class Packs, class F>
  __device__ inline Folded fold(const Shape&, const Packs&, F) const {
    return none();
  }
  __device__ inline void ready(Folded) {}
  __device__ inline void set(Long channel) {
    mean = static_cast<const T*>(call.first)[channel];
    scale = static_cast<const T*>(call.second)[channel];
    if (call.factors != nullptr) {
      scale *= converted<T>(static_cast<const W*>(call.factors)[channel]);
    }
    shift = T(0);
    if (call.summands != nullptr) {
      shift = converted<T>(static_cast<const W*>(call.summands)[channel]);
    }
  }
  __device__ inline T result(T v, T, int column) {
    if constexpr (kColumns) set(begin + column);
    return (v - mean) * scale + shift;
  }
  __device__ inline void speak() const {}

  const RowCall& call;
  Long begin;
  T mean, scale, shift;
};

// in: gradient, input. scale (g - mean(g) - (x - mean) rstd^2 mean(g (x -
// mean))), or scale g where the statistics do not depend on the input.
template <class S, class W, bool kColumns>
struct ChannelBackRow {
  using T = Accumulated<S>;
  using Folded = State<T, 1>;
  static constexpr int kInputs = 2;
  static constexpr bool kFolds = false, kWrites = true;

  __device__ inline ChannelBackRow(const RowCall& c, Long row, Long b)
      : call(c), begin(b) {
    if constexpr (!kColumns) set(row % call.groups);
  }
  static __device__ inline Folded none() { return {{T(0)}}; }
  static __device__ inline Folded both(Folded a, Folded) { return a; }
  template <class Shape, class Packs, class F>
  __device__ inline Folded fold(const Shape&, const Packs&, F) const {
    return none();
  }
  __device__ inline void ready(Folded) {}
  __device__ inline void set(Long channel) {
    const T rstd = static_cast<const T*>(call.second)[channel];
    scale = rstd;
    if (call.factors != nullptr) {
      scale *= converted<T>(static_cast<const W*>(call.factors)[channel]);
    }
    mean = slope = of_gradient = T(0);
    if (call.sums == nullptr) return;
    const T* sums = static_cast<const T*>(call.sums) + 2 * channel;
    const T part = static_cast<T>(call.eps);  // 1 / elements of a channel
    mean = static_cast<const T*>(call.first)[channel];
    of_gradient = sums[0] * part;
    slope = sums[1] * part * rstd * rstd;
  }
  __device__ inline T result(T g, T v, int column) {
    if constexpr (kColumns) set(begin + column);
    return scale * (g - of_gradient - (v - mean) * slope);
  }
  __device__ inline void speak() const {}

  const RowCall& call;
  Long begin;
  T mean, scale, slope, of_gradient;
};

template <class S, class W>
using ChannelPlanes = ChannelRow<S, W, false>;
template <class S, class W>
using ChannelColumns = ChannelRow<S, W, true>;
template <class S, class W>
using ChannelPlanesBack = ChannelBackRow<S, W, false>;
template <class S, class W>
using ChannelColumnsBack = ChannelBackRow<S, W, true>;

}  // namespace taeda
