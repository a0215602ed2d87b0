#include <taeda/aten/native/formula_support.h>

#include <taeda/aten/core/promotion.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/sym/expand.h>

#include <algorithm>
#include <limits>

namespace taeda::native {

TensorBase reduced_loss(const TensorBase& loss, int64_t reduction) {
  if (reduction == kMeanReduction) return ops::mean(loss);
  return reduction == kSumReduction ? ops::sum(loss) : loss;
}

namespace {

bool any_symbolic(const derived::Tensors& tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const TensorBase& t) {
    return t.impl()->is_symbolic();
  });
}

Dims<SymInt> common_shape(const derived::Tensors& tensors) {
  Dims<SymInt> shape(symbolic_sizes(tensors[0]));
  for (const TensorBase& t : tensors) {
    if (same_sizes(symbolic_sizes(t), shape)) continue;
    shape = broadcast_shapes<SymInt>("loss", shape, symbolic_sizes(t));
  }
  return shape;
}

}  // namespace

double loss_share(int64_t reduction, const derived::Tensors& tensors) {
  if (reduction != kMeanReduction || any_symbolic(tensors)) return 1.0;
  // Sizes may be greater than integers count to where nothing is stored.
  double count = 1;
  for (const SymInt& size : common_shape(tensors)) {
    count *= static_cast<double>(size.plain());
  }
  return 1.0 / count;
}

SymInt symbolic_count(int64_t reduction, const derived::Tensors& tensors) {
  SymInt count = 1;
  if (reduction != kMeanReduction || !any_symbolic(tensors)) return count;
  for (const SymInt& size : common_shape(tensors)) count *= size;
  return count;
}

TensorBase share_of(const TensorBase& grad, const SymInt& count) {
  if (!count.is_symbolic()) {
    return count == 1 ? grad : ops::div(grad, Scalar(count.plain()));
  }
  return ops::div(grad, number_as_tensor(grad, count));
}

TensorBase spread(const TensorBase& grad, ArrayRef<SymInt> sizes) {
  ArrayRef<SymInt> own = symbolic_sizes(grad);
  if (same_sizes(own, sizes)) return grad;
  Dims<SymInt> shape = broadcast_shapes<SymInt>("loss", own, sizes);
  return same_sizes(shape, own) ? grad : sym::expand(grad, shape);
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

double rounded_to(const Scalar& number, ScalarType t) {
  const double exact = number.to_double();
  if (t == kHalf) return static_cast<float>(Half(static_cast<float>(exact)));
  if (t != kBFloat16) return exact;
  return static_cast<float>(BFloat16(static_cast<float>(exact)));
}

// 0.6 of the spacing at a power of two: at most 1.2 of it below the next power,
// and more than half of the spacing below the first, which is half as wide.
HalfGrid half_grid(const derived::Tensors& tensors) {
  ScalarType t = result_type(tensors);
  if (t != kHalf && t != kBFloat16) return {0, 0, 0};
  double spacing = t == kHalf ? 0x1p-10 : 0x1p-7;
  double smallest = t == kHalf ? 0x1p-24 : 0x1p-133;
  return {0.6 * spacing, 0.6 * smallest, largest_finite(t)};
}

TensorBase numbers_tensor(std::initializer_list<double> numbers) {
  const auto count = static_cast<int64_t>(numbers.size());
  TensorBase t = make_tensor("numbers_tensor", {count}, kDouble);
  std::copy(numbers.begin(), numbers.end(), t.mutable_data<double>());
  return t;
}

void refuse_choice(std::string_view op, std::string_view names) {
  throw_error(ErrorKind::Runtime,
              str_cat(op, ": no formula for the given values of ", names));
}

}  // namespace taeda::native
