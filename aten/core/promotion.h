// PyTorch's promotion of mixed operands: dimensioned tensors decide before 0-d
// tensors, and those before Python numbers, within a category.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda {

class TAEDA_API ResultType {
 public:
  void add(const TensorBase& t);
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
