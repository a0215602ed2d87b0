// rms_norm: the fused kernel where it has the dtypes, else its definition.
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/rms_norm.h>
#include <taeda/gen/ops/_fused_rms_norm.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/rsqrt.h>
#include <taeda/gen/ops/sum.h>

#include <limits>

namespace taeda::native {

Tensor rms_norm(const Tensor& input,
                ArrayRef<int64_t> normalized_shape,
                const OptionalTensor& weight,
                std::optional<double> eps) {
  Tensor w = or_undefined(weight);
  int64_t n = 0;
  if (TAEDA_UNLIKELY(input.impl()->is_symbolic())) {
    auto [rows, width] = norm_rows<SymInt>("rms_norm",
                                           Spec<SymInt>(input),
                                           as_symbolic(normalized_shape),
                                           Spec<SymInt>(w),
                                           {});
    n = width.guard();
  } else {
    n = norm_rows<int64_t>("rms_norm", input, normalized_shape, w, {}).second;
  }
  bool fused =
      input.is_floating_point() && (!w.defined() || w.dtype() == input.dtype());
  if (fused) {
    return std::get<0>(
        ops::_fused_rms_norm(input, normalized_shape, weight, eps));
  }
  TAEDA_CHECK_AS(NotImplemented,
                 input.is_floating_point() || input.is_complex(),
                 "\"rms_norm\" not implemented for '",
                 input.dtype(),
                 "'");
  double smallest = real_type_of(input.dtype()) == kDouble
                        ? std::numeric_limits<double>::epsilon()
                        : std::numeric_limits<float>::epsilon();
  DimVector dims;
  for (size_t i = 0; i < normalized_shape.size(); ++i) {
    dims.push_back(-1 - static_cast<int64_t>(i));
  }
  Tensor square = ops::sum(ops::mul(input, input), IntArrayRef(dims), true);
  Tensor mean = ops::mul(square, Scalar(1.0 / static_cast<double>(n)));
  Tensor factor = ops::rsqrt(ops::add(mean, Scalar(eps.value_or(smallest))));
  Tensor out = ops::mul(input, factor);
  return w.defined() ? ops::mul(out, w) : out;
}

}  // namespace taeda::native
