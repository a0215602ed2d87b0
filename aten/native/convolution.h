// Convolution geometry, and the two ways of computing one.
#pragma once

#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/dnn/problems.h>

#include <array>

namespace taeda::native {

// The arguments of a convolution, with one entry per spatial dim.
template <class I>
struct ConvArgsOver {
  Dims<I> stride, padding, dilation, output_padding;
  bool transposed = false;
  I groups = 1;
};
using ConvArgs = ConvArgsOver<int64_t>;

// Checks everything that PyTorch checks; spreads single values over all dims.
// Made for int64_t and SymInt, as the others are.
template <class I>
ConvArgsOver<I> conv_args(const Spec<I>& input,
                          const Spec<I>& weight,
                          const Spec<I>& bias,
                          ArrayRef<I> stride,
                          ArrayRef<I> padding,
                          ArrayRef<I> dilation,
                          bool transposed,
                          ArrayRef<I> output_padding,
                          const I& groups);
template <class I>
Dims<I> conv_output_sizes(const Spec<I>& input,
                          const Spec<I>& weight,
                          const ConvArgsOver<I>& args);
// Channels-last when either operand is.
template <class I>
MemoryFormat conv_format(const Spec<I>& input, const Spec<I>& weight) {
  if (input.dim() < 4) return MemoryFormat::Contiguous;
  MemoryFormat f = input.suggest_memory_format();
  if (f != MemoryFormat::Contiguous) return f;
  return weight.suggest_memory_format();
}

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
