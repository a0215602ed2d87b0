// Convolutions: checks, geometry, and the choice of who computes them.
#include <taeda/aten/native/convolution.h>

#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/dnn/dnn.h>
#include <taeda/aten/settings.h>
#include <taeda/gen/native/convolution.h>
#include <taeda/gen/native/convolution_backward.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/sum.h>

namespace taeda::native {

namespace {

Tensor in_format(const Tensor& t, ScalarType dtype, MemoryFormat format) {
  bool plain = t.dtype() == dtype && !t.is_conj() && !t.is_neg();
  if (plain && t.is_contiguous(format)) return t;
  Tensor out = make_tensor_strided(
      "convolution", t.sizes(), format_strides(t.sizes(), format), dtype);
  copy_into(out, t);
  return out;
}

MemoryFormat format_for(int64_t dim, bool channels_last) {
  if (!channels_last) return MemoryFormat::Contiguous;
  return dim == 4 ? MemoryFormat::ChannelsLast : MemoryFormat::ChannelsLast3d;
}

bool dnn_takes(const Tensor& t) {
  return t.dtype() == kFloat || t.dtype() == kBFloat16;
}

// 16-bit inputs that oneDNN has no code for are computed in float: the loops
// would round after every channel. So are those with a bias that oneDNN does
// not add, or the result would be rounded twice.
ScalarType computed_in(ScalarType t, bool adds_bias = false) {
  bool wide = cpu_capability() >= CpuCapability::kAvx512 && !adds_bias &&
              settings::dnn_enabled.load(std::memory_order_relaxed);
  return t == kHalf || (t == kBFloat16 && !wide) ? kFloat : t;
}

void add_bias(const Tensor& out, const Tensor& bias) {
  if (!bias.defined() || out.numel() == 0) return;
  DimVector sizes(static_cast<size_t>(out.dim()), 1);
  DimVector strides(sizes.size(), 1);
  sizes[1] = bias.sizes()[0], strides[1] = bias.strides()[0];
  IntrusivePtr<TensorImpl> impl = bias.impl()->shallow_copy(false);
  impl->set_sizes_and_strides(sizes, strides);
  ops::add_(out, Tensor(std::move(impl)), Scalar(int64_t{1}));
}

// One run of a convolution: operands in one layout, results made to fit.
class Convolution {
 public:
  // `in` and `out` of the plain convolution are `input` and the output, or the
  // other way round when transposed.
  Convolution(const Tensor& input,
              const Tensor& weight,
              const ConvArgs& args,
              bool biased = false)
      : args_(args),
        weight_(weight),
        type_(computed_in(input.dtype(), biased && args.transposed)) {
    channels_last_ = conv_format(input, weight) != MemoryFormat::Contiguous;
    format_ = format_for(input.dim(), channels_last_);
  }

  Tensor make(IntArrayRef sizes) const {
    return make_tensor_strided(
        "convolution", sizes, format_strides(sizes, format_), type_);
  }

  void forward(const Tensor& input, const Tensor& bias, const Tensor& out) {
    if (args_.transposed) {
      data(out, in_format(input, type_, format_));
      add_bias(out, bias);
      return;
    }
    apply(in_format(input, type_, format_), bias, out);
  }

  void input_gradient(const Tensor& grad, const Tensor& grad_input) {
    Tensor g = in_format(grad, type_, format_);
    if (args_.transposed) {
      apply(g, {}, grad_input);
    } else {
      data(grad_input, g);
    }
  }

  void weight_gradient(const Tensor& input,
                       const Tensor& grad,
                       const Tensor& grad_weight) {
    Tensor x = in_format(input, type_, format_);
    Tensor g = in_format(grad, type_, format_);
    if (args_.transposed) std::swap(x, g);
    dnn::Conv c = conv_geometry(x, g, grad_weight, args_, channels_last_);
    c.weight_channels_last = false;
    bool done = dnn_takes(x) &&
                dnn::conv_backward_weights(c,
                                           x.const_raw_data(),
                                           g.const_raw_data(),
                                           grad_weight.mutable_raw_data(),
                                           nullptr);
    if (!done) {
      conv_weight_loops(c, contiguous(x), contiguous(g), grad_weight);
    }
  }

 private:
  // The plain convolution.
  void apply(const Tensor& in, const Tensor& bias, const Tensor& out) {
    Tensor w = in_format(weight_, type_, weight_format());
    dnn::Conv c = conv_geometry(in, out, w, args_, channels_last_);
    Tensor b = bias.defined() ? contiguous_as(bias, type_) : bias;
    const void* bias_data = b.defined() ? b.const_raw_data() : nullptr;
    if (dnn_takes(in) && dnn::conv_forward(c,
                                           in.const_raw_data(),
                                           w.const_raw_data(),
                                           {},
                                           bias_data,
                                           out.mutable_raw_data())) {
      return;
    }
    Tensor plain = plain_output(out);
    conv_forward_loops(c, contiguous(in), contiguous(w), plain);
    if (!plain.is_same(out)) copy_into(out, plain);
    add_bias(out, bias);
  }

  // The gradient of the plain convolution with respect to its input.
  void data(const Tensor& grad_in, const Tensor& grad_out) {
    Tensor w = in_format(weight_, type_, weight_format());
    dnn::Conv c = conv_geometry(grad_in, grad_out, w, args_, channels_last_);
    if (dnn_takes(grad_out) &&
        dnn::conv_backward_data(c,
                                grad_out.const_raw_data(),
                                w.const_raw_data(),
                                {},
                                grad_in.mutable_raw_data())) {
      return;
    }
    Tensor plain = plain_output(grad_in);
    conv_input_loops(c, contiguous(grad_out), contiguous(w), plain);
    if (!plain.is_same(grad_in)) copy_into(grad_in, plain);
  }

  Tensor plain_output(const Tensor& out) const {
    if (out.is_contiguous()) return out;
    return make_tensor("convolution", out.sizes(), type_);
  }

  MemoryFormat weight_format() const {
    bool last = channels_last_ && weight_.is_contiguous(format_);
    return last ? format_ : MemoryFormat::Contiguous;
  }

  const ConvArgs& args_;
  Tensor weight_;
  ScalarType type_;
  bool channels_last_ = false;
  MemoryFormat format_ = MemoryFormat::Contiguous;
};

// Sums over all dims but the channels'.
Tensor bias_gradient(const Tensor& grad) {
  DimVector dims;
  for (int64_t d = 0; d < grad.dim(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  return ops::sum(grad, IntArrayRef(dims), false);
}

}  // namespace

Tensor convolution(const Tensor& input,
                   const Tensor& weight,
                   const OptionalTensor& bias,
                   ArrayRef<int64_t> stride,
                   ArrayRef<int64_t> padding,
                   ArrayRef<int64_t> dilation,
                   bool transposed,
                   ArrayRef<int64_t> output_padding,
                   int64_t groups) {
  ConvArgs args = conv_args(input,
                            weight,
                            bias,
                            stride,
                            padding,
                            dilation,
                            transposed,
                            output_padding,
                            groups);
  DimVector sizes = conv_output_sizes(input, weight, args);
  if (input.is_meta()) {
    MemoryFormat f = conv_format(input, weight);
    return make_tensor_strided("convolution",
                               sizes,
                               format_strides(sizes, f),
                               input.dtype(),
                               input.device());
  }
  Convolution run(input, weight, args, bias.has_value());
  Tensor out = run.make(sizes);
  if (out.numel() == 0) return cast(out, input.dtype());
  Tensor b = bias ? *bias : Tensor();
  if (input.numel() == 0 || weight.numel() == 0) {
    fill_with(out, int64_t{0});
    add_bias(out, b);
  } else {
    run.forward(input, b, out);
  }
  return cast(out, input.dtype());
}

std::tuple<Tensor, Tensor, Tensor> convolution_backward(
    const Tensor& grad_output,
    const Tensor& input,
    const Tensor& weight,
    std::optional<ArrayRef<int64_t>> bias_sizes,
    ArrayRef<int64_t> stride,
    ArrayRef<int64_t> padding,
    ArrayRef<int64_t> dilation,
    bool transposed,
    ArrayRef<int64_t> output_padding,
    int64_t groups,
    ArrayRef<bool> output_mask) {
  (void)bias_sizes;
  ConvArgs args = conv_args(input,
                            weight,
                            std::nullopt,
                            stride,
                            padding,
                            dilation,
                            transposed,
                            output_padding,
                            groups);
  Device device = input.device();
  Tensor gi, gw, gb;
  if (device.is_meta()) {
    auto like = [&](const Tensor& t) {
      return make_tensor("convolution_backward", t.sizes(), t.dtype(), device);
    };
    if (output_mask[0]) gi = like(input);
    if (output_mask[1]) gw = like(weight);
    if (output_mask[2]) {
      int64_t channels = grad_output.sizes()[1];
      gb = make_tensor(
          "convolution_backward", {channels}, grad_output.dtype(), device);
    }
    return {gi, gw, gb};
  }
  // The derivative of w * x by x is conj(w); plain copies are made of it.
  Tensor x = input.is_complex() ? ops::conj(input) : input;
  Tensor w = weight.is_complex() ? ops::conj(weight) : weight;
  Convolution run(x, w, args);
  bool empty =
      grad_output.numel() == 0 || input.numel() == 0 || weight.numel() == 0;
  if (output_mask[0]) {
    gi = run.make(input.sizes());
    empty ? fill_with(gi, int64_t{0}) : run.input_gradient(grad_output, gi);
    gi = cast(gi, input.dtype());
  }
  if (output_mask[1]) {
    ScalarType type = computed_in(weight.dtype());
    gw = make_tensor("convolution", weight.sizes(), type);
    empty ? fill_with(gw, int64_t{0}) : run.weight_gradient(x, grad_output, gw);
    gw = cast(gw, weight.dtype());
  }
  if (output_mask[2]) gb = bias_gradient(grad_output);
  return {gi, gw, gb};
}

}  // namespace taeda::native
