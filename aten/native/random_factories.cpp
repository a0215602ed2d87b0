// New tensors of random numbers.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cpu/distribution_fill.h>
#include <taeda/aten/native/cpu/distribution_samplers.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/random.h>
#include <taeda/gen/native/bernoulli.h>
#include <taeda/gen/native/binomial.h>
#include <taeda/gen/native/exponential_.h>
#include <taeda/gen/native/multinomial.h>
#include <taeda/gen/native/normal.h>
#include <taeda/gen/native/normal_.h>
#include <taeda/gen/native/normal_functional.h>
#include <taeda/gen/native/poisson.h>
#include <taeda/gen/native/rand.h>
#include <taeda/gen/native/rand_like.h>
#include <taeda/gen/native/randint.h>
#include <taeda/gen/native/randint_like.h>
#include <taeda/gen/native/randn.h>
#include <taeda/gen/native/randn_like.h>
#include <taeda/gen/native/random_.h>
#include <taeda/gen/native/randperm.h>
#include <taeda/gen/native/uniform_.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/mul.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace taeda::native {

using Dtype = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;
using MaybeFormat = std::optional<MemoryFormat>;

Tensor rand(ArrayRef<int64_t> size,
            const MaybeGenerator& generator,
            Dtype dtype,
            MaybeLayout layout,
            MaybeDevice device,
            MaybeBool) {
  Tensor out = new_tensor("rand", size, dtype, layout, device);
  uniform_(out, 0, 1, generator);
  return out;
}
Tensor rand(ArrayRef<int64_t> size,
            Dtype dtype,
            MaybeLayout layout,
            MaybeDevice device,
            MaybeBool pin) {
  return rand(size, std::nullopt, dtype, layout, device, pin);
}
Tensor rand_like(const Tensor& self,
                 const MaybeGenerator& generator,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice device,
                 MaybeBool,
                 MaybeFormat format) {
  check_layout("rand_like", layout);
  Tensor out = new_like("rand_like", self, dtype, device, format);
  uniform_(out, 0, 1, generator);
  return out;
}
Tensor rand_like(const Tensor& self,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice device,
                 MaybeBool pin,
                 MaybeFormat format) {
  return rand_like(self, std::nullopt, dtype, layout, device, pin, format);
}

Tensor randn(ArrayRef<int64_t> size,
             const MaybeGenerator& generator,
             Dtype dtype,
             MaybeLayout layout,
             MaybeDevice device,
             MaybeBool) {
  Tensor out = new_tensor("randn", size, dtype, layout, device);
  normal_(out, 0, 1, generator);
  return out;
}
Tensor randn(ArrayRef<int64_t> size,
             Dtype dtype,
             MaybeLayout layout,
             MaybeDevice device,
             MaybeBool pin) {
  return randn(size, std::nullopt, dtype, layout, device, pin);
}
Tensor randn_like(const Tensor& self,
                  const MaybeGenerator& generator,
                  Dtype dtype,
                  MaybeLayout layout,
                  MaybeDevice device,
                  MaybeBool,
                  MaybeFormat format) {
  check_layout("randn_like", layout);
  Tensor out = new_like("randn_like", self, dtype, device, format);
  normal_(out, 0, 1, generator);
  return out;
}
Tensor randn_like(const Tensor& self,
                  Dtype dtype,
                  MaybeLayout layout,
                  MaybeDevice device,
                  MaybeBool pin,
                  MaybeFormat format) {
  return randn_like(self, std::nullopt, dtype, layout, device, pin, format);
}

// Into a tensor that is there: drawn in the order of its memory.
void rand_out(ArrayRef<int64_t> size,
              const MaybeGenerator& generator,
              const Tensor& out) {
  resize_output(out, size);
  uniform_(out, 0, 1, generator);
}
void rand_out(ArrayRef<int64_t> size, const Tensor& out) {
  rand_out(size, std::nullopt, out);
}
void randn_out(ArrayRef<int64_t> size,
               const MaybeGenerator& generator,
               const Tensor& out) {
  resize_output(out, size);
  normal_(out, 0, 1, generator);
}
void randn_out(ArrayRef<int64_t> size, const Tensor& out) {
  randn_out(size, std::nullopt, out);
}

// Integers -------------------------------------------------------------------

Tensor randint(int64_t low,
               int64_t high,
               ArrayRef<int64_t> size,
               const MaybeGenerator& generator,
               Dtype dtype,
               MaybeLayout layout,
               MaybeDevice device,
               MaybeBool) {
  Tensor out =
      new_tensor("randint", size, dtype.value_or(kLong), layout, device);
  random_(out, low, std::optional<int64_t>(high), generator);
  return out;
}
Tensor randint(int64_t low,
               int64_t high,
               ArrayRef<int64_t> size,
               Dtype dtype,
               MaybeLayout layout,
               MaybeDevice device,
               MaybeBool pin) {
  return randint(low, high, size, std::nullopt, dtype, layout, device, pin);
}
Tensor randint(int64_t high,
               ArrayRef<int64_t> size,
               const MaybeGenerator& generator,
               Dtype dtype,
               MaybeLayout layout,
               MaybeDevice device,
               MaybeBool pin) {
  return randint(0, high, size, generator, dtype, layout, device, pin);
}
Tensor randint(int64_t high,
               ArrayRef<int64_t> size,
               Dtype dtype,
               MaybeLayout layout,
               MaybeDevice device,
               MaybeBool pin) {
  return randint(0, high, size, std::nullopt, dtype, layout, device, pin);
}

Tensor randint_like(const Tensor& self,
                    int64_t low,
                    int64_t high,
                    const MaybeGenerator& generator,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool,
                    MaybeFormat format) {
  check_layout("randint_like", layout);
  Tensor out = new_like("randint_like", self, dtype, device, format);
  random_(out, low, std::optional<int64_t>(high), generator);
  return out;
}
Tensor randint_like(const Tensor& self,
                    int64_t low,
                    int64_t high,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool pin,
                    MaybeFormat format) {
  return randint_like(
      self, low, high, std::nullopt, dtype, layout, device, pin, format);
}
Tensor randint_like(const Tensor& self,
                    int64_t high,
                    const MaybeGenerator& generator,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool pin,
                    MaybeFormat format) {
  return randint_like(
      self, 0, high, generator, dtype, layout, device, pin, format);
}
Tensor randint_like(const Tensor& self,
                    int64_t high,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool pin,
                    MaybeFormat format) {
  return randint_like(
      self, 0, high, std::nullopt, dtype, layout, device, pin, format);
}
Tensor randint_like(const Tensor& self,
                    const Tensor& high,
                    const MaybeGenerator& generator,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool pin,
                    MaybeFormat format) {
  TAEDA_CHECK(high.numel() == 1 && high.dim() == 0 && high.is_cpu(),
              "randint: high must be a scalar tensor and on CPU, got ",
              high);
  int64_t bound = Scalar::load(high.dtype(), high.const_raw_data()).to_int();
  return randint_like(
      self, 0, bound, generator, dtype, layout, device, pin, format);
}
Tensor randint_like(const Tensor& self,
                    const Tensor& high,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool pin,
                    MaybeFormat format) {
  return randint_like(
      self, high, std::nullopt, dtype, layout, device, pin, format);
}

Tensor randperm(int64_t n,
                const MaybeGenerator& generator,
                Dtype dtype,
                MaybeLayout layout,
                MaybeDevice device,
                MaybeBool) {
  TAEDA_CHECK(n >= 0, "n must be non-negative, got ", n);
  ScalarType t = dtype.value_or(kLong);
  Tensor out = new_tensor("randperm", {n}, t, layout, device);
  if (!out.is_cpu()) return out;
  LockedGenerator locked(generator);
  visit_type(t, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t> ||
                  std::is_same_v<T, int16_t> || std::is_same_v<T, int32_t> ||
                  std::is_same_v<T, int64_t> || std::is_same_v<T, float> ||
                  std::is_same_v<T, double> || std::is_same_v<T, Half> ||
                  std::is_same_v<T, BFloat16>) {
      TAEDA_CHECK(n <= 1 || static_cast<double>(T(static_cast<float>(n - 1))) <
                                INFINITY,
                  "n is too large for result tensor type: '",
                  t,
                  "'");
      fill_permutation<T>(out.mutable_data<T>(), n, 1, *locked);
    } else {
      not_implemented_for("randperm", t);
    }
  });
  return out;
}
Tensor randperm(int64_t n,
                Dtype dtype,
                MaybeLayout layout,
                MaybeDevice device,
                MaybeBool pin) {
  return randperm(n, std::nullopt, dtype, layout, device, pin);
}

// normal, bernoulli
// ------------------------------------------------------------------

namespace {

void check_std(const Tensor& std) {
  TAEDA_CHECK(!std.is_complex(),
              "normal expects standard deviation to be non-complex");
  Tensor plain = contiguous_as(std, kDouble);
  const double* data = plain.const_data<double>();
  TAEDA_CHECK(
      std::all_of(
          data, data + plain.numel(), [](double v) { return !(v < 0); }),
      "normal expects all elements of std >= 0.0");
}

}  // namespace

Tensor normal(const Tensor& mean, double std, const MaybeGenerator& generator) {
  TAEDA_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  Tensor out = new_like("normal", mean, {}, {}, MemoryFormat::Contiguous);
  normal_(out, 0, std, generator);
  ops::add_(out, mean, 1);
  return out;
}
Tensor normal(double mean, const Tensor& std, const MaybeGenerator& generator) {
  check_std(std);
  Tensor out = new_like("normal", std, {}, {}, MemoryFormat::Contiguous);
  normal_(out, 0, 1, generator);
  ops::mul_(out, std);
  ops::add_(out, Scalar(mean), 1);
  return out;
}
Tensor normal(const Tensor& mean,
              const Tensor& std,
              const MaybeGenerator& generator) {
  check_std(std);
  DimVector shape =
      broadcast_shapes<int64_t>("normal", mean.sizes(), std.sizes());
  Tensor out = make_tensor("normal", shape, mean.dtype(), mean.device());
  normal_(out, 0, 1, generator);
  ops::mul_(out, std);
  ops::add_(out, mean, 1);
  return out;
}
Tensor normal(double mean,
              double std,
              ArrayRef<int64_t> size,
              const MaybeGenerator& generator,
              Dtype dtype,
              MaybeLayout layout,
              MaybeDevice device,
              MaybeBool) {
  TAEDA_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  Tensor out = new_tensor("normal", size, dtype, layout, device);
  normal_(out, mean, std, generator);
  return out;
}
Tensor normal_functional(const Tensor& self,
                         double mean,
                         double std,
                         const MaybeGenerator& generator) {
  Tensor out = new_like("normal_functional", self, {}, {}, {});
  normal_(out, mean, std, generator);
  return out;
}

void bernoulli_out(const Tensor& self,
                   const MaybeGenerator& generator,
                   const Tensor& out) {
  resize_output(out, self.sizes());
  bernoulli_(out, self, generator);
}
// PyTorch does not resize here.
void normal_out(const Tensor& mean,
                double std,
                const MaybeGenerator& generator,
                const Tensor& out) {
  normal_(out, 0, std, generator);
  ops::add_(out, mean, 1);
}

void normal_out(double mean,
                const Tensor& std,
                const MaybeGenerator& generator,
                const Tensor& out) {
  check_std(std);
  resize_output(out, std.sizes());
  normal_(out, 0, 1, generator);
  ops::mul_(out, std);
  ops::add_(out, Scalar(mean), 1);
}
void normal_out(const Tensor& mean,
                const Tensor& std,
                const MaybeGenerator& generator,
                const Tensor& out) {
  check_std(std);
  resize_output(out,
                broadcast_shapes<int64_t>("normal", mean.sizes(), std.sizes()));
  normal_(out, 0, 1, generator);
  ops::mul_(out, std);
  ops::add_(out, mean, 1);
}
void normal_out(double mean,
                double std,
                ArrayRef<int64_t> size,
                const MaybeGenerator& generator,
                const Tensor& out) {
  TAEDA_CHECK(std >= 0.0, "normal expects std >= 0.0, but found std ", std);
  resize_output(out, size);
  normal_(out, mean, std, generator);
}

Tensor bernoulli(const Tensor& self, const MaybeGenerator& generator) {
  Tensor out = new_like("bernoulli", self, {}, {}, MemoryFormat::Contiguous);
  bernoulli_(out, self, generator);
  return out;
}
Tensor bernoulli(const Tensor& self,
                 double p,
                 const MaybeGenerator& generator) {
  Tensor out = new_like("bernoulli", self, {}, {}, {});
  bernoulli_(out, p, generator);
  return out;
}

Tensor poisson(const Tensor& self, const MaybeGenerator& generator) {
  Tensor out = new_like("poisson", self, {}, {}, MemoryFormat::Contiguous);
  Tensor rates = contiguous(self);
  if (!out.is_cpu()) return out;
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
  return out;
}

Tensor binomial(const Tensor& count,
                const Tensor& prob,
                const MaybeGenerator& generator) {
  TAEDA_CHECK(count.dtype() == prob.dtype(),
              "binomial: Found dtype ",
              prob.dtype(),
              " but expected ",
              count.dtype());
  DimVector shape =
      broadcast_shapes<int64_t>("binomial", count.sizes(), prob.sizes());
  Tensor out = make_tensor("binomial", shape, count.dtype(), count.device());
  Tensor trials = make_tensor("binomial", shape, count.dtype());
  Tensor chances = make_tensor("binomial", shape, count.dtype());
  copy_into(trials, count);
  copy_into(chances, prob);
  if (!out.is_cpu()) return out;
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
  return out;
}

// multinomial
// --------------------------------------------------------------------------

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
void largest_ratios(const Tensor& weights, const Tensor& noise, Tensor& out) {
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

Tensor multinomial(const Tensor& self,
                   int64_t num_samples,
                   bool replacement,
                   const MaybeGenerator& generator) {
  TAEDA_CHECK(self.dim() > 0 && self.dim() <= 2,
              "multinomial: prob_dist must be 1 or 2 dim, got ",
              self);
  TAEDA_CHECK(
      is_floating(self.dtype()),
      "multinomial only supports floating-point dtypes for input, got: ",
      self.dtype());
  TAEDA_CHECK(num_samples > 0,
              "multinomial: cannot sample n_sample <= 0 samples, got ",
              num_samples);
  int64_t width = self.size(-1);
  TAEDA_CHECK(replacement || num_samples <= width,
              "cannot sample n_sample > prob_dist.size(-1) samples without "
              "replacement");
  DimVector shape(self.sizes());
  shape.back() = num_samples;
  Tensor out = make_tensor("multinomial", shape, kLong);
  if (out.numel() == 0) return out;
  if (!replacement || num_samples == 1) {
    check_weights(self);
    Tensor noise = new_like("multinomial", self, {}, {}, {});
    exponential_(noise, 1, generator);
    largest_ratios(self, noise, out);
    return out;
  }
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
  return out;
}

}  // namespace taeda::native
