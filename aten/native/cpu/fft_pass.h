// The Fourier transform along one dim: lines move into place, are transformed
// and move out.
#pragma once

#include <taeda/c10/util/small_vector.h>

#include <cstdint>

namespace taeda::native {

enum class FftKind { kComplex, kFromReal, kWholeFromReal, kToReal };

// One dim of all lines. Pointers are to real numbers, strides count them.
template <class T>
struct FftPass {
  FftKind kind;
  bool forward;
  double factor;
  int64_t n;  // length of the line: of the real one, if one is real
  const T* in;
  T* out;
  int64_t in_step, out_step;
  // Of the other dims, those that lie as one being one; the last dim's
  // neighbours are transformed together.
  DimVector sizes, in_strides, out_strides;

  void add_dim(int64_t size, int64_t in_stride, int64_t out_stride) {
    if (!sizes.empty() && in_strides.back() == size * in_stride &&
        out_strides.back() == size * out_stride) {
      sizes.back() *= size;
      in_strides.back() = in_stride;
      out_strides.back() = out_stride;
      return;
    }
    sizes.push_back(size);
    in_strides.push_back(in_stride);
    out_strides.push_back(out_stride);
  }
};

void run_fft_pass(FftPass<float> pass);
void run_fft_pass(FftPass<double> pass);

}  // namespace taeda::native
