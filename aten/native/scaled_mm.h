// Products of float8 with scales, as devices share them.
#pragma once

#include <taeda/aten/iter/spec.h>

namespace taeda::native {

struct ScaledProduct {
  const Tensor& self;
  const Tensor& mat2;
  const Tensor& scale_a;
  const Tensor& scale_b;
  const OptionalTensor& bias;
  const OptionalTensor& scale_result;
  std::optional<ScalarType> given_dtype;

  ScalarType out_dtype() const { return given_dtype.value_or(self.dtype()); }
  // As PyTorch on the CPU, where the dtype of float8 is given.
  bool scales_result() const {
    return given_dtype && is_float8(*given_dtype) && scale_result &&
           scale_result->defined();
  }
  bool by_rows() const { return scale_a.numel() != 1 || scale_b.numel() != 1; }
};

// The operator's errors.
TAEDA_API void check_scaled_mm(const ScaledProduct& product);

// What comes after the sums (float32), where they are not scaled yet.
TAEDA_API Tensor scale_sums(const ScaledProduct& product, const Tensor& sums);

}  // namespace taeda::native
