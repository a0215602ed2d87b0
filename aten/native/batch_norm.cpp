// Batch norm: shapes, and the choice between statistics of the batch and kept
// ones.
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/_native_batch_norm_legit_functional.h>
#include <taeda/gen/native/batch_norm.h>
#include <taeda/gen/native/native_batch_norm.h>
#include <taeda/gen/native/native_batch_norm_backward.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/native_batch_norm.h>
#include <taeda/gen/ops/select.h>

namespace taeda::native {

namespace {

template <class I>
void check_channels(const char* name, const Spec<I>& t, const I& channels) {
  if (!t.defined()) return;
  TAEDA_CHECK(t.numel() == channels,
              "batch_norm: ",
              name,
              " should contain ",
              channels,
              " elements not ",
              t.numel());
}

}  // namespace

template <class I>
void native_batch_norm_shape(const Spec<I>& input,
                             const Spec<I>& weight,
                             const Spec<I>& bias,
                             const Spec<I>& running_mean,
                             const Spec<I>& running_var,
                             bool training,
                             double,
                             double,
                             Plan<I>& plan) {
  TAEDA_CHECK_AS(Index,
                 input.dim() >= 2,
                 "batch_norm: expected at least 2 dims, got input ",
                 input);
  I channels = input.sizes()[1];
  check_channels("running_mean", running_mean, channels);
  check_channels("running_var", running_var, channels);
  check_channels("weight", weight, channels);
  check_channels("bias", bias, channels);
  check_parameter_dtypes<I>(
      "batch_norm", input, {&weight, &bias, &running_mean, &running_var});
  TAEDA_CHECK(training || (running_mean.defined() && running_var.defined()),
              "batch_norm: Expected running_mean and running_var to be defined "
              "when training is false");
  TAEDA_CHECK(!training || input.numel() != I(0),
              "input tensor must have at least one element, but got "
              "input_sizes = ",
              input.sizes());
  ScalarType kept = statistics_type(input, weight, running_mean);
  plan.set(0, input.sizes(), input.suggest_memory_format(), input.dtype());
  plan.set(1, {training ? channels : I(0)}, kept);
  plan.set(2, {training ? channels : I(0)}, kept);
}
TAEDA_SHAPE(native_batch_norm_shape);

template <class I>
void batch_norm_functional_shape(const Spec<I>& input,
                                 const Spec<I>& weight,
                                 const Spec<I>& bias,
                                 const Spec<I>& running_mean,
                                 const Spec<I>& running_var,
                                 bool training,
                                 double momentum,
                                 double eps,
                                 Plan<I>& plan) {
  native_batch_norm_shape(input,
                          weight,
                          bias,
                          running_mean,
                          running_var,
                          training,
                          momentum,
                          eps,
                          plan);
  plan.set_like(3, running_mean, running_mean.dtype());
  plan.set_like(4, running_var, running_var.dtype());
}
TAEDA_SHAPE(batch_norm_functional_shape);

namespace {

template <class I>
void check_statistics(bool train,
                      const Spec<I>& mean,
                      const Spec<I>& spread,
                      const Spec<I>& weight,
                      const I& channels) {
  constexpr std::string_view kName = "batch_norm_backward";
  TAEDA_CHECK(mean.defined() && spread.defined(),
              kName,
              train ? ": save_mean and save_invstd are needed in training"
                    : ": running_mean and running_var are needed");
  check_count(kName, "a mean", mean, channels);
  check_count(kName, "a variance", spread, channels);
  if (weight.defined()) check_count(kName, "weight", weight, channels);
}

}  // namespace

template <class I>
void native_batch_norm_backward_shape(const Spec<I>& grad_out,
                                      const Spec<I>& input,
                                      const Spec<I>& weight,
                                      const Spec<I>& running_mean,
                                      const Spec<I>& running_var,
                                      const Spec<I>& save_mean,
                                      const Spec<I>& save_invstd,
                                      bool train,
                                      double,
                                      ArrayRef<bool> output_mask,
                                      Plan<I>& plan) {
  constexpr std::string_view kName = "batch_norm_backward";
  check_mask(kName, output_mask, 3);
  TAEDA_CHECK(input.dim() >= 2,
              kName,
              ": expected an input with at least 2 dims, got ",
              input.sizes());
  check_shape(kName, "grad_out", grad_out, input.sizes());
  I channels = input.sizes()[1];
  check_statistics(train,
                   train ? save_mean : running_mean,
                   train ? save_invstd : running_var,
                   weight,
                   channels);
  ScalarType kept = weight.defined() ? weight.dtype() : input.dtype();
  if (output_mask[0]) {
    plan.set(0, input.sizes(), input.suggest_memory_format(), input.dtype());
  }
  if (output_mask[1]) plan.set(1, {channels}, kept);
  if (output_mask[2]) plan.set(2, {channels}, kept);
}
TAEDA_SHAPE(native_batch_norm_backward_shape);

Tensor batch_norm(const Tensor& input,
                  const OptionalTensor& weight,
                  const OptionalTensor& bias,
                  const OptionalTensor& running_mean,
                  const OptionalTensor& running_var,
                  bool training,
                  double momentum,
                  double eps,
                  bool) {
  if (has_no_elements(input)) {
    // Nothing to normalise, of whatever rank; the parameters stay in the graph.
    Tensor out = ops::clone(input, std::nullopt);
    if (weight) out = ops::mul(out, ops::select(*weight, 0, 0));
    if (bias) out = ops::add(out, ops::select(*bias, 0, 0), Scalar(int64_t{1}));
    return out;
  }
  return std::get<0>(ops::native_batch_norm(
      input, weight, bias, running_mean, running_var, training, momentum, eps));
}

}  // namespace taeda::native
