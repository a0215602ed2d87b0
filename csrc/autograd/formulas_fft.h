// Derivatives of Fourier transforms between real numbers and half spectra.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

namespace taeda::autograd {

// Of a half spectrum of lines of `size` numbers, or of the full one.
TAEDA_API Tensor fft_r2c_backward(const Tensor& grad,
                                  IntArrayRef dims,
                                  int64_t normalization,
                                  bool onesided,
                                  const SymInt& size);
TAEDA_API Tensor fft_c2r_backward(const Tensor& grad,
                                  IntArrayRef dims,
                                  int64_t normalization);

}  // namespace taeda::autograd
