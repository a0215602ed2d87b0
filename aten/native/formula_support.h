// What generated code calls around the formulas of pointwise records, and what
// their `numbers` are computed with.
#pragma once

#include <taeda/aten/iter/derived.h>
#include <taeda/aten/native/loss_reduction.h>
#include <taeda/c10/symbolic/sym_int.h>

#include <cmath>
#include <cstdlib>
#include <initializer_list>

namespace taeda::native {

// The loss's elements, their mean or their sum.
TAEDA_API TensorBase reduced_loss(const TensorBase& loss, int64_t reduction);

// What the gradient of each element is multiplied by: of a mean, one over the
// number of elements that the broadcast tensors have; else one.
TAEDA_API double loss_share(int64_t reduction, const derived::Tensors& tensors);

// The same over symbols, whose share is no number: it is one, and what the
// gradient is to be divided by is this count. One where nothing is a symbol.
TAEDA_API SymInt symbolic_count(int64_t reduction,
                                const derived::Tensors& tensors);
TAEDA_API TensorBase share_of(const TensorBase& grad, const SymInt& count);

// The gradient with all axes of the argument, where it has fewer.
TAEDA_API TensorBase spread(const TensorBase& grad, ArrayRef<SymInt> sizes);

// The given number; if absent, the largest finite number of a dtype times
// `sign` (0 of integers).
TAEDA_API double limit_or(std::optional<double> given,
                          ScalarType t,
                          double sign);

// The number as the elements of a dtype have it.
TAEDA_API double rounded_to(const Scalar& number, ScalarType t);

// A step from x by max(share |x|, least) is rounded to x's neighbour in the
// 16-bit dtype that the tensors are promoted to, whose largest number is
// `highest`. The share is 0 for other dtypes.
struct HalfGrid {
  double share, least, highest;
};
TAEDA_API HalfGrid half_grid(const derived::Tensors& tensors);

// What the generated functions of RecordInfo::numbers give.
TAEDA_API TensorBase numbers_tensor(std::initializer_list<double> numbers);

// The arguments called `names` have values for which there is no formula.
[[noreturn]] TAEDA_API void refuse_choice(std::string_view op,
                                          std::string_view names);

}  // namespace taeda::native
