// Maps of two inputs, and convolutions in another layout.
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/bilinear.h>
#include <taeda/gen/native/conv_tbc.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/bilinear.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/conv1d.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::native {

Tensor bilinear(const Tensor& input1,
                const Tensor& input2,
                const Tensor& weight,
                const OptionalTensor& bias) {
  TAEDA_CHECK(input1.dim() == input2.dim() && input1.dim() > 0,
              "bilinear(): input dimensions do not match: got ",
              input1.dim(),
              " and ",
              input2.dim());
  TAEDA_CHECK_AS(Index,
                 weight.dim() == 3,
                 "bilinear(): weight must have 3 dimensions, got ",
                 weight);
  Dims<SymInt> sizes(symbolic_sizes(input1));
  for (int64_t d = 0; d + 1 < input1.dim(); ++d) {
    TAEDA_CHECK(same_size(input1, d, input2, d),
                "bilinear(): input batch dimensions do not match at dim ",
                d,
                ": got ",
                symbolic_sizes(input1)[static_cast<size_t>(d)],
                " and ",
                symbolic_sizes(input2)[static_cast<size_t>(d)]);
  }
  int64_t outputs = weight.sizes()[0], i = weight.sizes()[1];
  int64_t j = weight.sizes()[2];
  TAEDA_CHECK(input1.size(-1) == i,
              "bilinear(): input1 size does not match weight size: got ",
              input1.size(-1),
              " but expected ",
              i);
  TAEDA_CHECK(input2.size(-1) == j,
              "bilinear(): input2 size does not match weight size: got ",
              input2.size(-1),
              " but expected ",
              j);
  if (bias) {
    TAEDA_CHECK(bias->dim() == 1 && bias->sizes()[0] == outputs,
                "bilinear(): bias size does not match weight size: got ",
                bias->sizes(),
                " but expected ",
                outputs);
  }
  ScalarType type = compute_type(weight.dtype());
  if (type != weight.dtype()) {
    // 16-bit products of three are rounded once.
    auto wide = [&](const Tensor& t) { return ops::_to_copy(t, type); };
    OptionalTensor added;
    if (bias) added = wide(*bias);
    return ops::_to_copy(
        ops::bilinear(wide(input1), wide(input2), wide(weight), added),
        weight.dtype());
  }
  sizes.back() = outputs;
  sizes.push_back(j);
  Tensor map = ops::reshape(ops::permute(weight, {1, 0, 2}), {i, outputs * j});
  Tensor half = reshape_sized(ops::matmul(input1, map), sizes);
  Tensor terms = ops::mul(half, ops::unsqueeze(input2, -2));
  Tensor out = ops::sum(terms, IntArrayRef{-1}, false, weight.dtype());
  return bias ? ops::add(out, *bias, Scalar(int64_t{1})) : out;
}

Tensor conv_tbc(const Tensor& self,
                const Tensor& weight,
                const Tensor& bias,
                int64_t pad) {
  TAEDA_CHECK(self.dim() == 3,
              "conv_tbc: Input must have 3 dims: time, batch, in_channel, got ",
              self);
  TAEDA_CHECK(
      weight.dim() == 3,
      "conv_tbc: Weight tensor must have 3 dims: kernel_width, in_channels, "
      "out_channels, got ",
      weight);
  TAEDA_CHECK(bias.dim() == 1, "conv_tbc: Bias must be 1-D, got ", bias);
  TAEDA_CHECK(
      self.sizes()[2] == weight.sizes()[1],
      "conv_tbc: Input dim 2 (input channels) is not == dim 1 in the weight "
      "tensor: ",
      self,
      " and ",
      weight);
  TAEDA_CHECK(
      weight.sizes()[2] == bias.sizes()[0],
      "conv_tbc: Bias size must equal dim 2 in the weight tensor (output "
      "channels), got ",
      bias,
      " and ",
      weight);
  Tensor out = ops::conv1d(ops::permute(self, {1, 2, 0}),
                           ops::permute(weight, {2, 1, 0}),
                           bias,
                           IntArrayRef{1},
                           IntArrayRef{pad},
                           IntArrayRef{1},
                           1);
  return ops::contiguous(ops::permute(out, {2, 0, 1}),
                         MemoryFormat::Contiguous);
}

}  // namespace taeda::native
