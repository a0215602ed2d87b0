// Convolution geometry, and the two ways of computing one.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/native/dnn/geometry.h>

#include <array>

namespace taeda::native {

// The arguments of a convolution, with one entry per spatial dim.
struct ConvArgs {
  DimVector stride, padding, dilation, output_padding;
  bool transposed = false;
  int64_t groups = 1;
};

// Checks everything that PyTorch checks; spreads single values over all dims.
ConvArgs conv_args(const Tensor& input,
                   const Tensor& weight,
                   const OptionalTensor& bias,
                   IntArrayRef stride,
                   IntArrayRef padding,
                   IntArrayRef dilation,
                   bool transposed,
                   IntArrayRef output_padding,
                   int64_t groups);
DimVector conv_output_sizes(const Tensor& input,
                            const Tensor& weight,
                            const ConvArgs& args);
// Channels-last when either operand is.
MemoryFormat conv_format(const Tensor& input, const Tensor& weight);

// A plain convolution that maps `in` to `out` (so a transposed one maps its
// output to its input), as dnn.h describes it.
dnn::Conv conv_geometry(const Tensor& in,
                        const Tensor& out,
                        const Tensor& weight,
                        const ConvArgs& args,
                        bool channels_last);

// Products over unfolded inputs, for every dtype with gemm; all row-major.
void conv_forward_loops(const dnn::Conv& c,
                        const Tensor& in,
                        const Tensor& weight,
                        const Tensor& out);
void conv_input_loops(const dnn::Conv& c,
                      const Tensor& grad_out,
                      const Tensor& weight,
                      const Tensor& grad_in);
void conv_weight_loops(const dnn::Conv& c,
                       const Tensor& in,
                       const Tensor& grad_out,
                       const Tensor& grad_weight);

}  // namespace taeda::native
