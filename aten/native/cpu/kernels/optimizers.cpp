#include <taeda/aten/native/cpu/kernels/optimizers.h>

#include <taeda/aten/native/cpu/kernels/isa.h>
#include <taeda/aten/native/cpu/kernels/lanes.h>

#include <algorithm>
#include <cmath>

TAEDA_ISA_BEGIN

namespace {

// The parameter, its gradient and up to three tensors of state; those that a
// rule was not given are null.
template <class A>
struct Streams {
  A *p, *g, *s0, *s1, *s2;
};

// The gradient as the rule sees it: signed, with weight decay.
template <class A>
struct Gradient {
  A sign, decay;
  explicit Gradient(const OptimizerNumbers& k, bool decays)
      : sign(k.maximize ? A(-1) : A(1)),
        decay(decays ? static_cast<A>(k.weight_decay) : A(0)) {}
  [[gnu::always_inline]] A operator()(A g, A p) const {
    return g * sign + p * decay;
  }
};

// With a gradient scaler the gradients themselves are unscaled in place, as in
// PyTorch: they are read after the step.
template <class A>
void unscale(A* g, int64_t n, const OptimizerNumbers& k) {
  if (!k.scaled) return;
  A scale = static_cast<A>(k.grad_scale);
  for (int64_t i = 0; i < n; ++i) g[i] /= scale;
}

// Momentum SGD. In the first step the buffer becomes the gradient itself,
// without damping.
struct Sgd {
  template <class A>
  static void run(const Streams<A>& s, int64_t n, const OptimizerNumbers& k) {
    A* __restrict p = s.p;
    const A* __restrict g = s.g;
    A* __restrict b = s.s0;
    Gradient<A> gradient(k, true);
    A lr = static_cast<A>(k.lr), momentum = static_cast<A>(k.momentum);
    if (b == nullptr) {
      for (int64_t i = 0; i < n; ++i) p[i] -= lr * gradient(g[i], p[i]);
      return;
    }
    // The buffer may be uninitialised in the first step, and 0 * NaN is NaN.
    A keep = k.first ? A(0) : momentum;
    A fresh = k.first ? A(1) : static_cast<A>(1 - k.dampening);
    if (k.first) std::fill(b, b + n, A(0));
    if (k.nesterov) {
      for (int64_t i = 0; i < n; ++i) {
        A d = gradient(g[i], p[i]);
        b[i] = b[i] * keep + d * fresh;
        p[i] -= lr * (d + momentum * b[i]);
      }
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      A d = gradient(g[i], p[i]);
      b[i] = b[i] * keep + d * fresh;
      p[i] -= lr * b[i];
    }
  }
};

// Adam, and AdamW where the decay is decoupled: then it shrinks the parameter
// and stays out of the gradient. The caller has put the bias corrections into
// step_size and correction. With AMSGrad, s2 holds the largest second moment so
// far.
struct Adam {
  template <class A>
  static void run(const Streams<A>& s, int64_t n, const OptimizerNumbers& k) {
    A* __restrict p = s.p;
    const A* __restrict g = s.g;
    A* __restrict m = s.s0;
    A* __restrict v = s.s1;
    A* __restrict top = s.s2;
    Gradient<A> gradient(k, !k.decoupled);
    A shrink = k.decoupled ? static_cast<A>(1 - k.lr * k.weight_decay) : A(1);
    A toward = static_cast<A>(1 - k.beta1);
    A keep = static_cast<A>(k.beta2), fresh = static_cast<A>(1 - k.beta2);
    A step = static_cast<A>(k.step_size), eps = static_cast<A>(k.eps);
    A correction = static_cast<A>(k.correction);
    if (top == nullptr) {
      for (int64_t i = 0; i < n; ++i) {
        A x = p[i], d = gradient(g[i], x);
        m[i] += (d - m[i]) * toward;
        v[i] = v[i] * keep + fresh * d * d;
        p[i] = x * shrink - step * m[i] / (std::sqrt(v[i]) / correction + eps);
      }
      return;
    }
    for (int64_t i = 0; i < n; ++i) {
      A x = p[i], d = gradient(g[i], x);
      m[i] += (d - m[i]) * toward;
      v[i] = v[i] * keep + fresh * d * d;
      top[i] = top[i] > v[i] ? top[i] : v[i];
      p[i] = x * shrink - step * m[i] / (std::sqrt(top[i]) / correction + eps);
    }
  }
};

// The caller has put the decay of the learning rate into step_size.
struct Adagrad {
  template <class A>
  static void run(const Streams<A>& s, int64_t n, const OptimizerNumbers& k) {
    A* __restrict p = s.p;
    const A* __restrict g = s.g;
    A* __restrict sum = s.s0;
    Gradient<A> gradient(k, true);
    A lr = static_cast<A>(k.step_size), eps = static_cast<A>(k.eps);
    for (int64_t i = 0; i < n; ++i) {
      A d = gradient(g[i], p[i]);
      sum[i] += d * d;
      p[i] -= lr * d / (std::sqrt(sum[i]) + eps);
    }
  }
};

// s1 (the mean gradient) and s2 (momentum) are there when the variants that
// need them were asked for, so each variant is a loop without branches.
struct Rmsprop {
  template <class A, bool kCentred, bool kMomentum>
  static void loop(const Streams<A>& s, int64_t n, const OptimizerNumbers& k) {
    A* __restrict p = s.p;
    const A* __restrict g = s.g;
    A* __restrict v = s.s0;
    A* __restrict mean = s.s1;
    A* __restrict b = s.s2;
    Gradient<A> gradient(k, true);
    A keep = static_cast<A>(k.beta2), fresh = static_cast<A>(1 - k.beta2);
    A lr = static_cast<A>(k.lr), eps = static_cast<A>(k.eps);
    A momentum = static_cast<A>(k.momentum);
    for (int64_t i = 0; i < n; ++i) {
      A d = gradient(g[i], p[i]);
      v[i] = v[i] * keep + fresh * d * d;
      A square = v[i];
      if constexpr (kCentred) {
        mean[i] += (d - mean[i]) * fresh;
        square -= mean[i] * mean[i];
      }
      A change = d / (std::sqrt(square) + eps);
      if constexpr (kMomentum) {
        b[i] = b[i] * momentum + change;
        change = b[i];
      }
      p[i] -= lr * change;
    }
  }
  template <class A>
  static void run(const Streams<A>& s, int64_t n, const OptimizerNumbers& k) {
    if (s.s1 && s.s2) return loop<A, true, true>(s, n, k);
    if (s.s1) return loop<A, true, false>(s, n, k);
    if (s.s2) return loop<A, false, true>(s, n, k);
    loop<A, false, false>(s, n, k);
  }
};

// 16-bit parameters pass through float buffers, block by block.
template <class Rule, class T>
void apply(void* const* pointers, int64_t n, const OptimizerNumbers& k) {
  using A = lane_sum_t<T>;
  if constexpr (std::is_same_v<T, A>) {
    auto at = [&](int i) { return static_cast<A*>(pointers[i]); };
    Streams<A> s{at(0), at(1), at(2), at(3), at(4)};
    unscale(s.g, n, k);
    Rule::template run<A>(s, n, k);
  } else {
    constexpr int64_t kBlock = 256;
    A buffer[kOptimizerPointers][kBlock];
    for (int64_t start = 0; start < n; start += kBlock) {
      int64_t count = std::min(kBlock, n - start);
      A* wide[kOptimizerPointers];
      for (int i = 0; i < kOptimizerPointers; ++i) {
        wide[i] = pointers[i] ? buffer[i] : nullptr;
        if (!pointers[i]) continue;
        const T* from = static_cast<const T*>(pointers[i]) + start;
        for (int64_t j = 0; j < count; ++j) {
          buffer[i][j] = static_cast<A>(from[j]);
        }
      }
      Streams<A> s{wide[0], wide[1], wide[2], wide[3], wide[4]};
      unscale(s.g, count, k);
      Rule::template run<A>(s, count, k);
      for (int i = 0; i < kOptimizerPointers; ++i) {
        // Gradients have changed only if they were unscaled.
        if (!pointers[i] || (i == 1 && !k.scaled)) continue;
        T* to = static_cast<T*>(pointers[i]) + start;
        for (int64_t j = 0; j < count; ++j) {
          to[j] = static_cast<T>(buffer[i][j]);
        }
      }
    }
  }
}

#define TAEDA_RULE(R) \
  {apply<R, float>, apply<R, double>, apply<R, BFloat16>, apply<R, Half>}

}  // namespace

extern const OptimizerTable kOptimizerTable = {TAEDA_RULE(Sgd),
                                               TAEDA_RULE(Adam),
                                               TAEDA_RULE(Adagrad),
                                               TAEDA_RULE(Rmsprop)};
#undef TAEDA_RULE

TAEDA_ISA_END
