// conv1d to conv3d and their transposes: unbatched inputs, padding by name.
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/_convolution.h>
#include <taeda/gen/native/_convolution_mode.h>
#include <taeda/gen/native/conv1d.h>
#include <taeda/gen/native/conv2d.h>
#include <taeda/gen/native/conv3d.h>
#include <taeda/gen/native/conv_transpose1d.h>
#include <taeda/gen/native/conv_transpose2d.h>
#include <taeda/gen/native/conv_transpose3d.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/convolution.h>
#include <taeda/gen/ops/reshape.h>

#include <algorithm>

namespace taeda::native {

namespace {

// The input with a batch dim; `added` tells whether it was put there.
Tensor batched(const char* op, const Tensor& input, int64_t dims, bool& added) {
  added = input.dim() == dims + 1;
  TAEDA_CHECK(added || input.dim() == dims + 2,
              "Expected ",
              dims + 1,
              "D (unbatched) or ",
              dims + 2,
              "D (batched) input to ",
              op,
              ", but got input of size: ",
              input.sizes());
  if (!added) return input;
  Dims<SymInt> sizes{SymInt(1)};
  for (const SymInt& s : symbolic_sizes(input)) sizes.push_back(s);
  return reshape_sized(input, sizes);
}

Tensor unbatched(const Tensor& out, bool added) {
  if (!added) return out;
  return reshape_sized(out, symbolic_sizes(out).slice(1));
}

Tensor plain(const char* op,
             int64_t dims,
             const Tensor& input,
             const Tensor& weight,
             const OptionalTensor& bias,
             IntArrayRef stride,
             IntArrayRef padding,
             IntArrayRef dilation,
             int64_t groups) {
  bool added = false;
  Tensor x = batched(op, input, dims, added);
  DimVector none(static_cast<size_t>(dims), 0);
  return unbatched(
      ops::convolution(
          x, weight, bias, stride, padding, dilation, false, none, groups),
      added);
}

// padding='same': the odd element of a dim goes behind its end.
Tensor same_padding(const Tensor& input,
                    const Tensor& weight,
                    const OptionalTensor& bias,
                    IntArrayRef stride,
                    IntArrayRef dilation,
                    int64_t groups) {
  size_t dims = static_cast<size_t>(weight.dim() - 2);
  TAEDA_CHECK(weight.dim() > 2, "weight should have at least three dimensions");
  TAEDA_CHECK(
      std::all_of(
          stride.begin(), stride.end(), [](int64_t s) { return s == 1; }),
      "padding='same' is not supported for strided convolutions");
  DimVector low(dims), extra(2 * dims, 0);
  bool even = true;
  for (size_t d = 0; d < dims; ++d) {
    int64_t step = dilation.size() == 1 ? dilation[0] : dilation[d];
    int64_t total = step * (weight.sizes()[d + 2] - 1);
    low[d] = total / 2;
    // Pads are listed from the last dim on, low end first.
    extra[2 * (dims - 1 - d) + 1] = total % 2;
    even = even && total % 2 == 0;
  }
  Tensor x =
      even ? input : ops::constant_pad_nd(input, extra, Scalar(int64_t{0}));
  DimVector none(dims, 0);
  return ops::convolution(
      x, weight, bias, stride, low, dilation, false, none, groups);
}

}  // namespace

Tensor _convolution_mode(const Tensor& input,
                         const Tensor& weight,
                         const OptionalTensor& bias,
                         ArrayRef<int64_t> stride,
                         std::string_view padding,
                         ArrayRef<int64_t> dilation,
                         int64_t groups) {
  if (padding == "same") {
    return same_padding(input, weight, bias, stride, dilation, groups);
  }
  TAEDA_CHECK(padding == "valid", "Invalid padding string: '", padding, "'");
  DimVector none(static_cast<size_t>(std::max<int64_t>(weight.dim() - 2, 1)),
                 0);
  return ops::convolution(
      input, weight, bias, stride, none, dilation, false, none, groups);
}

Tensor _convolution(const Tensor& input,
                    const Tensor& weight,
                    const OptionalTensor& bias,
                    ArrayRef<int64_t> stride,
                    ArrayRef<int64_t> padding,
                    ArrayRef<int64_t> dilation,
                    bool transposed,
                    ArrayRef<int64_t> output_padding,
                    int64_t groups,
                    bool,
                    bool,
                    bool,
                    bool) {
  return ops::convolution(input,
                          weight,
                          bias,
                          stride,
                          padding,
                          dilation,
                          transposed,
                          output_padding,
                          groups);
}

#define TAEDA_CONV(NAME, DIMS)                                                 \
  Tensor NAME(const Tensor& input,                                             \
              const Tensor& weight,                                            \
              const OptionalTensor& bias,                                      \
              ArrayRef<int64_t> stride,                                        \
              ArrayRef<int64_t> padding,                                       \
              ArrayRef<int64_t> dilation,                                      \
              int64_t groups) {                                                \
    return plain(                                                              \
        #NAME, DIMS, input, weight, bias, stride, padding, dilation, groups);  \
  }                                                                            \
  Tensor NAME(const Tensor& input,                                             \
              const Tensor& weight,                                            \
              const OptionalTensor& bias,                                      \
              ArrayRef<int64_t> stride,                                        \
              std::string_view padding,                                        \
              ArrayRef<int64_t> dilation,                                      \
              int64_t groups) {                                                \
    bool added = false;                                                        \
    Tensor x = batched(#NAME, input, DIMS, added);                             \
    return unbatched(                                                          \
        _convolution_mode(x, weight, bias, stride, padding, dilation, groups), \
        added);                                                                \
  }
TAEDA_CONV(conv1d, 1)
TAEDA_CONV(conv2d, 2)
TAEDA_CONV(conv3d, 3)
#undef TAEDA_CONV

#define TAEDA_CONV_TRANSPOSE(NAME, DIMS)              \
  Tensor NAME(const Tensor& input,                    \
              const Tensor& weight,                   \
              const OptionalTensor& bias,             \
              ArrayRef<int64_t> stride,               \
              ArrayRef<int64_t> padding,              \
              ArrayRef<int64_t> output_padding,       \
              int64_t groups,                         \
              ArrayRef<int64_t> dilation) {           \
    bool added = false;                               \
    Tensor x = batched(#NAME, input, DIMS, added);    \
    return unbatched(ops::convolution(x,              \
                                      weight,         \
                                      bias,           \
                                      stride,         \
                                      padding,        \
                                      dilation,       \
                                      true,           \
                                      output_padding, \
                                      groups),        \
                     added);                          \
  }
TAEDA_CONV_TRANSPOSE(conv_transpose1d, 1)
TAEDA_CONV_TRANSPOSE(conv_transpose2d, 2)
TAEDA_CONV_TRANSPOSE(conv_transpose3d, 3)
#undef TAEDA_CONV_TRANSPOSE

}  // namespace taeda::native
