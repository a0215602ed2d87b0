// Gradients of convolutions by convolutions: what they are differentiated and
// mapped by.
#include <taeda/gen/native/convolution_backward.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/convolution.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::native {

namespace {

struct Geometry {
  DimVector stride, padding, dilation;
  int64_t groups;
};

DimVector repeated(IntArrayRef values, size_t dims) {
  return values.size() == 1 ? DimVector(dims, values[0]) : DimVector(values);
}

// The gradient of conv(x, w) with respect to x, a tensor of `sizes`: the
// transposed convolution, padded at the end to just that size.
Tensor input_gradient(const Tensor& grad,
                      const Tensor& weight,
                      IntArrayRef sizes,
                      const Geometry& g) {
  size_t dims = g.stride.size();
  DimVector extra(dims);
  for (size_t d = 0; d < dims; ++d) {
    int64_t made = (grad.sizes()[d + 2] - 1) * g.stride[d] - 2 * g.padding[d] +
                   g.dilation[d] * (weight.sizes()[d + 2] - 1) + 1;
    extra[d] = sizes[d + 2] - made;
  }
  return ops::convolution(grad,
                          weight,
                          std::nullopt,
                          g.stride,
                          g.padding,
                          g.dilation,
                          true,
                          extra,
                          g.groups);
}

// The first places of all dims behind the second one, as many as `sizes` says.
Tensor first_places(Tensor full, IntArrayRef sizes) {
  for (size_t d = 2; d < sizes.size(); ++d) {
    auto dim = static_cast<int64_t>(d);
    if (full.size(dim) != sizes[d]) {
      full = ops::narrow(full, dim, int64_t{0}, sizes[d]);
    }
  }
  return full;
}

// [n, g c, ...] to [c, g n, ...]: what was summed over becomes channels.
Tensor batch_as_channels(const Tensor& t, int64_t groups) {
  DimVector split(t.sizes());
  split[1] = groups;
  split.insert(split.begin() + 2, t.sizes()[1] / groups);
  Tensor s = ops::transpose(ops::reshape(t, split), 0, 2);  // [c, g, n, ...]
  DimVector joined(t.sizes());
  joined[0] = t.sizes()[1] / groups;
  joined[1] = groups * t.sizes()[0];
  return ops::reshape(s, joined);
}

// The gradient of conv(x, w) with respect to w, a tensor of `sizes`: a
// convolution of x with the gradient, stride and dilation exchanged. Its memory
// is in order, as that of the gradient that the kernels compute: programs
// flatten gradients with `view`.
Tensor weight_gradient(const Tensor& grad,
                       const Tensor& input,
                       IntArrayRef sizes,
                       const Geometry& g) {
  Tensor x = batch_as_channels(input, g.groups);
  Tensor y = ops::transpose(grad, 0, 1);  // [g o, n, ...]
  DimVector none(g.stride.size(), 0);
  Tensor full = ops::convolution(x,
                                 y,
                                 std::nullopt,
                                 g.dilation,
                                 g.padding,
                                 g.stride,
                                 false,
                                 none,
                                 g.groups);
  return ops::contiguous(ops::transpose(first_places(full, sizes), 0, 1),
                         MemoryFormat::Contiguous);
}

// The gradient of a transposed convolution with respect to x. An output padding
// of at least the stride has room for a place more than x has.
Tensor transposed_input_gradient(const Tensor& grad,
                                 const Tensor& weight,
                                 IntArrayRef sizes,
                                 const Geometry& g) {
  DimVector none(g.stride.size(), 0);
  Tensor full = ops::convolution(grad,
                                 weight,
                                 std::nullopt,
                                 g.stride,
                                 g.padding,
                                 g.dilation,
                                 false,
                                 none,
                                 g.groups);
  return first_places(full, sizes);
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> convolution_backward_means(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& weight,
    std::optional<IntArrayRef>,
    IntArrayRef stride,
    IntArrayRef padding,
    IntArrayRef dilation,
    bool transposed,
    IntArrayRef,
    int64_t groups,
    ArrayRef<bool> wanted) {
  size_t dims = static_cast<size_t>(weight.dim() - 2);
  Geometry g{repeated(stride, dims),
             repeated(padding, dims),
             repeated(dilation, dims),
             groups};
  Tensor w = weight.is_complex() ? ops::conj(weight) : weight;
  Tensor x = input.is_complex() ? ops::conj(input) : input;
  Tensor gi, gw, gb;
  if (wanted[0]) {
    gi = transposed ? transposed_input_gradient(grad, w, input.sizes(), g)
                    : input_gradient(grad, w, input.sizes(), g);
  }
  if (wanted[1]) {
    gw = transposed ? weight_gradient(x, grad, weight.sizes(), g)
                    : weight_gradient(grad, x, weight.sizes(), g);
  }
  if (wanted[2]) {
    DimVector all{0};
    for (int64_t d = 2; d < grad.dim(); ++d) all.push_back(d);
    gb = ops::sum(grad, IntArrayRef(all), false);
  }
  return {gi, gw, gb};
}

}  // namespace taeda::native
