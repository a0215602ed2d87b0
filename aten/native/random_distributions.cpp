// Random numbers whose distribution is given by tensors: normal, poisson,
// binomial and multinomial.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/distribution_samplers.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/random.h>
#include <taeda/gen/native/binomial.h>
#include <taeda/gen/native/exponential_.h>
#include <taeda/gen/native/multinomial.h>
#include <taeda/gen/native/normal.h>
#include <taeda/gen/native/normal_.h>
#include <taeda/gen/native/normal_functional.h>
#include <taeda/gen/native/poisson.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/mul.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace taeda::native {

// normal ---------------------------------------------------------------------

namespace {

template <class I>
void check_real_std(const Spec<I>& std) {
  TAEDA_CHECK(!std.is_complex(),
              "normal expects standard deviation to be non-complex");
}

void check_positive(const Tensor& std) {
  Tensor plain = contiguous_as(std, kDouble);
  const double* data = plain.const_data<double>();
  TAEDA_CHECK(
      std::all_of(
          data, data + plain.numel(), [](double v) { return !(v < 0); }),
      "normal expects all elements of std >= 0.0");
}

}  // namespace

template <class I>
void normal_tensor_float_shape(const Spec<I>& mean,
                               double std,
                               const MaybeGenerator&,
                               Plan<I>& plan) {
  check_std(std);
  plan.set(0, mean.sizes(), mean.dtype());
}
TAEDA_SHAPE(normal_tensor_float_shape);

template <class I>
void normal_float_tensor_shape(double,
                               const Spec<I>& std,
                               const MaybeGenerator&,
                               Plan<I>& plan) {
  check_real_std(std);
  plan.set(0, std.sizes(), std.dtype());
}
TAEDA_SHAPE(normal_float_tensor_shape);

template <class I>
void normal_tensor_tensor_shape(const Spec<I>& mean,
                                const Spec<I>& std,
                                const MaybeGenerator&,
                                Plan<I>& plan) {
  check_real_std(std);
  plan.set(0,
           broadcast_shapes<I>("normal", mean.sizes(), std.sizes()),
           mean.dtype());
}
TAEDA_SHAPE(normal_tensor_tensor_shape);

template <class I>
void normal_float_float_shape(double,
                              double std,
                              ArrayRef<I> size,
                              const MaybeGenerator&,
                              Dtype dtype,
                              MaybeLayout layout,
                              MaybeDevice,
                              MaybeBool,
                              Plan<I>& plan) {
  check_std(std);
  plan_size(plan, size, dtype.value_or(default_dtype()), layout);
}
TAEDA_SHAPE(normal_float_float_shape);

template <class I>
void normal_functional_shape(const Spec<I>& self,
                             double,
                             double std,
                             const MaybeGenerator&,
                             Plan<I>& plan) {
  check_std(std);
  plan.set_like(0, self, self.dtype());
}
TAEDA_SHAPE(normal_functional_shape);

// PyTorch does not resize here.
template <class I>
void normal_tensor_float_out_shape(const Spec<I>&,
                                   double std,
                                   const MaybeGenerator&,
                                   const Spec<I>& out,
                                   Plan<I>& plan) {
  check_std(std);
  plan_into(plan, out.sizes(), out);
}
TAEDA_SHAPE(normal_tensor_float_out_shape);

template <class I>
void normal_float_tensor_out_shape(double,
                                   const Spec<I>& std,
                                   const MaybeGenerator&,
                                   const Spec<I>& out,
                                   Plan<I>& plan) {
  check_real_std(std);
  plan_into(plan, std.sizes(), out);
}
TAEDA_SHAPE(normal_float_tensor_out_shape);

template <class I>
void normal_tensor_tensor_out_shape(const Spec<I>& mean,
                                    const Spec<I>& std,
                                    const MaybeGenerator&,
                                    const Spec<I>& out,
                                    Plan<I>& plan) {
  check_real_std(std);
  plan_into<I>(
      plan, broadcast_shapes<I>("normal", mean.sizes(), std.sizes()), out);
}
TAEDA_SHAPE(normal_tensor_tensor_out_shape);

template <class I>
void normal_float_float_out_shape(double,
                                  double std,
                                  ArrayRef<I> size,
                                  const MaybeGenerator&,
                                  const Spec<I>& out,
                                  Plan<I>& plan) {
  check_std(std);
  plan_into(plan, size, out);
}
TAEDA_SHAPE(normal_float_float_out_shape);

void normal_cpu(const Tensor& mean,
                double std,
                const MaybeGenerator& generator,
                const Tensor& out) {
  normal_(out, 0, std, generator);
  ops::add_(out, mean, 1);
}
void normal_cpu(double mean,
                const Tensor& std,
                const MaybeGenerator& generator,
                const Tensor& out) {
  check_positive(std);
  normal_(out, 0, 1, generator);
  ops::mul_(out, std);
  ops::add_(out, Scalar(mean), 1);
}
void normal_cpu(const Tensor& mean,
                const Tensor& std,
                const MaybeGenerator& generator,
                const Tensor& out) {
  check_positive(std);
  normal_(out, 0, 1, generator);
  ops::mul_(out, std);
  ops::add_(out, mean, 1);
}
void normal_cpu(double mean,
                double std,
                ArrayRef<int64_t>,
                const MaybeGenerator& generator,
                Dtype,
                MaybeLayout,
                MaybeDevice,
                MaybeBool,
                const Tensor& out) {
  normal_(out, mean, std, generator);
}
void normal_cpu(double mean,
                double std,
                ArrayRef<int64_t>,
                const MaybeGenerator& generator,
                const Tensor& out) {
  normal_(out, mean, std, generator);
}
void normal_functional_cpu(const Tensor&,
                           double mean,
                           double std,
                           const MaybeGenerator& generator,
                           const Tensor& out) {
  normal_(out, mean, std, generator);
}

// poisson, binomial ----------------------------------------------------------

template <class I>
void poisson_shape(const Spec<I>& self, const MaybeGenerator&, Plan<I>& plan) {
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(poisson_shape);

void poisson_cpu(const Tensor& self,
                 const MaybeGenerator& generator,
                 const Tensor& out) {
  Tensor rates = contiguous(self);
  LockedGenerator locked(generator);
  visit_floating("poisson_cpu", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    fill_poisson<T>(out.mutable_data<T>(),
                    1,
                    rates.const_data<T>(),
                    1,
                    out.numel(),
                    *locked);
  });
}

template <class I>
void binomial_shape(const Spec<I>& count,
                    const Spec<I>& prob,
                    const MaybeGenerator&,
                    Plan<I>& plan) {
  TAEDA_CHECK(count.dtype() == prob.dtype(),
              "binomial: Found dtype ",
              prob.dtype(),
              " but expected ",
              count.dtype());
  plan.set(0,
           broadcast_shapes<I>("binomial", count.sizes(), prob.sizes()),
           count.dtype());
}
TAEDA_SHAPE(binomial_shape);

void binomial_cpu(const Tensor& count,
                  const Tensor& prob,
                  const MaybeGenerator& generator,
                  const Tensor& out) {
  Tensor trials = make_tensor("binomial", out.sizes(), count.dtype());
  Tensor chances = make_tensor("binomial", out.sizes(), count.dtype());
  copy_into(trials, count);
  copy_into(chances, prob);
  LockedGenerator locked(generator);
  visit_floating("binomial_cpu", count.dtype(), [&](auto tag) {
    using T = decltype(tag);
    fill_binomial<T>(out.mutable_data<T>(),
                     1,
                     trials.const_data<T>(),
                     1,
                     chances.const_data<T>(),
                     1,
                     out.numel(),
                     *locked);
  });
}

// multinomial ----------------------------------------------------------------

namespace {

void check_weights(const Tensor& self) {
  Tensor plain = contiguous_as(self, kDouble);
  const double* w = plain.const_data<double>();
  int64_t width = self.size(-1);
  for (int64_t i = 0; i < plain.numel(); i += width) {
    double sum = 0;
    for (int64_t k = i; k < i + width; ++k) {
      TAEDA_CHECK(w[k] >= 0 && w[k] < INFINITY,
                  "probability tensor contains either `inf`, `nan` or element "
                  "< 0");
      sum += w[k];
    }
    TAEDA_CHECK(sum > 0,
                "invalid multinomial distribution (sum of probabilities <= 0)");
  }
}

// The largest of weight / Exp(1) are a draw without replacement.
void largest_ratios(const Tensor& weights,
                    const Tensor& noise,
                    const Tensor& out) {
  Tensor w = contiguous_as(weights, kDouble), q = contiguous_as(noise, kDouble);
  int64_t width = weights.size(-1), samples = out.size(-1);
  std::vector<int64_t> order(static_cast<size_t>(width));
  std::vector<double> ratio(static_cast<size_t>(width));
  int64_t* to = out.mutable_data<int64_t>();
  for (int64_t row = 0; row < w.numel(); row += width) {
    for (int64_t k = 0; k < width; ++k) {
      double v =
          w.const_data<double>()[row + k] / q.const_data<double>()[row + k];
      // Compared as PyTorch does, in the weights' own precision.
      ratio[k] = weights.dtype() == kDouble ? v : static_cast<float>(v);
    }
    std::iota(order.begin(), order.end(), 0);
    std::partial_sort(
        order.begin(),
        order.begin() + samples,
        order.end(),
        [&](int64_t a, int64_t b) { return ratio[a] > ratio[b]; });
    to = std::copy_n(order.begin(), samples, to);
  }
}

}  // namespace

template <class I>
void multinomial_shape(const Spec<I>& self,
                       I num_samples,
                       bool replacement,
                       const MaybeGenerator&,
                       Plan<I>& plan) {
  TAEDA_CHECK(self.dim() > 0 && self.dim() <= 2,
              "multinomial: prob_dist must be 1 or 2 dim, got ",
              self);
  TAEDA_CHECK(
      self.is_floating_point(),
      "multinomial only supports floating-point dtypes for input, got: ",
      self.dtype());
  TAEDA_CHECK(num_samples > 0,
              "multinomial: cannot sample n_sample <= 0 samples, got ",
              num_samples);
  TAEDA_CHECK(replacement || num_samples <= self.size(-1),
              "cannot sample n_sample > prob_dist.size(-1) samples without "
              "replacement");
  Dims<I> shape(self.sizes());
  shape.back() = num_samples;
  plan.set(0, shape, kLong);
}
TAEDA_SHAPE(multinomial_shape);

void multinomial_cpu(const Tensor& self,
                     int64_t num_samples,
                     bool replacement,
                     const MaybeGenerator& generator,
                     const Tensor& out) {
  if (out.numel() == 0) return;
  if (!replacement || num_samples == 1) {
    check_weights(self);
    Tensor noise = new_like("multinomial", self, {}, {}, {});
    exponential_(noise, 1, generator);
    return largest_ratios(self, noise, out);
  }
  int64_t width = self.size(-1);
  Tensor weights = contiguous(self);
  LockedGenerator locked(generator);
  visit_floating("multinomial", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    int64_t* to = out.mutable_data<int64_t>();
    for (int64_t row = 0; row < weights.numel(); row += width) {
      fill_multinomial<T>(
          to, num_samples, weights.const_data<T>() + row, 1, width, *locked);
      to += num_samples;
    }
  });
}

}  // namespace taeda::native
