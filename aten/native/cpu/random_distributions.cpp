// Random numbers whose distribution is given by tensors: normal, poisson,
// binomial, multinomial, gamma and Dirichlet.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cpu/distribution_samplers.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/random.h>
#include <taeda/gen/native/_sample_dirichlet.h>
#include <taeda/gen/native/_standard_gamma.h>
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
#include <limits>
#include <numeric>
#include <vector>

namespace taeda::native {

namespace {

void check_positive(const Tensor& std) {
  Tensor plain = contiguous_as(std, kDouble);
  const double* data = plain.const_data<double>();
  TAEDA_CHECK(
      std::all_of(
          data, data + plain.numel(), [](double v) { return !(v < 0); }),
      "normal expects all elements of std >= 0.0");
}

}  // namespace

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

void standard_gamma_cpu(const Tensor& self,
                        const MaybeGenerator& generator,
                        const Tensor& out) {
  Tensor shapes = contiguous(self);
  Tensor drawn = make_tensor("_standard_gamma", self.sizes(), self.dtype());
  {
    LockedGenerator locked(generator);
    visit_floating("gamma_cpu", self.dtype(), [&](auto tag) {
      using T = decltype(tag);
      fill_standard_gamma<T>(drawn.mutable_data<T>(),
                             1,
                             shapes.const_data<T>(),
                             1,
                             drawn.numel(),
                             *locked);
    });
  }
  copy_into(out, drawn);
}

namespace {

// Rows of gamma numbers become rows that sum to 1 and stay inside (0, 1) in T,
// so that logarithms of a sample and of its complement are finite.
template <class T>
void normalise_rows(const double* drawn, T* out, int64_t rows, int64_t width) {
  const double largest = std::is_same_v<T, BFloat16> ? 1 - 0x1p-8
                         : std::is_same_v<T, Half>   ? 1 - 0x1p-11
                         : std::is_same_v<T, float>  ? 1 - 0x1p-24
                                                     : 1 - 0x1p-53;
  const double least = std::is_same_v<T, Half> ? 0x1p-14
                       : std::is_same_v<T, double>
                           ? std::numeric_limits<double>::min()
                           : double{std::numeric_limits<float>::min()};
  for (int64_t row = 0; row < rows; ++row, drawn += width, out += width) {
    double sum = 0;
    for (int64_t k = 0; k < width; ++k) sum += drawn[k];
    for (int64_t k = 0; k < width; ++k) {
      out[k] = static_cast<T>(std::clamp(drawn[k] / sum, least, largest));
    }
  }
}

}  // namespace

void sample_dirichlet_cpu(const Tensor& self,
                          const MaybeGenerator& generator,
                          const Tensor& out) {
  if (out.numel() == 0) return;
  // Small concentrations give numbers far below the least float.
  Tensor shapes = contiguous_as(self, kDouble);
  Tensor drawn = make_tensor("_sample_dirichlet", self.sizes(), kDouble);
  double* numbers = drawn.mutable_data<double>();
  {
    LockedGenerator locked(generator);
    fill_standard_gamma<double>(
        numbers, 1, shapes.const_data<double>(), 1, drawn.numel(), *locked);
  }
  const int64_t width = self.size(-1);
  visit_floating("dirichlet", self.dtype(), [&](auto tag) {
    using T = decltype(tag);
    normalise_rows<T>(
        numbers, out.mutable_data<T>(), drawn.numel() / width, width);
  });
}

}  // namespace taeda::native
