// Convolutions by cuDNN.
#pragma once

#include <taeda/aten/core/tensor_base.h>

namespace taeda::cuda {

// Note [Convolutions by cuDNN]
// A convolution y = w * x is a graph of one operation of the library's; which
// of the three tensors is computed from the other two is its way: y (forward),
// x (gradient of the input, and a transposed convolution), or w. How many
// groups there are follows from the channels. The library sees dense tensors in
// rows or with their channels innermost, all three alike; one spatial dim is
// two, the first of size 1.
//
// The library proposes engines for a problem in an order of its own. The first
// that can be made, and whose notes say nothing that is not allowed (TF32 of
// float32, sums in any order), is kept, up to kMostProblems for each device;
// with `backends.cudnn.benchmark` the quickest of them is, by three runs each
// on the program's memory, but not while a graph is recorded. Workspace is
// taken for each call on the current stream. The library is entered by one
// thread of a device at a time.
//
// Where there is no library, or no engine for a problem, `convolve` answers
// false and our own kernels run.
struct ConvolutionSide {
  void* data = nullptr;
  DimVector sizes, strides;  // batch, channels, two or three spatial dims
};
struct Convolution {
  enum Way : uint8_t { Forward, InputGradient, WeightGradient };
  Way way = Forward;
  ScalarType dtype{};
  ConvolutionSide x, w, y;
  DimVector stride, padding, dilation;
};

// Whether the library is there; warns once where it is not.
bool has_cudnn();
// On the device's current stream. False: nothing was done.
bool convolve(const char* op, const Convolution& convolution, int device);
// 90100 of 9.1; 0 without the library.
int64_t cudnn_version();

}  // namespace taeda::cuda
