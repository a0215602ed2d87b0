// Layer and RMS norms: shapes, and what the norms share.
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/gen/native/_fused_rms_norm.h>
#include <taeda/gen/native/_fused_rms_norm_backward.h>
#include <taeda/gen/native/native_layer_norm.h>
#include <taeda/gen/native/native_layer_norm_backward.h>

namespace taeda::native {

Tensor parameter_as(const Tensor& t, ScalarType sum_type) {
  return t.defined() ? contiguous_as(t, sum_type) : t;
}

template <class I>
std::pair<I, I> norm_rows(std::string_view op,
                          const Spec<I>& input,
                          ArrayRef<I> shape,
                          const Spec<I>& weight,
                          const Spec<I>& bias) {
  TAEDA_CHECK(!shape.empty(),
              op,
              ": Expected normalized_shape to be at least 1-dimensional, i.e., "
              "containing at least one element, but got normalized_shape = ",
              shape);
  TAEDA_CHECK(!weight.defined() || weight.sizes() == shape,
              op,
              ": Expected weight to be of same shape as normalized_shape, but "
              "got weight of shape ",
              weight.sizes(),
              " and normalized_shape = ",
              shape);
  TAEDA_CHECK(
      !bias.defined() || bias.sizes() == shape,
      op,
      ": Expected bias to be of same shape as normalized_shape, but got "
      "bias of shape ",
      bias.sizes(),
      " and normalized_shape = ",
      shape);
  size_t rank = static_cast<size_t>(input.dim());
  bool fits =
      rank >= shape.size() && input.sizes().slice(rank - shape.size()) == shape;
  TAEDA_CHECK(fits,
              op,
              ": Given normalized_shape=",
              shape,
              ", expected input with shape [*, ",
              shape,
              "], but got input of size",
              input.sizes());
  return rows_of(input.sizes(), shape.size());
}
template std::pair<int64_t, int64_t> norm_rows(std::string_view,
                                               const Spec<int64_t>&,
                                               IntArrayRef,
                                               const Spec<int64_t>&,
                                               const Spec<int64_t>&);
template std::pair<SymInt, SymInt> norm_rows(std::string_view,
                                             const Spec<SymInt>&,
                                             SymIntArrayRef,
                                             const Spec<SymInt>&,
                                             const Spec<SymInt>&);

namespace {

// Sizes of the statistics: 1 where the input is normalised over.
template <class I>
Dims<I> statistics_sizes(const Spec<I>& input, size_t shape_rank) {
  Dims<I> sizes(input.sizes());
  for (size_t d = sizes.size() - shape_rank; d < sizes.size(); ++d) {
    sizes[d] = 1;
  }
  return sizes;
}

// `mean` undefined: the RMS norm. Plans as many gradients as the mask has
// entries.
template <class I>
void plan_row_gradients(std::string_view op,
                        const Spec<I>& grad_out,
                        const Spec<I>& input,
                        ArrayRef<I> shape,
                        const Spec<I>& mean,
                        const Spec<I>& rstd,
                        const Spec<I>& weight,
                        const Spec<I>& bias,
                        ArrayRef<bool> mask,
                        Plan<I>& plan) {
  auto [rows, n] = norm_rows(op, input, shape, weight, bias);
  check_mask(op, mask, mean.defined() ? 3 : 2);
  check_shape(op, "grad_out", grad_out, input.sizes());
  if (mean.defined()) check_count(op, "mean", mean, rows);
  check_count(op, "rstd", rstd, rows);
  if (mask[0]) plan.set(0, input.sizes(), input.dtype());
  if (mask[1] && weight.defined()) plan.set(1, weight.sizes(), weight.dtype());
  if (mask.size() > 2 && mask[2] && bias.defined()) {
    plan.set(2, bias.sizes(), bias.dtype());
  }
}

}  // namespace

template <class I>
void native_layer_norm_shape(const Spec<I>& input,
                             ArrayRef<I> normalized_shape,
                             const Spec<I>& weight,
                             const Spec<I>& bias,
                             double,
                             Plan<I>& plan) {
  norm_rows("layer_norm", input, normalized_shape, weight, bias);
  check_parameter_dtypes<I>("layer_norm", input, {&weight, &bias});
  Dims<I> sizes = statistics_sizes(input, normalized_shape.size());
  ScalarType kept = statistics_type(input, weight, bias);
  plan.set(0, input.sizes(), input.dtype());
  plan.set(1, sizes, kept);
  plan.set(2, sizes, kept);
}
TAEDA_SHAPE(native_layer_norm_shape);

template <class I>
void native_layer_norm_backward_shape(const Spec<I>& grad_out,
                                      const Spec<I>& input,
                                      ArrayRef<I> normalized_shape,
                                      const Spec<I>& mean,
                                      const Spec<I>& rstd,
                                      const Spec<I>& weight,
                                      const Spec<I>& bias,
                                      ArrayRef<bool> output_mask,
                                      Plan<I>& plan) {
  plan_row_gradients("layer_norm_backward",
                     grad_out,
                     input,
                     normalized_shape,
                     mean,
                     rstd,
                     weight,
                     bias,
                     output_mask,
                     plan);
}
TAEDA_SHAPE(native_layer_norm_backward_shape);

template <class I>
void _fused_rms_norm_shape(const Spec<I>& input,
                           ArrayRef<int64_t> normalized_shape,
                           const Spec<I>& weight,
                           std::optional<double>,
                           Plan<I>& plan) {
  Dims<I> shape(normalized_shape.begin(), normalized_shape.end());
  norm_rows<I>("rms_norm", input, shape, weight, {});
  plan.set(0, input.sizes(), input.dtype());
  plan.set(
      1, statistics_sizes(input, shape.size()), compute_type(input.dtype()));
}
TAEDA_SHAPE(_fused_rms_norm_shape);

template <class I>
void _fused_rms_norm_backward_shape(const Spec<I>& grad_out,
                                    const Spec<I>& input,
                                    ArrayRef<int64_t> normalized_shape,
                                    const Spec<I>& rstd,
                                    const Spec<I>& weight,
                                    ArrayRef<bool> output_mask,
                                    Plan<I>& plan) {
  Dims<I> shape(normalized_shape.begin(), normalized_shape.end());
  plan_row_gradients<I>("rms_norm_backward",
                        grad_out,
                        input,
                        shape,
                        {},
                        rstd,
                        weight,
                        {},
                        output_mask,
                        plan);
}
TAEDA_SHAPE(_fused_rms_norm_backward_shape);

}  // namespace taeda::native
