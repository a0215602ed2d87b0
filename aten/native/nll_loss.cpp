// Negative log likelihood of target classes, over rows or over planes.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/native/loss_reduction.h>
#include <taeda/gen/native/nll_loss.h>
#include <taeda/gen/native/nll_loss2d.h>
#include <taeda/gen/native/nll_loss2d_backward.h>
#include <taeda/gen/native/nll_loss2d_forward.h>
#include <taeda/gen/native/nll_loss_backward.h>
#include <taeda/gen/native/nll_loss_forward.h>
#include <taeda/gen/native/nll_loss_nd.h>
#include <taeda/gen/ops/nll_loss.h>
#include <taeda/gen/ops/nll_loss2d.h>
#include <taeda/gen/ops/nll_loss2d_forward.h>
#include <taeda/gen/ops/nll_loss_forward.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/zeros_like.h>

#include <cmath>

namespace taeda::native {

namespace {

// [n, classes, plane] with one target per (n, plane).
struct Problem {
  int64_t n, classes, plane;
  Tensor target, weight;
  int64_t ignored;
  int64_t count() const { return n * plane; }
};

template <class I>
void check_target_type(std::string_view op, const Spec<I>& target) {
  TAEDA_CHECK(target.dtype() == kLong || target.dtype() == kByte,
              op,
              ": expected target dtype to be Long or Byte, but got ",
              target.dtype());
}

template <class I>
void check_weight(std::string_view op,
                  const Spec<I>& self,
                  const Spec<I>& weight,
                  const I& classes) {
  if (!weight.defined()) return;
  TAEDA_CHECK(weight.dim() == 1 && weight.numel() == classes,
              op,
              ": weight tensor should be defined either for all ",
              classes,
              " classes or no classes but got weight tensor of shape: ",
              weight.sizes());
  TAEDA_CHECK(weight.dtype() == self.dtype(),
              op,
              ": expected scalar type ",
              self.dtype(),
              " but found ",
              weight.dtype());
}

// Rows: [n, c] with [n], or [c] with one target.
template <class I>
void check_rows(std::string_view op,
                const Spec<I>& self,
                const Spec<I>& target,
                const Spec<I>& weight) {
  TAEDA_CHECK(self.dim() > 0 && self.dim() <= 2,
              op,
              ": input tensor should be 1D or 2D, got ",
              self);
  TAEDA_CHECK(target.dim() <= 1,
              "0D or 1D target tensor expected, multi-target not supported");
  bool single = self.dim() == 1;
  if (single) {
    TAEDA_CHECK_AS(
        Value,
        target.dim() == 0 || target.sizes()[0] == 1,
        "For 1D input, 1D target must have size 1, but got target size: ",
        target.numel());
  }
  TAEDA_CHECK(
      single || (target.dim() == 1 && self.sizes()[0] == target.sizes()[0]),
      "size mismatch (got input: ",
      self.sizes(),
      ", target: ",
      target.sizes(),
      ")");
  check_target_type(op, target);
  check_weight(op, self, weight, self.sizes()[self.dim() - 1]);
}

Problem rows_problem(const Tensor& self,
                     const Tensor& target,
                     const OptionalTensor& weight,
                     int64_t ignored) {
  int64_t rows = self.dim() == 1 ? 1 : self.sizes()[0];
  return {rows, self.size(-1), 1, target, or_undefined(weight), ignored};
}

template <class I>
void check_planes(std::string_view op,
                  const Spec<I>& self,
                  const Spec<I>& target,
                  const Spec<I>& weight) {
  TAEDA_CHECK(target.dim() == 3,
              "only batches of spatial targets supported (3D tensors) but got "
              "targets of dimension: ",
              target.dim());
  TAEDA_CHECK(self.dim() == 4,
              "only batches of spatial inputs supported (4D tensors), but got "
              "input of dimension: ",
              self.dim());
  bool fits = self.sizes()[0] == target.sizes()[0] &&
              self.sizes()[2] == target.sizes()[1] &&
              self.sizes()[3] == target.sizes()[2];
  TAEDA_CHECK(fits,
              "size mismatch (got input: ",
              self.sizes(),
              " , target: ",
              target.sizes());
  check_target_type(op, target);
  check_weight(op, self, weight, self.sizes()[1]);
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

template <class I>
void nll_loss_forward_shape(const Spec<I>& self,
                            const Spec<I>& target,
                            const Spec<I>& weight,
                            int64_t reduction,
                            I,
                            Plan<I>& plan) {
  check_rows("nll_loss_forward", self, target, weight);
  Dims<I> sizes;
  if (reduction == kNoReduction && self.dim() == 2) sizes.push_back(self.sizes()[0]);
  plan.set(0, sizes, self.dtype());
  plan.set(1, ArrayRef<I>(), self.dtype());
}
TAEDA_SHAPE(nll_loss_forward_shape);

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

template <class I>
void nll_loss_backward_shape(const Spec<I>&,
                             const Spec<I>& self,
                             const Spec<I>& target,
                             const Spec<I>& weight,
                             int64_t,
                             I,
                             const Spec<I>&,
                             Plan<I>& plan) {
  check_rows("nll_loss_backward", self, target, weight);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(nll_loss_backward_shape);

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

template <class I>
void nll_loss2d_forward_shape(const Spec<I>& self,
                              const Spec<I>& target,
                              const Spec<I>& weight,
                              int64_t reduction,
                              I,
                              Plan<I>& plan) {
  check_planes("nll_loss2d_forward", self, target, weight);
  Dims<I> sizes;
  if (reduction == kNoReduction) sizes = Dims<I>(target.sizes());
  plan.set(0, sizes, self.dtype());
  plan.set(1, ArrayRef<I>(), self.dtype());
}
TAEDA_SHAPE(nll_loss2d_forward_shape);

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

template <class I>
void nll_loss2d_backward_shape(const Spec<I>&,
                               const Spec<I>& self,
                               const Spec<I>& target,
                               const Spec<I>& weight,
                               int64_t,
                               I,
                               const Spec<I>&,
                               Plan<I>& plan) {
  check_planes("nll_loss2d_backward", self, target, weight);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(nll_loss2d_backward_shape);

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

Tensor nll_loss(const Tensor& self,
                const Tensor& target,
                const OptionalTensor& weight,
                int64_t reduction,
                int64_t ignore_index) {
  return std::get<0>(
      ops::nll_loss_forward(self, target, weight, reduction, ignore_index));
}

Tensor nll_loss2d(const Tensor& self,
                  const Tensor& target,
                  const OptionalTensor& weight,
                  int64_t reduction,
                  int64_t ignore_index) {
  return std::get<0>(
      ops::nll_loss2d_forward(self, target, weight, reduction, ignore_index));
}

Tensor nll_loss_nd(const Tensor& self,
                   const Tensor& target,
                   const OptionalTensor& weight,
                   int64_t reduction,
                   int64_t ignore_index) {
  TAEDA_CHECK_AS(Value,
                 self.dim() >= 1,
                 "Expected 1 or more dimensions (got ",
                 self.dim(),
                 ")");
  if (self.dim() != 1) {
    SymInt batch = target.dim() == 0 ? SymInt(0) : symbolic_sizes(target)[0];
    TAEDA_CHECK_AS(Value,
                   symbolic_sizes(self)[0] == batch,
                   "Expected input batch_size (",
                   symbolic_sizes(self)[0],
                   ") to match target batch_size (",
                   batch,
                   ").");
  }
  if (self.dim() <= 2) {
    return ops::nll_loss(self, target, weight, reduction, ignore_index);
  }
  if (self.dim() == 4) {
    return ops::nll_loss2d(self, target, weight, reduction, ignore_index);
  }
  ArrayRef<SymInt> sizes = symbolic_sizes(self);
  const SymInt &n = sizes[0], &c = sizes[1];
  Dims<SymInt> wanted{n};
  SymInt plane = 1;
  for (const SymInt& s : sizes.slice(2)) wanted.push_back(s), plane *= s;
  TAEDA_CHECK(same_sizes(symbolic_sizes(target), wanted),
              "Expected target size ",
              ArrayRef<SymInt>(wanted),
              ", got ",
              symbolic_sizes(target));
  Tensor out = ops::nll_loss2d(reshape_sized(self, {n, c, SymInt(1), plane}),
                               reshape_sized(target, {n, SymInt(1), plane}),
                               weight,
                               reduction,
                               ignore_index);
  return reduction == kNoReduction ? reshape_sized(out, wanted) : out;
}

}  // namespace taeda::native
