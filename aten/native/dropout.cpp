// Dropout, made of a mask of zeros and ones and products that autograd records.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/random.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/alpha_dropout.h>
#include <taeda/gen/native/bernoulli.h>
#include <taeda/gen/native/dropout.h>
#include <taeda/gen/native/feature_alpha_dropout.h>
#include <taeda/gen/native/feature_dropout.h>
#include <taeda/gen/native/native_dropout.h>
#include <taeda/gen/native/native_dropout_backward.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/bernoulli.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/zeros.h>
#include <taeda/gen/sym/new_empty.h>

#include <cmath>

namespace taeda::native {

namespace {

void check_probability(double p) {
  TAEDA_CHECK(p >= 0 && p <= 1,
              "dropout probability has to be between 0 and 1, but got ",
              p);
}

// Ones (with probability 1 - p) for whole channels: [N, C, 1, ...].
Tensor channel_noise(const Tensor& input) {
  TAEDA_CHECK(input.dim() >= 2,
              "Feature dropout requires at least 2 dimensions in the input");
  Dims<SymInt> sizes(static_cast<size_t>(input.dim()), SymInt(1));
  sizes[0] = symbolic_sizes(input)[0];
  sizes[1] = symbolic_sizes(input)[1];
  return sym::new_empty(input, sizes);
}

struct Kind {
  bool feature;
  bool alpha;
};

// What input is multiplied by, and for the alpha kind what is added then.
struct Noise {
  Tensor factor;
  Tensor shift;
};

Noise noise_for(const Tensor& input, double p, Kind kind) {
  BelowAutograd below;
  Noise n;
  n.factor = ops::bernoulli(kind.feature ? channel_noise(input) : input, 1 - p);
  if (!kind.alpha) {
    ops::div_(n.factor, Scalar(1 - p));
    return n;
  }
  // -scale * alpha of SELU (Klambauer et al., 2017), negated.
  constexpr double alpha = 1.7580993408473766;
  double a = 1.0 / std::sqrt((alpha * alpha * p + 1) * (1 - p));
  n.shift = ops::add(n.factor, Scalar(-1), 1);
  ops::mul_(n.shift, Scalar(alpha * a));
  ops::add_(n.shift, Scalar(alpha * a * p), 1);
  ops::mul_(n.factor, Scalar(a));
  return n;
}

Tensor zero_number(const Tensor& input) {
  return ops::zeros(
      {}, input.dtype(), std::nullopt, input.device(), std::nullopt);
}

Tensor drop(const Tensor& input, double p, bool train, Kind kind) {
  check_probability(p);
  if (p == 0 || !train || has_no_elements(input)) return input;
  if (p == 1) return ops::mul(input, zero_number(input));
  Noise n = noise_for(input, p, kind);
  Tensor out = ops::mul(input, n.factor);
  return kind.alpha ? ops::add(out, n.shift, 1) : out;
}

void drop_inplace(const Tensor& self, double p, bool train, Kind kind) {
  check_probability(p);
  if (p == 0 || !train || has_no_elements(self)) return;
  if (p == 1) return ops::mul_(self, zero_number(self));
  Noise n = noise_for(self, p, kind);
  ops::mul_(self, n.factor);
  if (kind.alpha) ops::add_(self, n.shift, 1);
}

constexpr Kind kPlain{false, false}, kFeature{true, false};
constexpr Kind kAlpha{false, true}, kFeatureAlpha{true, true};

}  // namespace

Tensor dropout(const Tensor& input, double p, bool train) {
  return drop(input, p, train, kPlain);
}
void dropout_(const Tensor& self, double p, bool train) {
  drop_inplace(self, p, train, kPlain);
}
Tensor feature_dropout(const Tensor& input, double p, bool train) {
  return drop(input, p, train, kFeature);
}
void feature_dropout_(const Tensor& self, double p, bool train) {
  drop_inplace(self, p, train, kFeature);
}
Tensor alpha_dropout(const Tensor& input, double p, bool train) {
  return drop(input, p, train, kAlpha);
}
void alpha_dropout_(const Tensor& self, double p, bool train) {
  drop_inplace(self, p, train, kAlpha);
}
Tensor feature_alpha_dropout(const Tensor& input, double p, bool train) {
  return drop(input, p, train, kFeatureAlpha);
}
void feature_alpha_dropout_(const Tensor& self, double p, bool train) {
  drop_inplace(self, p, train, kFeatureAlpha);
}

template <class I>
void native_dropout_shape(const Spec<I>& input,
                          double p,
                          std::optional<bool> train,
                          Plan<I>& plan) {
  if (train.value_or(true)) check_probability(p);
  plan.set_like(0, input, input.dtype());
  plan.set_like(1, input, kBool);
}
TAEDA_SHAPE(native_dropout_shape);

void native_dropout_cpu(const Tensor& input,
                        double p,
                        std::optional<bool> train,
                        const Tensor& out,
                        const Tensor& mask) {
  if (!train.value_or(true)) {
    fill_with(mask, true);
    return copy_into(out, input);
  }
  bernoulli_(mask, 1 - p, std::nullopt);
  ops::mul_out(input, mask, out);
  ops::mul_(out, Scalar(p == 1 ? 0.0 : 1 / (1 - p)));
}

template <class I>
void native_dropout_backward_shape(const Spec<I>& grad_output,
                                   const Spec<I>& mask,
                                   double scale,
                                   Plan<I>& plan) {
  ResultType type;
  type.add(grad_output);
  type.add(mask);
  type.add(Scalar(scale));
  plan_pairs(plan, grad_output, mask, type.get());
}
TAEDA_SHAPE(native_dropout_backward_shape);

void native_dropout_backward_any(const Tensor& grad_output,
                                 const Tensor& mask,
                                 double scale,
                                 const Tensor& out) {
  ops::mul_out(ops::mul(grad_output, mask), Scalar(scale), out);
}

}  // namespace taeda::native
