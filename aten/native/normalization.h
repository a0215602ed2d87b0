// What the normalisation layers share.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/norm.h>

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

// Rows and their length for a normalised shape; checks both.
std::pair<int64_t, int64_t> norm_rows(std::string_view op,
                                      const Tensor& input,
                                      IntArrayRef shape,
                                      const Tensor& weight,
                                      const Tensor& bias);
// PyTorch's dtype for saved statistics: the parameters' when inputs are 16-bit.
ScalarType statistics_type(const Tensor& input,
                           const Tensor& weight,
                           const Tensor& bias);

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
