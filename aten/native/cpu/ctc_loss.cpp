// Connectionist temporal classification (Graves et al., 2006), in log space.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/ctc_loss.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_ctc_loss.h>
#include <taeda/gen/native/_ctc_loss_backward.h>
#include <taeda/gen/ops/_ctc_loss.h>
#include <taeda/gen/ops/_ctc_loss_backward.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace taeda::native {

namespace {

template <class T>
constexpr T kNever = -std::numeric_limits<T>::infinity();

// log(exp(a) + exp(b) + exp(c)), rounded once.
template <class T>
T log_add(T a, T b, T c = kNever<T>) {
  T most = std::max(std::max(a, b), c);
  if (most == kNever<T>) return most;
  T sum = std::exp(a - most) + std::exp(b - most) + std::exp(c - most);
  return most + std::log(sum);
}

// One sequence: labels with blanks before, between and behind them are states.
struct Sequence {
  const int64_t* labels;
  int64_t length, steps, blank;
  int64_t states() const { return 2 * length + 1; }
  int64_t label(int64_t s) const { return s % 2 == 0 ? blank : labels[s / 2]; }
  // Whether a path may go from state s - 2 to s: between unlike labels.
  bool skips(int64_t s) const {
    return s % 2 == 1 && s >= 2 && label(s) != label(s - 2);
  }
};

struct Sequences {
  Tensor labels;
  std::vector<Sequence> all;
};

Sequences sequences_of(const Tensor& targets,
                       IntArrayRef input_lengths,
                       IntArrayRef target_lengths,
                       int64_t blank,
                       int64_t classes) {
  Sequences found{contiguous_as(targets, kLong), {}};
  const int64_t* at = found.labels.const_data<int64_t>();
  for (size_t b = 0; b < input_lengths.size(); ++b) {
    Sequence s{at, target_lengths[b], input_lengths[b], blank};
    for (int64_t i = 0; i < s.length; ++i) {
      TAEDA_CHECK(s.labels[i] >= 0 && s.labels[i] < classes,
                  "ctc_loss: target ",
                  s.labels[i],
                  " out of range for ",
                  classes,
                  " classes");
    }
    found.all.push_back(s);
    at += targets.dim() == 1 ? s.length : targets.sizes()[1];
  }
  return found;
}

// Row-major steps of log_probs [steps, batch, classes] of one sequence.
template <class T>
struct Lattice {
  const T* probs;
  int64_t step;
  T prob(int64_t t, int64_t c) const { return probs[t * step + c]; }
};

// Log probabilities of all beginnings of the sequence, [steps, states]; returns
// its negative log likelihood.
template <class T>
T forward_pass(const Sequence& q, const Lattice<T>& p, T* alpha, int64_t row) {
  if (q.steps == 0) return q.length == 0 ? T(0) : -kNever<T>;
  alpha[0] = p.prob(0, q.blank);
  if (q.length > 0) alpha[1] = p.prob(0, q.labels[0]);
  for (int64_t t = 1; t < q.steps; ++t) {
    const T* from = alpha + (t - 1) * row;
    for (int64_t s = 0; s < q.states(); ++s) {
      T before = s > 0 ? from[s - 1] : kNever<T>;
      T skipped = q.skips(s) ? from[s - 2] : kNever<T>;
      alpha[t * row + s] =
          log_add(from[s], before, skipped) + p.prob(t, q.label(s));
    }
  }
  const T* last = alpha + (q.steps - 1) * row;
  T all = last[q.states() - 1];
  return -(q.length > 0 ? log_add(all, last[q.states() - 2]) : all);
}

// Adds to `sums` [steps, classes], in log space, the paths through each class.
template <class T>
void backward_pass(const Sequence& q,
                   const Lattice<T>& p,
                   const T* alpha,
                   int64_t row,
                   T* sums) {
  int64_t last = q.states() - 1;
  std::vector<T> beta(static_cast<size_t>(q.states()), kNever<T>), next;
  for (int64_t t = q.steps - 1; t >= 0; --t) {
    next = beta;
    for (int64_t s = last; s >= 0; --s) {
      T sum = s + 1 >= last ? T(0) : kNever<T>;
      if (t + 1 < q.steps) {
        const T* from = next.data() + s;
        T after = s < last ? from[1] : kNever<T>;
        bool skips = s + 2 <= last && q.skips(s + 2);
        sum = log_add(from[0], after, skips ? from[2] : kNever<T>);
      }
      int64_t c = q.label(s);
      T value = sum + p.prob(t, c);
      beta[static_cast<size_t>(s)] = value;
      T& total = sums[t * p.step + c];
      total = log_add(total, alpha[t * row + s] + value);
    }
  }
}

template <class F>
void visit_ctc_type(ScalarType t, F&& f) {
  if (t == kFloat) return f(float{});
  if (t == kDouble) return f(double{});
  not_implemented_for("ctc_loss_cpu", t);
}

}  // namespace

void _ctc_loss_cpu(const Tensor& log_probs,
                   const Tensor& targets,
                   ArrayRef<int64_t> input_lengths,
                   ArrayRef<int64_t> target_lengths,
                   int64_t blank,
                   bool,
                   const Tensor& out0,
                   const Tensor& out1) {
  Tensor probs = contiguous(log_probs);
  int64_t batch = probs.sizes()[1], classes = probs.sizes()[2];
  Sequences all =
      sequences_of(targets, input_lengths, target_lengths, blank, classes);
  int64_t states = out1.sizes()[2], block = out1.sizes()[1] * states;
  visit_ctc_type(probs.dtype(), [&](auto tag) {
    using T = decltype(tag);
    T* loss = out0.mutable_data<T>();
    T* alpha = out1.mutable_data<T>();
    std::fill(alpha, alpha + out1.numel(), kNever<T>);
    parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        Lattice<T> p{probs.const_data<T>() + b * classes, batch * classes};
        loss[b] = forward_pass(
            all.all[static_cast<size_t>(b)], p, alpha + b * block, states);
      }
    });
  });
}

void _ctc_loss_backward_cpu(const Tensor& grad,
                            const Tensor& log_probs,
                            const Tensor& targets,
                            ArrayRef<int64_t> input_lengths,
                            ArrayRef<int64_t> target_lengths,
                            const Tensor& neg_log_likelihood,
                            const Tensor& log_alpha,
                            int64_t blank,
                            bool zero_infinity,
                            const Tensor& out) {
  Tensor probs = contiguous(log_probs), alpha = contiguous(log_alpha);
  Tensor g = contiguous(grad), loss = contiguous(neg_log_likelihood);
  int64_t batch = probs.sizes()[1], classes = probs.sizes()[2];
  Sequences all =
      sequences_of(targets, input_lengths, target_lengths, blank, classes);
  int64_t states = alpha.sizes()[2], block = alpha.sizes()[1] * states;
  int64_t step = batch * classes;
  fill_with(out, int64_t{0});
  visit_ctc_type(probs.dtype(), [&](auto tag) {
    using T = decltype(tag);
    parallel_for(0, batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t b = begin; b < end; ++b) {
        const Sequence& q = all.all[static_cast<size_t>(b)];
        T nll = loss.const_data<T>()[b], unit = g.const_data<T>()[b];
        if (zero_infinity && nll == -kNever<T>) continue;
        Lattice<T> p{probs.const_data<T>() + b * classes, step};
        T* sums = out.mutable_data<T>() + b * classes;
        for (int64_t t = 0; t < q.steps; ++t) {
          std::fill(sums + t * step, sums + t * step + classes, kNever<T>);
        }
        const T* beginnings = alpha.const_data<T>() + b * block;
        backward_pass(q, p, beginnings, states, sums);
        for (int64_t t = 0; t < q.steps; ++t) {
          for (int64_t c = 0; c < classes; ++c) {
            T& value = sums[t * step + c];
            T log_prob = p.prob(t, c);
            value =
                (std::exp(log_prob) - std::exp(value + nll - log_prob)) * unit;
          }
        }
      }
    });
  });
}

std::tuple<Tensor, Tensor> _ctc_loss_of_tensors(const Tensor& log_probs,
                                                const Tensor& targets,
                                                const Tensor& input_lengths,
                                                const Tensor& target_lengths,
                                                int64_t blank,
                                                bool zero_infinity) {
  Lengths steps = list_of(input_lengths), labels = list_of(target_lengths);
  return ops::_ctc_loss(
      log_probs, targets, steps, labels, blank, zero_infinity);
}

Tensor _ctc_loss_backward_of_tensors(const Tensor& grad,
                                     const Tensor& log_probs,
                                     const Tensor& targets,
                                     const Tensor& input_lengths,
                                     const Tensor& target_lengths,
                                     const Tensor& neg_log_likelihood,
                                     const Tensor& log_alpha,
                                     int64_t blank,
                                     bool zero_infinity) {
  Lengths steps = list_of(input_lengths), labels = list_of(target_lengths);
  return ops::_ctc_loss_backward(grad,
                                 log_probs,
                                 targets,
                                 steps,
                                 labels,
                                 neg_log_likelihood,
                                 log_alpha,
                                 blank,
                                 zero_infinity);
}

}  // namespace taeda::native
