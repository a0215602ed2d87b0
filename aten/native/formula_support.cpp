#include <taeda/aten/native/formula_support.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/sum.h>

#include <limits>

namespace taeda::native {

TensorBase reduced_loss(const TensorBase& loss, int64_t reduction) {
  if (reduction == kMeanReduction) return ops::mean(loss);
  return reduction == kSumReduction ? ops::sum(loss) : loss;
}

double loss_share(int64_t reduction, const derived::Tensors& tensors) {
  if (reduction != kMeanReduction) return 1.0;
  DimVector shape(tensors[0].sizes());
  for (const TensorBase& t : tensors) {
    if (t.sizes() == IntArrayRef(shape)) continue;
    shape = broadcast_shapes<int64_t>("loss", shape, t.sizes());
  }
  // Sizes may be greater than integers count to where nothing is stored.
  double count = 1;
  for (int64_t size : shape) count *= static_cast<double>(size);
  return 1.0 / count;
}

TensorBase spread(const TensorBase& grad, IntArrayRef sizes) {
  if (grad.sizes() == sizes) return grad;
  DimVector shape = broadcast_shapes<int64_t>("loss", grad.sizes(), sizes);
  return IntArrayRef(shape) == grad.sizes() ? grad : ops::expand(grad, shape);
}

namespace {

double largest_finite(ScalarType t) {
  switch (real_type_of(t)) {
    case kHalf:
      return 65504.0;
    case kBFloat16:
      return 0x1.fep127;
    case kDouble:
      return std::numeric_limits<double>::max();
    default:
      return std::numeric_limits<float>::max();
  }
}

}  // namespace

double limit_or(std::optional<double> given, ScalarType t, double sign) {
  // Integers have nothing to replace, whatever is given.
  if (is_integral(t, /*include_bool=*/true)) return 0.0;
  return given ? *given : sign * largest_finite(t);
}

void refuse_choice(std::string_view op, std::string_view names) {
  throw_error(ErrorKind::Runtime,
              str_cat(op, ": no formula for the given values of ", names));
}

}  // namespace taeda::native
