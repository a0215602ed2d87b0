// Group norm, and instance norm through it: shapes.
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/group_norm.h>
#include <taeda/gen/native/instance_norm.h>
#include <taeda/gen/native/native_group_norm.h>
#include <taeda/gen/native/native_group_norm_backward.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/alias.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/lerp.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/native_batch_norm.h>
#include <taeda/gen/ops/reciprocal.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/to.h>

namespace taeda::native {

namespace {

// N * C * HxW is the number of elements; nothing overflows.
bool fill(const IntArrayRef& sizes, int64_t elements) {
  int64_t count = 1;
  for (int64_t s : sizes) {
    if (s < 0 || __builtin_mul_overflow(count, s, &count)) return false;
  }
  return count == elements;
}
bool fill(const SymIntArrayRef& sizes, const SymInt& elements) {
  SymInt count = 1;
  for (const SymInt& s : sizes) count *= s;
  return count == elements;
}

template <class I>
void check_groups(
    const Spec<I>& input, const I& N, const I& C, const I& HxW, int64_t group) {
  TAEDA_CHECK(
      group > 0, "Expected num groups to be greater than 0, got ", group);
  TAEDA_CHECK(C % group == 0,
              "Expected number of channels in input to be divisible by "
              "num_groups, but got input of shape ",
              input.sizes(),
              " and num_groups=",
              group);
  TAEDA_CHECK(fill({N, C, HxW}, input.numel()),
              "group_norm: expected an input of N * C * HxW elements, got N = ",
              N,
              ", C = ",
              C,
              ", HxW = ",
              HxW,
              " and ",
              input.sizes());
}

template <class I>
void check_vector(const char* name,
                  const Spec<I>& t,
                  const I& channels,
                  const Spec<I>& input) {
  TAEDA_CHECK(!t.defined() || (t.dim() == 1 && t.numel() == channels),
              "Expected ",
              name,
              " to be a vector of size equal to the number of channels in "
              "input, but got ",
              name,
              " of shape ",
              t.sizes(),
              " and input of shape ",
              input.sizes());
}

}  // namespace

template <class I>
void native_group_norm_shape(const Spec<I>& input,
                             const Spec<I>& weight,
                             const Spec<I>& bias,
                             I N,
                             I C,
                             I HxW,
                             int64_t group,
                             double,
                             Plan<I>& plan) {
  check_groups(input, N, C, HxW, group);
  check_vector("weight", weight, C, input);
  check_vector("bias", bias, C, input);
  check_parameter_dtypes<I>("group_norm", input, {&weight, &bias});
  ScalarType kept = statistics_type(input, weight, bias);
  plan.set(0, input.sizes(), input.suggest_memory_format(), input.dtype());
  plan.set(1, {N, I(group)}, kept);
  plan.set(2, {N, I(group)}, kept);
}
TAEDA_SHAPE(native_group_norm_shape);

template <class I>
void native_group_norm_backward_shape(const Spec<I>& grad_out,
                                      const Spec<I>& input,
                                      const Spec<I>& mean,
                                      const Spec<I>& rstd,
                                      const Spec<I>& weight,
                                      I N,
                                      I C,
                                      I HxW,
                                      int64_t group,
                                      ArrayRef<bool> output_mask,
                                      Plan<I>& plan) {
  constexpr std::string_view kName = "group_norm_backward";
  check_mask(kName, output_mask, 3);
  check_groups(input, N, C, HxW, group);
  check_shape(kName, "grad_out", grad_out, input.sizes());
  check_count(kName, "mean", mean, N * group);
  check_count(kName, "rstd", rstd, N * group);
  if (weight.defined()) check_count(kName, "weight", weight, C);
  ScalarType kept = weight.defined() ? weight.dtype() : input.dtype();
  if (output_mask[0]) {
    plan.set(0, input.sizes(), input.suggest_memory_format(), input.dtype());
  }
  if (output_mask[1]) plan.set(1, {C}, kept);
  if (output_mask[2]) plan.set(2, {C}, kept);
}
TAEDA_SHAPE(native_group_norm_backward_shape);

Tensor group_norm(const Tensor& input,
                  int64_t num_groups,
                  const OptionalTensor& weight,
                  const OptionalTensor& bias,
                  double eps,
                  bool) {
  TAEDA_CHECK_AS(Index,
                 input.dim() >= 2,
                 "group_norm: Expected at least 2 dimensions for input tensor "
                 "but received ",
                 input.dim());
  ArrayRef<SymInt> sizes = symbolic_sizes(input);
  SymInt plane = 1;
  for (const SymInt& s : sizes.slice(2)) plane *= s;
  return std::get<0>(group_norm_sized(
      input, weight, bias, sizes[0], sizes[1], plane, num_groups, eps));
}

namespace {

// Running statistics go some way to the mean of the instances' own, which are
// [n, c]. The alias may be written to where a level refuses `running` itself.
void follow(const Tensor& running, const Tensor& instances, double momentum) {
  if (!running.defined()) return;
  GradModeGuard off(false);
  int64_t rows[] = {0};
  Tensor now = ops::mean(ops::_to_copy(instances, kDouble), IntArrayRef(rows));
  Tensor before = ops::_to_copy(running, kDouble);
  Tensor next = ops::lerp(before, now, Scalar(momentum));
  ops::copy_(ops::alias(running), next);
}

}  // namespace

Tensor instance_norm(const Tensor& input,
                     const OptionalTensor& weight,
                     const OptionalTensor& bias,
                     const OptionalTensor& running_mean,
                     const OptionalTensor& running_var,
                     bool use_input_stats,
                     double momentum,
                     double eps,
                     bool) {
  Tensor mean = or_undefined(running_mean), var = or_undefined(running_var);
  TAEDA_CHECK(use_input_stats || (mean.defined() && var.defined()),
              "Expected running_mean and running_var to be defined when "
              "use_input_stats is false");
  if (!use_input_stats) {
    // Statistics may have any dtype here, parameters may not.
    auto beside = [&](const Tensor& t) {
      bool wide = t.dtype() == kFloat && is_reduced_floating(input.dtype());
      return wide ? t : ops::to(t, input.dtype());
    };
    return std::get<0>(ops::native_batch_norm(
        input, weight, bias, beside(mean), beside(var), false, momentum, eps));
  }
  TAEDA_CHECK_AS(Index,
                 input.dim() >= 2,
                 "instance_norm: expected at least 2 dims, got ",
                 input);
  ArrayRef<SymInt> sizes = symbolic_sizes(input);
  SymInt elements = 1;
  for (const SymInt& s : sizes.slice(2)) elements *= s;
  auto [out, means, scales] = group_norm_sized(
      input, weight, bias, sizes[0], sizes[1], elements, input.size(1), eps);
  if (!mean.defined() && !var.defined()) return out;
  double plane = static_cast<double>(elements.guard());
  double unbiased = plane / (plane - 1);
  follow(mean, means, momentum);
  if (var.defined()) {
    Tensor wide = ops::_to_copy(scales, kDouble);
    Tensor spread =
        ops::sub(ops::reciprocal(ops::mul(wide, wide)), Scalar(eps));
    follow(var, ops::mul(spread, Scalar(unbiased)), momentum);
  }
  return out;
}

}  // namespace taeda::native
