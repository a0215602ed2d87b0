// A step of an optimizer for all its parameters: one pass over parameter,
// gradient and state. What hangs on the count of steps is worked out once in
// each block, from counts on the device, so that the host never waits.
#pragma once

#include <taeda/aten/native/cuda/tables.cuh>

namespace taeda {

// Lists: parameter, gradient, then state.
template <class T>
struct StepNumbers {
  T lr, step_size, correction;
};

struct SgdRule {
  template <class T, class E>
  static __device__ inline void apply(const OptimizerCall& c,
                                      const StepNumbers<T>& k,
                                      T d,
                                      E& e) {
    if (!e.has(2)) {
      e.set(0, e.at(0) - k.lr * d);
      return;
    }
    T buffer = d;
    if (!c.first) {
      buffer = e.at(2) * static_cast<T>(c.momentum) +
               d * static_cast<T>(1 - c.dampening);
    }
    e.set(2, buffer);
    if (c.nesterov) buffer = d + static_cast<T>(c.momentum) * buffer;
    e.set(0, e.at(0) - k.lr * buffer);
  }
};

struct AdamRule {
  template <class T, class E>
  static __device__ inline void apply(const OptimizerCall& c,
                                      const StepNumbers<T>& k,
                                      T d,
                                      E& e) {
    const T x = e.at(0);
    const T shrink =
        c.decoupled ? T(1) - k.lr * static_cast<T>(c.weight_decay) : T(1);
    const T m = e.at(2) + (d - e.at(2)) * static_cast<T>(1 - c.beta1);
    const T v =
        e.at(3) * static_cast<T>(c.beta2) + static_cast<T>(1 - c.beta2) * d * d;
    T most = v;
    if (e.has(4)) {
      most = e.at(4) > v ? e.at(4) : v;
      e.set(4, most);
    }
    e.set(2, m);
    e.set(3, v);
    const T size = math::sqrt(most) / k.correction + static_cast<T>(c.eps);
    e.set(0, x * shrink - k.step_size * m / size);
  }
};

struct AdagradRule {
  template <class T, class E>
  static __device__ inline void apply(const OptimizerCall& c,
                                      const StepNumbers<T>& k,
                                      T d,
                                      E& e) {
    const T sum = e.at(2) + d * d;
    e.set(2, sum);
    const T size = math::sqrt(sum) + static_cast<T>(c.eps);
    e.set(0, e.at(0) - k.step_size * d / size);
  }
};

struct RmspropRule {
  template <class T, class E>
  static __device__ inline void apply(const OptimizerCall& c,
                                      const StepNumbers<T>& k,
                                      T d,
                                      E& e) {
    const T fresh = static_cast<T>(1 - c.beta2);
    const T v = e.at(2) * static_cast<T>(c.beta2) + fresh * d * d;
    e.set(2, v);
    T square = v;
    if (e.has(3)) {
      const T mean = e.at(3) + (d - e.at(3)) * fresh;
      e.set(3, mean);
      square -= mean * mean;
    }
    T change = d / (math::sqrt(square) + static_cast<T>(c.eps));
    if (e.has(4)) {
      change = e.at(4) * static_cast<T>(c.momentum) + change;
      e.set(4, change);
    }
    e.set(0, e.at(0) - k.lr * change);
  }
};

// One element of each list.
template <class T, class S, class Packs>
struct StepElement {
  Packs& packs;
  S* const* lists;
  int k;
  __device__ inline bool has(int l) const { return lists[l] != nullptr; }
  __device__ inline T at(int l) const { return converted<T>(packs[l].at[k]); }
  __device__ inline void set(int l, T v) { packs[l].at[k] = converted<S>(v); }
};

// base^n for a whole n, which a count of steps is.
__device__ inline double whole_power(double base, double n) {
  double power = 1;
  for (auto left = static_cast<unsigned>(n); left != 0; left >>= 1) {
    if ((left & 1u) != 0) power *= base;
    base *= base;
  }
  return power;
}

template <class Rule, class S, class R>
__device__ inline void optimizer_step(const OptimizerCall& call) {
  using T = Accumulated<S>;
  if (call.found_inf != nullptr && *call.found_inf == 1.0f) return;
  const TableChunk chunk(call.table);
  __shared__ StepNumbers<T> shared;
  if (threadIdx.x == 0) {
    const float* step = call.step[chunk.tensor];
    const double t = step == nullptr ? call.count[chunk.tensor] : *step;
    double lr = call.lr;
    if (call.rate != nullptr) {
      lr = converted<double>(*static_cast<const R*>(call.rate));
    }
    double step_size = lr, correction = 1;
    if constexpr (math::kIsSame<Rule, AdamRule>) {
      step_size = lr / (1 - whole_power(call.beta1, t));
      correction = math::sqrt(1 - whole_power(call.beta2, t));
    } else if constexpr (math::kIsSame<Rule, AdagradRule>) {
      step_size = lr / (1 + (t - 1) * call.momentum);
    }
    shared = {static_cast<T>(lr),
              static_cast<T>(step_size),
              static_cast<T>(correction)};
  }
  __syncthreads();
  const StepNumbers<T> numbers = shared;
  S* lists[kTableLists];
  for (int l = 0; l < kTableLists; ++l) {
    lists[l] = chunk.memory<S>(call.table, l);
  }
  const bool scaled = call.grad_scale != nullptr;
  const T scale = scaled ? static_cast<T>(*call.grad_scale) : T(1);
  const T decay = call.decoupled ? T(0) : static_cast<T>(call.weight_decay);
  // A buffer that has no value yet is not read.
  const unsigned read = call.first ? 0x3u : 0x1fu;
  const unsigned written = scaled ? 0x1fu : 0x1du;
  sweep<kTableLists, S>(lists,
                        chunk.count,
                        call.table.aligned != 0,
                        read,
                        written,
                        [&](auto& packs, int k) {
                          StepElement<T, S, decltype(packs)> e{packs, lists, k};
                          T grad = e.at(1);
                          if (scaled) {
                            grad /= scale;
                            e.set(1, grad);
                            grad = e.at(1);
                          }
                          if (call.maximize) grad = -grad;
                          Rule::template apply<T>(
                              call, numbers, grad + e.at(0) * decay, e);
                        });
}

}  // namespace taeda
