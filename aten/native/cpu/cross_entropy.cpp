// Cross entropy of rows of logits with class targets, and its gradient.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/kernels/cross_entropy.h>
#include <taeda/aten/native/loss_reduction.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_cross_entropy_rows.h>
#include <taeda/gen/native/_cross_entropy_rows_backward.h>

#include <algorithm>
#include <vector>

namespace taeda::native {

namespace {

template <class T>
const auto& kernels() {
  const CrossEntropyTable& table = TAEDA_ISA_TABLE(kCrossEntropyTable);
  if constexpr (std::is_same_v<T, float>) {
    return table.f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return table.f64;
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return table.bf16;
  } else {
    return table.f16;
  }
}

int64_t grain_of(int64_t n) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(n, 1));
}

}  // namespace

void _cross_entropy_rows_cpu(const Tensor& self,
                             const Tensor& target,
                             const OptionalTensor& weight,
                             int64_t reduction,
                             int64_t ignore_index,
                             const Tensor& output,
                             const Tensor& log_sum_exp,
                             const Tensor& total_weight) {
  constexpr std::string_view kName = "cross_entropy_loss";
  int64_t rows = self.sizes()[0], n = self.sizes()[1];
  ScalarType type = compute_type(self.dtype());
  Tensor x = contiguous(self), t = contiguous_as(target, kLong);
  Tensor w = parameter_as(or_undefined(weight), type);
  visit_norm_type(kName, self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using A = lane_sum_t<T>;
    const T* in = x.const_data<T>();
    A* l = log_sum_exp.mutable_data<A>();
    parallel_for(0, rows, grain_of(n), [&](int64_t from, int64_t to) {
      kernels<T>().log_sum_exp(in + from * n, l + from, to - from, n);
    });
    const int64_t* goal = t.const_data<int64_t>();
    const A* factors = data_or_null<A>(w);
    T* y = output.mutable_data<T>();
    double sum = 0, weights = 0;
    for (int64_t r = 0; r < rows; ++r) {
      A loss = 0;
      if (goal[r] != ignore_index) {
        TAEDA_CHECK_AS(Index,
                       goal[r] >= 0 && goal[r] < n,
                       "Target ",
                       goal[r],
                       " is out of bounds.");
        A factor = factors ? factors[goal[r]] : A(1);
        loss = (l[r] - static_cast<A>(in[r * n + goal[r]])) * factor;
        sum += loss, weights += factor;
      }
      if (reduction == kNoReduction) y[r] = static_cast<T>(loss);
    }
    if (reduction == kMeanReduction) sum /= weights;
    if (reduction != kNoReduction) *y = static_cast<T>(static_cast<A>(sum));
    // As nll_loss_forward: what nothing is divided by is 0.
    if (reduction == kNoReduction) weights = 0;
    *total_weight.mutable_data<A>() = static_cast<A>(weights);
  });
}

void _cross_entropy_rows_backward_cpu(const Tensor& grad,
                                      const Tensor& self,
                                      const Tensor& target,
                                      const OptionalTensor& weight,
                                      int64_t reduction,
                                      int64_t ignore_index,
                                      const Tensor& log_sum_exp,
                                      const Tensor& total_weight,
                                      const Tensor& out) {
  constexpr std::string_view kName = "cross_entropy_loss_backward";
  int64_t rows = self.sizes()[0], n = self.sizes()[1];
  ScalarType type = compute_type(self.dtype());
  Tensor x = contiguous(self), t = contiguous_as(target, kLong);
  Tensor w = parameter_as(or_undefined(weight), type);
  Tensor g = contiguous_as(grad, type);
  Tensor sums = contiguous_as(log_sum_exp, type);
  Tensor weights = contiguous_as(total_weight, type);
  visit_norm_type(kName, self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using A = lane_sum_t<T>;
    const T* in = x.const_data<T>();
    const int64_t* goal = t.const_data<int64_t>();
    const A* factors = data_or_null<A>(w);
    const A* dy = g.const_data<A>();
    A scale =
        reduction == kMeanReduction ? A(1) / *weights.const_data<A>() : A(1);
    std::vector<A> factor(static_cast<size_t>(rows), A(0));
    for (int64_t r = 0; r < rows; ++r) {
      if (goal[r] == ignore_index) continue;
      TAEDA_CHECK_AS(Index,
                     goal[r] >= 0 && goal[r] < n,
                     "Target ",
                     goal[r],
                     " is out of bounds.");
      A own = factors ? factors[goal[r]] : A(1);
      factor[static_cast<size_t>(r)] =
          dy[reduction == kNoReduction ? r : 0] * own * scale;
    }
    T* dx = out.mutable_data<T>();
    const A* l = sums.const_data<A>();
    parallel_for(0, rows, grain_of(n), [&](int64_t from, int64_t to) {
      kernels<T>().backward(in + from * n,
                            l + from,
                            goal + from,
                            factor.data() + from,
                            dx + from * n,
                            to - from,
                            n);
    });
  });
}

}  // namespace taeda::native
