// Negative log likelihood of target classes, over rows or over planes.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/loss_reduction.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/nll_loss2d_backward.h>
#include <taeda/gen/native/nll_loss2d_forward.h>
#include <taeda/gen/native/nll_loss_backward.h>
#include <taeda/gen/native/nll_loss_forward.h>

namespace taeda::native {

namespace {

// [n, classes, plane] with one target per (n, plane).
struct Problem {
  int64_t n, classes, plane;
  Tensor target, weight;
  int64_t ignored;
  int64_t count() const { return n * plane; }
};

Problem rows_problem(const Tensor& self,
                     const Tensor& target,
                     const OptionalTensor& weight,
                     int64_t ignored) {
  int64_t rows = self.dim() == 1 ? 1 : self.sizes()[0];
  return {rows, self.size(-1), 1, target, or_undefined(weight), ignored};
}

Problem planes_problem(const Tensor& self,
                       const Tensor& target,
                       const OptionalTensor& weight,
                       int64_t ignored) {
  return {self.sizes()[0],
          self.sizes()[1],
          self.sizes()[2] * self.sizes()[3],
          target,
          or_undefined(weight),
          ignored};
}

// Calls f(position, class, weight) for every target that counts, and
// skip(position) for the ignored ones.
template <class A, class F, class G>
void each_target(const Problem& p, F&& f, G&& skip) {
  Tensor target = contiguous_as(p.target, kLong);
  Tensor weight = p.weight.defined()
                      ? contiguous_as(p.weight, scalar_type_of<A>)
                      : p.weight;
  const int64_t* t = target.const_data<int64_t>();
  const A* w = data_or_null<A>(weight);
  for (int64_t i = 0; i < p.count(); ++i) {
    if (t[i] == p.ignored) {
      skip(i);
      continue;
    }
    TAEDA_CHECK_AS(Index,
                   t[i] >= 0 && t[i] < p.classes,
                   "Target ",
                   t[i],
                   " is out of bounds.");
    f(i, t[i], w ? w[t[i]] : A(1));
  }
}

void forward(const Tensor& self,
             const Problem& p,
             int64_t reduction,
             const Tensor& out,
             const Tensor& total) {
  Tensor x = contiguous(self);
  visit_norm_type("nll_loss_out_frame", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using A = lane_sum_t<T>;
    const T* in = x.const_data<T>();
    T* y = out.mutable_data<T>();
    double sum = 0, weights = 0;
    auto at = [&](int64_t i, int64_t c) {
      return ((i / p.plane) * p.classes + c) * p.plane + i % p.plane;
    };
    each_target<A>(
        p,
        [&](int64_t i, int64_t c, A w) {
          A loss = -static_cast<A>(in[at(i, c)]) * w;
          if (reduction == kNoReduction) y[i] = static_cast<T>(loss);
          sum += loss, weights += w;
        },
        [&](int64_t i) {
          if (reduction == kNoReduction) y[i] = static_cast<T>(A(0));
        });
    if (reduction == kMeanReduction) sum /= weights;
    if (reduction != kNoReduction) *y = static_cast<T>(static_cast<A>(sum));
    *total.mutable_data<T>() =
        static_cast<T>(static_cast<A>(reduction == kNoReduction ? 0 : weights));
  });
}

void backward(std::string_view op,
              const Tensor& grad_output,
              const Tensor& self,
              const Problem& p,
              int64_t reduction,
              const Tensor& total_weight,
              const Tensor& out) {
  fill_with(out, int64_t{0});
  if (out.numel() == 0) return;
  Tensor g = contiguous_as(grad_output, self.dtype());
  visit_norm_type(op, self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using A = lane_sum_t<T>;
    const T* dy = g.const_data<T>();
    T* dx = out.mutable_data<T>();
    A scale = A(1);
    if (reduction == kMeanReduction) {
      scale /= static_cast<A>(*contiguous(total_weight).const_data<T>());
    }
    each_target<A>(
        p,
        [&](int64_t i, int64_t c, A w) {
          A got = static_cast<A>(dy[reduction == kNoReduction ? i : 0]);
          int64_t at = ((i / p.plane) * p.classes + c) * p.plane + i % p.plane;
          dx[at] = static_cast<T>(-got * w * scale);
        },
        [](int64_t) {});
  });
}

}  // namespace

void nll_loss_forward_cpu(const Tensor& self,
                          const Tensor& target,
                          const OptionalTensor& weight,
                          int64_t reduction,
                          int64_t ignore_index,
                          const Tensor& output,
                          const Tensor& total_weight) {
  Problem p = rows_problem(self, target, weight, ignore_index);
  forward(self, p, reduction, output, total_weight);
}

void nll_loss_backward_cpu(const Tensor& grad_output,
                           const Tensor& self,
                           const Tensor& target,
                           const OptionalTensor& weight,
                           int64_t reduction,
                           int64_t ignore_index,
                           const Tensor& total_weight,
                           const Tensor& out) {
  Problem p = rows_problem(self, target, weight, ignore_index);
  backward(
      "nll_loss_backward", grad_output, self, p, reduction, total_weight, out);
}

void nll_loss2d_forward_cpu(const Tensor& self,
                            const Tensor& target,
                            const OptionalTensor& weight,
                            int64_t reduction,
                            int64_t ignore_index,
                            const Tensor& output,
                            const Tensor& total_weight) {
  Problem p = planes_problem(self, target, weight, ignore_index);
  forward(self, p, reduction, output, total_weight);
}

void nll_loss2d_backward_cpu(const Tensor& grad_output,
                             const Tensor& self,
                             const Tensor& target,
                             const OptionalTensor& weight,
                             int64_t reduction,
                             int64_t ignore_index,
                             const Tensor& total_weight,
                             const Tensor& out) {
  Problem p = planes_problem(self, target, weight, ignore_index);
  backward("nll_loss2d_backward",
           grad_output,
           self,
           p,
           reduction,
           total_weight,
           out);
}

}  // namespace taeda::native
