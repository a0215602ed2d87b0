// Derivatives of fill, of dropout, and of complex numbers made of two tensors.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

#include <tuple>

namespace taeda::autograd {

// Of the one value that every element was set to.
TAEDA_API Tensor fill_backward(const Tensor& grad, ScalarType dtype);
TAEDA_API std::tuple<Tensor, Tensor> polar_backward(const Tensor& grad,
                                                    const Tensor& result,
                                                    SymIntArrayRef abs_sizes,
                                                    SymIntArrayRef angle_sizes);

// The factor of what native_dropout let through.
inline double dropout_scale(double p, std::optional<bool> train) {
  if (train && !*train) return 1;
  return p == 1 ? 0 : 1 / (1 - p);
}

}  // namespace taeda::autograd
