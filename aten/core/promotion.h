// PyTorch's promotion of mixed operands: dimensioned tensors decide before 0-d
// tensors, and those before Python numbers, within a category.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

class TAEDA_API ResultType {
 public:
  void add(const TensorBase& t) {
    add(t.dtype(), t.dim(), t.impl()->is_wrapped_number);
  }
  // Of a Spec (aten/iter/spec.h).
  template <class S>
    requires requires(const S& s) { s.is_wrapped_number(); }
  void add(const S& spec) {
    add(spec.dtype(), spec.dim(), spec.is_wrapped_number());
  }
  // By the facts of a tensor.
  void add(ScalarType dtype, int64_t dim, bool is_wrapped_number);
  void add(const Scalar& s);
  ScalarType get() const;

 private:
  ScalarType dim_ = ScalarType::Undefined;
  ScalarType zero_ = ScalarType::Undefined;
  ScalarType number_ = ScalarType::Undefined;
};

TAEDA_API ScalarType result_type(TensorBaseList tensors);
TAEDA_API ScalarType result_type(const TensorBase& a, const TensorBase& b);
TAEDA_API ScalarType result_type(const TensorBase& a, const Scalar& b);

}  // namespace taeda
