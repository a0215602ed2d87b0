// Softmax and its derivative. A row in registers is read once: the largest
// element and the sum of the exponentials are two folds of what is held. Along
// a dim that is not the last, neighbouring threads have neighbouring columns,
// and the sum is kept beside the largest element so far, in one pass.
#pragma once

#include <taeda/aten/native/cuda/rows.cuh>

namespace taeda {

// The hardware's exponential is good enough for what is stored in 16 bits.
template <class S>
__device__ inline float row_exp(float v) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(S) == 2) return ::__expf(v);
  return ::expf(v);
#else
  return math::exp(v);
#endif
}
template <class S>
__device__ inline double row_exp(double v) {
  return math::exp(v);
}

template <class T>
inline constexpr T kLowest = -math::kInfinity<T>;

// {the largest, the sum of the exponentials of what is below it}. A state of
// nothing, or of -infinity alone, has the sum 0.
template <class S, class T>
struct ExponentialSum {
  using Folded = State<T, 2>;
  static __device__ inline Folded none() { return {{kLowest<T>, T(0)}}; }
  static __device__ inline T base_of(T largest) {
    return largest == kLowest<T> ? T(0) : largest;
  }
  static __device__ inline Folded both(Folded a, Folded b) {
    const T largest = a.at[0] > b.at[0] ? a.at[0] : b.at[0];
    const T base = base_of(largest);
    return {{largest,
             a.at[1] * row_exp<S>(a.at[0] - base) +
                 b.at[1] * row_exp<S>(b.at[0] - base)}};
  }
  static __device__ inline Folded with(Folded a, T v) {
    if (v <= a.at[0]) {
      a.at[1] += row_exp<S>(v - base_of(a.at[0]));
      return a;
    }
    const T base = base_of(v);
    return {{v > a.at[0] ? v : a.at[0],
             a.at[1] * row_exp<S>(a.at[0] - base) + row_exp<S>(v - base)}};
  }
  // A larger element first, so that each exponential is computed once.
  template <class Shape, class Packs, class F>
  static __device__ inline Folded of(const Shape& shape,
                                     const Packs& packs,
                                     F meet) {
    Folded state = none();
    shape.each([&](int h, int k, int) {
      const T v = converted<T>(packs[h].at[k]);
      if (v > state.at[0]) state.at[0] = v;
    });
    const T base = base_of(state.at[0]);
    shape.each([&](int h, int k, int) {
      state.at[1] += row_exp<S>(converted<T>(packs[h].at[k]) - base);
    });
    return meet(state);
  }
};

template <class S, bool kLog>
struct SoftmaxRow {
  using T = Accumulated<S>;
  using Sum = ExponentialSum<S, T>;
  using Folded = typename Sum::Folded;
  static constexpr int kInputs = 1;
  static constexpr bool kFolds = true, kWrites = true;

  __device__ inline SoftmaxRow(const RowCall&, Long, Long) {}
  static __device__ inline Folded none() { return Sum::none(); }
  static __device__ inline Folded both(Folded a, Folded b) {
    return Sum::both(a, b);
  }
  template <class Shape, class Packs, class F>
  __device__ inline Folded fold(const Shape& shape,
                                const Packs& packs,
                                F meet) const {
    return Sum::of(shape, packs[0], meet);
  }
  __device__ inline void ready(Folded s) {
    largest = s.at[0];
    scale = kLog ? math::log(s.at[1]) : T(1) / s.at[1];
  }
  __device__ inline T result(T v, T, int) const {
    if constexpr (kLog) return v - largest - scale;
    return row_exp<S>(v - largest) * scale;
  }
  __device__ inline void speak() const {}

  T largest, scale;
};

// in: gradient, result. y (g - sum(g y)), or g - exp(y) sum(g).
template <class S, bool kLog>
struct SoftmaxBackRow {
  using T = Accumulated<S>;
  using Folded = State<T, 1>;
  static constexpr int kInputs = 2;
  static constexpr bool kFolds = true, kWrites = true;

  __device__ inline SoftmaxBackRow(const RowCall&, Long, Long) {}
  static __device__ inline Folded none() { return {{T(0)}}; }
  static __device__ inline Folded both(Folded a, Folded b) {
    return {{a.at[0] + b.at[0]}};
  }
  static __device__ inline T term(T g, T y) { return kLog ? g : g * y; }
  template <class Shape, class Packs, class F>
  __device__ inline Folded fold(const Shape& shape,
                                const Packs& packs,
                                F meet) const {
    Folded sum = none();
    shape.each([&](int h, int k, int) {
      sum.at[0] += term(converted<T>(packs[0][h].at[k]),
                        converted<T>(packs[1][h].at[k]));
    });
    return meet(sum);
  }
  __device__ inline void ready(Folded s) { sum = s.at[0]; }
  __device__ inline T result(T g, T y, int) const {
    return kLog ? g - row_exp<S>(y) * sum : y * (g - sum);
  }
  __device__ inline void speak() const {}

  T sum;
};

template <class S, class>
using Softmax = SoftmaxRow<S, false>;
template <class S, class>
using LogSoftmax = SoftmaxRow<S, true>;
template <class S, class>
using SoftmaxBack = SoftmaxBackRow<S, false>;
template <class S, class>
using LogSoftmaxBack = SoftmaxBackRow<S, true>;

// Rows of `count` elements that stand `width` elements apart: 32 columns and
// kLanes rows of them for a block.
template <class S, bool kLog, int kLanes>
__device__ inline void softmax_columns(const RowCall& call) {
  using T = Accumulated<S>;
  using Sum = ExponentialSum<S, T>;
  using Folded = typename Sum::Folded;
  __shared__ Folded memory[kLanes * 32];
  const int id = static_cast<int>(threadIdx.x);
  const Long column = static_cast<Long>(blockIdx.x) * 32 + id % 32;
  const bool there = column < call.rows;
  const Long at =
      column / call.width * call.width * call.count + column % call.width;
  const S* in = row_at<S>(call.in[0], at);
  Folded mine = Sum::none();
  for (Long i = id / 32; there && i < call.count; i += kLanes) {
    mine = Sum::with(mine, converted<T>(in[i * call.width]));
  }
  memory[id] = mine;
  __syncthreads();
  if (!there) return;
  Folded all = memory[id % 32];
  for (int l = 1; l < kLanes; ++l) {
    all = Sum::both(all, memory[l * 32 + id % 32]);
  }
  SoftmaxRow<S, kLog> row(call, 0, 0);
  row.ready(all);
  S* out = static_cast<S*>(call.out) + at;
  for (Long i = id / 32; i < call.count; i += kLanes) {
    const T v = converted<T>(in[i * call.width]);
    out[i * call.width] = converted<S>(row.result(v, T(0), 0));
  }
}

template <class S, bool kLog, int kLanes>
__device__ inline void softmax_back_columns(const RowCall& call) {
  using T = Accumulated<S>;
  using Row = SoftmaxBackRow<S, kLog>;
  __shared__ T memory[kLanes * 32];
  const int id = static_cast<int>(threadIdx.x);
  const Long column = static_cast<Long>(blockIdx.x) * 32 + id % 32;
  const bool there = column < call.rows;
  const Long at =
      column / call.width * call.width * call.count + column % call.width;
  const S *grad = row_at<S>(call.in[0], at), *y = row_at<S>(call.in[1], at);
  T mine = T(0);
  for (Long i = id / 32; there && i < call.count; i += kLanes) {
    const Long place = i * call.width;
    mine += Row::term(converted<T>(grad[place]), converted<T>(y[place]));
  }
  memory[id] = mine;
  __syncthreads();
  if (!there) return;
  T sum = memory[id % 32];
  for (int l = 1; l < kLanes; ++l) sum += memory[l * 32 + id % 32];
  Row row(call, 0, 0);
  row.ready({{sum}});
  S* out = static_cast<S*>(call.out) + at;
  for (Long i = id / 32; i < call.count; i += kLanes) {
    const Long place = i * call.width;
    out[place] = converted<S>(
        row.result(converted<T>(grad[place]), converted<T>(y[place]), 0));
  }
}

}  // namespace taeda
