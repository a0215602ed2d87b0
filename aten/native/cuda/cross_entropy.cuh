// Cross entropy of rows of logits: their log sums are folded as softmax's, and
// nothing of the size of the logits is written; the gradient is made of the
// logits in one pass.
#pragma once

#include <taeda/aten/native/cuda/formula.cuh>
#include <taeda/aten/native/cuda/softmax.cuh>

namespace taeda {

// The target of a row, or -1 where it counts for nothing. An index that is
// outside is written down (Note [Faults of kernels]).
__device__ inline Long target_of(const RowCall& call, Long row) {
  const Long target = static_cast<const Long*>(call.targets)[row];
  if (target == call.ignored) return -1;
  if (target >= 0 && target < call.count) return target;
  const Caller caller{static_cast<Fault*>(call.fault), call.op};
  report_fault(caller, target, call.count);
  return -1;
}

template <class T, class W>
__device__ inline T class_weight(const RowCall& call, Long target) {
  if (call.factors == nullptr) return T(1);
  return converted<T>(static_cast<const W*>(call.factors)[target]);
}

// first: log sums; second: {loss, weight} of each row.
template <class S, class W>
struct CrossEntropy {
  using T = Accumulated<S>;
  using Sum = ExponentialSum<S, T>;
  using Folded = typename Sum::Folded;
  static constexpr int kInputs = 1;
  static constexpr bool kFolds = true, kWrites = false;

  __device__ inline CrossEntropy(const RowCall& c, Long r, Long)
      : call(c), row(r) {}
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
    log_sum = s.at[0] + math::log(s.at[1]);
  }
  __device__ inline T result(T v, T, int) const { return v; }
  __device__ inline void speak() const {
    const Long target = target_of(call, row);
    T loss = T(0), weight = T(0);
    if (target >= 0) {
      weight = class_weight<T, W>(call, target);
      const S* at = row_at<S>(call.in[0], row * call.count + target);
      loss = (log_sum - converted<T>(*at)) * weight;
    }
    static_cast<T*>(call.first)[row] = log_sum;
    T* both = static_cast<T*>(call.second) + 2 * row;
    both[0] = loss;
    both[1] = weight;
    if (call.out != nullptr) {
      static_cast<S*>(call.out)[row] = converted<S>(loss);
    }
  }

  const RowCall& call;
  Long row;
  T log_sum;
};

// scale: gradients, of each row (flag 1) or of all; divisor: what the mean is
// divided by.
template <class S, class W>
struct CrossEntropyBack {
  using T = Accumulated<S>;
  using Folded = State<T, 1>;
  static constexpr int kInputs = 1;
  static constexpr bool kFolds = false, kWrites = true;

  __device__ inline CrossEntropyBack(const RowCall& call, Long row, Long b)
      : begin(b) {
    target = target_of(call, row);
    log_sum = static_cast<const T*>(call.first)[row];
    factor = T(0);
    if (target < 0) return;
    factor = static_cast<const T*>(call.scale)[call.flag ? row : 0] *
             class_weight<T, W>(call, target);
    if (call.divisor != nullptr) {
      factor /= *static_cast<const T*>(call.divisor);
    }
  }
  static __device__ inline Folded none() { return {{T(0)}}; }
  static __device__ inline Folded both(Folded a, Folded) { return a; }
  template <class Shape, class Packs, class F>
  __device__ inline Folded fold(const Shape&, const Packs&, F) const {
    return none();
  }
  __device__ inline void ready(Folded) {}
  // A row that counts for nothing gives 0, whatever its logits are.
  __device__ inline T result(T v, T, int column) const {
    if (target < 0) return T(0);
    const T chosen = begin + column == target ? T(1) : T(0);
    return (row_exp<S>(v - log_sum) - chosen) * factor;
  }
  __device__ inline void speak() const {}

  Long begin, target;
  T log_sum, factor;
};

// One block adds the losses of all rows, in the same order each time. flag: 1
// for the mean, 2 for the sum, 0 where the loss of each row is the result.
template <class S>
__device__ inline void cross_entropy_total(const RowCall& call) {
  using T = Accumulated<S>;
  using Folded = State<T, 2>;
  __shared__ Folded memory[32];
  const T* losses = static_cast<const T*>(call.second);
  Folded mine{{T(0), T(0)}};
  for (Long r = threadIdx.x; r < call.rows; r += 1024) {
    mine.at[0] += losses[2 * r];
    mine.at[1] += losses[2 * r + 1];
  }
  const Folded all = meet_states<1024>(
      mine,
      [](Folded a, Folded b) {
        return Folded{{a.at[0] + b.at[0], a.at[1] + b.at[1]}};
      },
      memory);
  if (threadIdx.x != 0) return;
  static_cast<T*>(call.first)[0] = call.flag == 0 ? T(0) : all.at[1];
  if (call.flag == 0) return;
  const T loss = call.flag == 1 ? all.at[0] / all.at[1] : all.at[0];
  static_cast<S*>(call.out)[0] = converted<S>(loss);
}

}  // namespace taeda
