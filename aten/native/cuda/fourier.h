// Fourier transforms by cuFFT.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::cuda {

// Note [Transforms by cuFFT]
// A transform is of the last one to three dims of contiguous memory, of which
// there are `batches`; callers bring the dims there. Plans are made without
// workspace, which is taken for each call on the current stream, and kept: up
// to the limit of their device's cache, the one that was used longest ago being
// given up first. A plan is entered by one thread of its device at a time.
//
// Where there is no library, or it has no transform of a size (of half those
// that are no powers of two), `transform` answers false and our own kernel runs
// (transforms.cuh), which adds up every element for every other.
struct Fourier {
  ScalarType in, out;  // one of them may be real
  DimVector sizes;     // of the transform: that of the real side
  int64_t batches = 1;
  bool forward = true;
};

// Whether the library is there; warns once where it is not.
bool has_cufft();
// On the device's current stream. False: nothing was done. What is read may be
// used up where the result is real.
bool transform(
    const char* op, const Fourier& fourier, void* in, void* out, int device);

// The plans of a device.
int64_t fourier_plans(int device);
int64_t most_fourier_plans(int device);
void set_most_fourier_plans(int device, int64_t most);
void clear_fourier_plans(int device);

}  // namespace taeda::cuda
