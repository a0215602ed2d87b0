// What a convolution, and a product, looks like; shared by dnn.h and the
// plugin.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <taeda/c10/core/storage.h>

namespace taeda::dnn {

enum class DataType : uint8_t { kF32, kBF16 };

// A convolution of (batch, in_channels, in...) to (batch, out_channels, out...)
// with weights (out_channels, in_channels / groups, kernel...). All tensors are
// dense; `channels_last` says that channels are the innermost dimension.
struct Conv {
  DataType dtype;
  bool channels_last;  // src and dst
  bool weight_channels_last;
  int spatial;  // 1, 2 or 3 of the entries below
  int64_t batch;
  int64_t in_channels;
  int64_t out_channels;
  int64_t groups;
  std::array<int64_t, 3> in;  // sizes of src
  std::array<int64_t, 3> kernel;
  std::array<int64_t, 3> stride;
  std::array<int64_t, 3> dilation;  // 1: none
  std::array<int64_t, 3> pad_begin;
  std::array<int64_t, 3> pad_end;

  // Size of dst in a spatial dimension.
  int64_t out(int d) const {
    const auto i = static_cast<size_t>(d);
    const int64_t reach = dilation[i] * (kernel[i] - 1) + 1;
    return (in[i] + pad_begin[i] + pad_end[i] - reach) / stride[i] + 1;
  }
};

// Where a weight lies, so that its reordered form can be kept (Note [Kept
// forms]). Null: keep nothing.
struct WeightId {
  StorageImpl* storage = nullptr;
};

// C = op(A) op(B) + bias for each of `batch` row-major matrices, which may
// repeat (stride 0). bias is one row of n, or null.
struct MatMul {
  DataType dtype;
  bool trans_a;
  bool trans_b;
  bool has_bias;
  int64_t batch;
  int64_t m;
  int64_t n;
  int64_t k;
  int64_t lda;
  int64_t ldb;
  int64_t ldc;
  int64_t stride_a;
  int64_t stride_b;
  int64_t stride_c;
  float beta = 0;  // c is added beta times before the result is rounded
};

}  // namespace taeda::dnn
