// What the normalisation layers share.
#pragma once

#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/norm.h>

#include <initializer_list>
#include <utility>

namespace taeda::native {

// An optional tensor, undefined when it is absent.
inline Tensor or_undefined(const OptionalTensor& t) {
  return t ? *t : Tensor();
}
// Row-major, in the type that sums of `t` have; undefined stays so.
Tensor parameter_as(const Tensor& t, ScalarType sum_type);
template <class A>
const A* data_or_null(const Tensor& t) {
  return t.defined() ? t.const_data<A>() : nullptr;
}
template <class A>
A* writable_or_null(const Tensor& t) {
  return t.defined() ? t.mutable_data<A>() : nullptr;
}

template <class T>
const NormKernels<T>& norm_kernels() {
  return TAEDA_ISA_TABLE(kNormTable).template of<T>();
}

// Calls f with a value of the C++ type; only for float, double, bfloat16, half.
template <class F>
void visit_norm_type(std::string_view op, ScalarType t, F&& f);

// Number and length of the rows that the last `rank` dims are.
template <class I>
std::pair<I, I> rows_of(ArrayRef<I> sizes, size_t rank) {
  I rows = 1, length = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    (d < sizes.size() - rank ? rows : length) *= sizes[d];
  }
  return {rows, length};
}
// The same for a normalised shape, which it checks with the parameters. Made
// for int64_t and SymInt.
template <class I>
std::pair<I, I> norm_rows(std::string_view op,
                          const Spec<I>& input,
                          ArrayRef<I> shape,
                          const Spec<I>& weight,
                          const Spec<I>& bias);
// Parameters and statistics beside an input have its dtype, or float's where
// that has 16 bits.
template <class I>
void check_parameter_dtypes(std::string_view op,
                            const Spec<I>& input,
                            std::initializer_list<const Spec<I>*> beside) {
  for (const Spec<I>* t : beside) {
    if (!t->defined() || t->dtype() == input.dtype()) continue;
    TAEDA_CHECK(is_reduced_floating(input.dtype()) && t->dtype() == kFloat,
                op,
                ": mixed dtype: expected parameters and statistics of the "
                "input's dtype ",
                input.dtype(),
                " (or Float beside 16-bit inputs), got ",
                t->dtype());
  }
}
// PyTorch's dtype for saved statistics: the parameters' when inputs are 16-bit.
template <class I>
ScalarType statistics_type(const Spec<I>& input,
                           const Spec<I>& weight,
                           const Spec<I>& bias) {
  if (!is_reduced_floating(input.dtype())) return input.dtype();
  bool wide = weight.dtype() == kFloat || bias.dtype() == kFloat;
  return wide ? kFloat : input.dtype();
}

}  // namespace taeda::native

#include <taeda/aten/iter/pointwise.h>

namespace taeda::native {

template <class F>
void visit_norm_type(std::string_view op, ScalarType t, F&& f) {
  switch (t) {
    case kFloat:
      return f(float{});
    case kDouble:
      return f(double{});
    case kBFloat16:
      return f(BFloat16{});
    case kHalf:
      return f(Half{});
    default:
      not_implemented_for(op, t);
  }
}

}  // namespace taeda::native
