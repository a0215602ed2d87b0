// What a convolution's arguments must satisfy, and its output's geometry.
#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/convolution.h>
#include <taeda/aten/settings.h>
#include <taeda/gen/native/convolution.h>
#include <taeda/gen/native/convolution_backward.h>

#include <algorithm>
#include <limits>
#include <type_traits>

namespace taeda::native {

namespace {

// One number stands for the same in all spatial dims.
template <class I>
Dims<I> spread(const char* what, ArrayRef<I> values, int64_t dims) {
  if (values.size() == 1) {
    return Dims<I>(static_cast<size_t>(dims), values[0]);
  }
  TAEDA_CHECK(static_cast<int64_t>(values.size()) == dims,
              "convolution: expected ",
              what,
              " to be a single integer value or a list of ",
              dims,
              " values to match the convolution dimensions, but got ",
              what,
              "=",
              values);
  return Dims<I>(values);
}

template <class I>
bool any_below(ArrayRef<I> values, int64_t bound) {
  return std::any_of(
      values.begin(), values.end(), [&](const I& v) { return v < bound; });
}

// Sizes as PyTorch's messages have them: 3 x 4.
template <class I>
std::string joined(ArrayRef<I> sizes) {
  std::string out;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (i > 0) out += " x ";
    append_to(out, sizes[i]);
  }
  return out;
}

template <class I>
void check_bias(const Spec<I>& weight, const Spec<I>& bias, const I& channels) {
  TAEDA_CHECK(bias.dim() == 1 && bias.sizes()[0] == channels,
              "Given ",
              "weight of size ",
              weight.sizes(),
              ", expected bias to be 1-dimensional with ",
              channels,
              " elements, but got bias of size ",
              bias.sizes(),
              " instead");
}

// Channels that fit the groups, and a kernel that fits into the padded input.
// Order and text of the checks are PyTorch's, here and below.
template <class I>
void check_plain(const Spec<I>& input,
                 const Spec<I>& weight,
                 const ConvArgsOver<I>& a) {
  TAEDA_CHECK(input.sizes()[1] == weight.sizes()[1] * a.groups,
              "Given groups=",
              a.groups,
              ", weight of size ",
              weight.sizes(),
              ", expected input",
              input.sizes(),
              " to have ",
              weight.sizes()[1] * a.groups,
              " channels, but got ",
              input.sizes()[1],
              " channels instead");
  TAEDA_CHECK(weight.sizes()[0] % a.groups == 0,
              "Given groups=",
              a.groups,
              ", expected weight to be divisible by ",
              a.groups,
              " at dimension 0, but got weight of size ",
              weight.sizes(),
              " instead");
  Dims<I> padded, reach;
  bool fits = true;
  for (size_t d = 0; d < a.stride.size(); ++d) {
    padded.push_back(input.sizes()[d + 2] + 2 * a.padding[d]);
    reach.push_back(a.dilation[d] * (weight.sizes()[d + 2] - 1) + 1);
    fits = fits && padded[d] >= reach[d];
  }
  TAEDA_CHECK(fits,
              "Calculated padded input size per channel: (",
              joined<I>(padded),
              "). Kernel size: (",
              joined<I>(reach),
              "). Kernel size can't be greater than actual input size");
}

// A transposed convolution has its weight the other way around: input channels
// come first.
template <class I>
void check_transposed(const Spec<I>& input,
                      const Spec<I>& weight,
                      const ConvArgsOver<I>& a) {
  TAEDA_CHECK(input.sizes()[1] == weight.sizes()[0],
              "Given transposed=1, weight of size ",
              weight.sizes(),
              ", expected input",
              input.sizes(),
              " to have ",
              weight.sizes()[0],
              " channels, but got ",
              input.sizes()[1],
              " channels instead");
  TAEDA_CHECK(weight.sizes()[0] % a.groups == 0,
              "Given groups=",
              a.groups,
              ", expected weight to be divisible by ",
              a.groups,
              " at dimension 0, but got weight of size ",
              weight.sizes(),
              " instead");
  for (size_t d = 0; d < a.stride.size(); ++d) {
    TAEDA_CHECK(a.output_padding[d] < a.stride[d] ||
                    a.output_padding[d] < a.dilation[d],
                "output padding must be smaller than either stride or "
                "dilation, but got output_padding ",
                ArrayRef<I>(a.output_padding),
                ", stride ",
                ArrayRef<I>(a.stride),
                ", dilation ",
                ArrayRef<I>(a.dilation));
  }
}

// Both sides of a padded input must be counted without overflow.
template <class I>
void check_far_padding(ArrayRef<I> padding) {
  if constexpr (std::is_same_v<I, int64_t>) {
    constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 2;
    for (size_t d = 0; d < padding.size(); ++d) {
      TAEDA_CHECK(padding[d] <= kMost,
                  "convolution: Given padding=",
                  padding[d],
                  " at dimension ",
                  d,
                  " , expected padding to be at most ",
                  kMost);
    }
  }
}

}  // namespace

// The arguments, one number for each spatial dim, after all checks that do not
// need the output's size.
template <class I>
ConvArgsOver<I> conv_args(const Spec<I>& input,
                          const Spec<I>& weight,
                          const Spec<I>& bias,
                          ArrayRef<I> stride,
                          ArrayRef<I> padding,
                          ArrayRef<I> dilation,
                          bool transposed,
                          ArrayRef<I> output_padding,
                          const I& groups) {
  int64_t dims = weight.dim() - 2;
  TAEDA_CHECK(dims > 0,
              "convolution: weight should have at least three dimensions, got ",
              weight);
  TAEDA_CHECK(groups > 0,
              "convolution: non-positive groups is not supported, expected "
              "groups to be greater than 0, but got groups=",
              groups);
  TAEDA_CHECK(weight.dim() == input.dim(),
              "Expected ",
              weight.dim(),
              "-dimensional input for ",
              weight.dim(),
              "-dimensional weight ",
              weight.sizes(),
              ", but got ",
              input.dim(),
              "-dimensional input of size ",
              input.sizes(),
              " instead");
  ConvArgsOver<I> a;
  a.stride = spread("stride", stride, dims);
  a.padding = spread("padding", padding, dims);
  a.dilation = spread("dilation", dilation, dims);
  a.output_padding = spread("output_padding", output_padding, dims);
  a.transposed = transposed;
  a.groups = groups;
  TAEDA_CHECK(!any_below<I>(a.padding, 0), "negative padding is not supported");
  check_far_padding<I>(a.padding);
  TAEDA_CHECK(!any_below<I>(a.output_padding, 0),
              "negative output_padding is not supported");
  TAEDA_CHECK(!any_below<I>(a.stride, 1),
              "non-positive stride is not supported");
  TAEDA_CHECK(!any_below<I>(a.dilation, 1),
              "convolution: dilation should be greater than zero, got ",
              ArrayRef<I>(a.dilation));
  TAEDA_CHECK(dims <= 3, "convolution: at most 3 spatial dims, got ", dims);
  TAEDA_CHECK(input.dtype() == weight.dtype(),
              "Input type (",
              input.dtype(),
              ") and weight type (",
              weight.dtype(),
              ") should be the same");
  TAEDA_CHECK(!any_below(weight.sizes().slice(2), 1),
              "non-positive kernel size is not supported, got weight of size ",
              weight.sizes());
  TAEDA_CHECK(weight.sizes()[0] >= groups,
              "Given groups=",
              groups,
              ", expected weight to be at least ",
              groups,
              " at dimension 0, but got weight of size ",
              weight.sizes(),
              " instead");
  if (bias.defined()) {
    TAEDA_CHECK(bias.dtype() == input.dtype(),
                "Input type (",
                input.dtype(),
                ") and bias type (",
                bias.dtype(),
                ") should be the same");
    check_bias(weight,
               bias,
               transposed ? weight.sizes()[1] * groups : weight.sizes()[0]);
  }
  transposed ? check_transposed(input, weight, a)
             : check_plain(input, weight, a);
  return a;
}

// A plain convolution rounds down what is left of the last stride; a transposed
// one undoes it, and output_padding says how much had been rounded off.
template <class I>
Dims<I> conv_output_sizes(const Spec<I>& input,
                          const Spec<I>& weight,
                          const ConvArgsOver<I>& a) {
  Dims<I> sizes{
      input.sizes()[0],
      a.transposed ? weight.sizes()[1] * a.groups : weight.sizes()[0]};
  for (size_t d = 0; d < a.stride.size(); ++d) {
    I in = input.sizes()[d + 2];
    I reach = a.dilation[d] * (weight.sizes()[d + 2] - 1) + 1;
    I out = a.transposed ? (in - 1) * a.stride[d] - 2 * a.padding[d] + reach +
                               a.output_padding[d]
                         : (in + 2 * a.padding[d] - reach) / a.stride[d] + 1;
    TAEDA_CHECK(out >= 0 && (!a.transposed || out > 0),
                "convolution: Given input size per channel: (",
                joined(input.sizes().slice(2)),
                "). Calculated output size per channel is too small: ",
                out);
    sizes.push_back(out);
  }
  return sizes;
}

#define TAEDA_CONV(I)                                \
  template ConvArgsOver<I> conv_args(const Spec<I>&, \
                                     const Spec<I>&, \
                                     const Spec<I>&, \
                                     ArrayRef<I>,    \
                                     ArrayRef<I>,    \
                                     ArrayRef<I>,    \
                                     bool,           \
                                     ArrayRef<I>,    \
                                     const I&);      \
  template Dims<I> conv_output_sizes(                \
      const Spec<I>&, const Spec<I>&, const ConvArgsOver<I>&);
TAEDA_CONV(int64_t)
TAEDA_CONV(SymInt)
#undef TAEDA_CONV

// The problem as oneDNN wants it told; see dnn/problems.h.
dnn::Conv conv_geometry(const Tensor& in,
                        const Tensor& out,
                        const Tensor& weight,
                        const ConvArgs& args,
                        bool channels_last) {
  dnn::Conv c{};
  c.dtype =
      in.dtype() == kBFloat16 ? dnn::DataType::kBF16 : dnn::DataType::kF32;
  c.channels_last = channels_last;
  c.weight_channels_last = channels_last && !weight.is_contiguous();
  c.spatial = static_cast<int>(args.stride.size());
  c.batch = in.sizes()[0];
  c.in_channels = in.sizes()[1];
  c.out_channels = out.sizes()[1];
  c.groups = args.groups;
  for (size_t d = 0; d < args.stride.size(); ++d) {
    c.in[d] = in.sizes()[d + 2];
    c.kernel[d] = weight.sizes()[d + 2];
    c.stride[d] = args.stride[d];
    c.dilation[d] = args.dilation[d];
    c.pad_begin[d] = args.padding[d];
    int64_t reach = c.dilation[d] * (c.kernel[d] - 1) + 1;
    c.pad_end[d] = args.padding[d];
    int64_t wanted = out.sizes()[d + 2];
    // A transposed convolution's output padding makes the two ends differ.
    if (c.out(static_cast<int>(d)) != wanted) {
      c.pad_end[d] =
          (wanted - 1) * c.stride[d] + reach - c.in[d] - c.pad_begin[d];
    }
  }
  return c;
}

template <class I>
void convolution_shape(const Spec<I>& input,
                       const Spec<I>& weight,
                       const Spec<I>& bias,
                       ArrayRef<I> stride,
                       ArrayRef<I> padding,
                       ArrayRef<I> dilation,
                       bool transposed,
                       ArrayRef<I> output_padding,
                       I groups,
                       Plan<I>& plan) {
  auto args = conv_args(input,
                        weight,
                        bias,
                        stride,
                        padding,
                        dilation,
                        transposed,
                        output_padding,
                        groups);
  plan.set(0,
           conv_output_sizes(input, weight, args),
           conv_format(input, weight),
           input.dtype());
}
TAEDA_SHAPE(convolution_shape);

template <class I>
void convolution_backward_shape(const Spec<I>& grad_output,
                                const Spec<I>& input,
                                const Spec<I>& weight,
                                std::optional<ArrayRef<I>>,
                                ArrayRef<I> stride,
                                ArrayRef<I> padding,
                                ArrayRef<I> dilation,
                                bool transposed,
                                ArrayRef<I> output_padding,
                                I groups,
                                ArrayRef<bool> output_mask,
                                Plan<I>& plan) {
  auto args = conv_args<I>(input,
                           weight,
                           {},
                           stride,
                           padding,
                           dilation,
                           transposed,
                           output_padding,
                           groups);
  check_mask("convolution_backward", output_mask, 3);
  check_shape("convolution_backward",
              "grad_output",
              grad_output,
              ArrayRef<I>(conv_output_sizes(input, weight, args)));
  if (output_mask[0]) {
    plan.set(0, input.sizes(), conv_format(input, weight), input.dtype());
  }
  if (output_mask[1]) plan.set(1, weight.sizes(), weight.dtype());
  if (output_mask[2]) {
    plan.set(2, {grad_output.sizes()[1]}, grad_output.dtype());
  }
}
TAEDA_SHAPE(convolution_backward_shape);

}  // namespace taeda::native
