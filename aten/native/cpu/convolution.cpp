// Convolutions: the choice of who computes them.
#include <taeda/aten/cpu_capability.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/convolution.h>
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

// Reordering one weight takes as long as 65 products with it.
constexpr int64_t kFewPixels = 2048;

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
    channels_last_ =
        conv_format<int64_t>(input, weight) != MemoryFormat::Contiguous;
    format_ = format_for(input.dim(), channels_last_);
  }

  // `out` itself where it has the type that is computed in.
  Tensor computed(const Tensor& out) const {
    if (out.dtype() == type_) return out;
    return make_tensor_strided(
        "convolution", out.sizes(), out.strides(), type_);
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
                                           kept(w, c),
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
                                kept(w, c),
                                grad_in.mutable_raw_data())) {
      return;
    }
    Tensor plain = plain_output(grad_in);
    conv_input_loops(c, contiguous(grad_out), contiguous(w), plain);
    if (!plain.is_same(grad_in)) copy_into(grad_in, plain);
  }

  // Reordering weights is worth sparing where few pixels meet them.
  dnn::WeightId kept(const Tensor& w, const dnn::Conv& c) const {
    int64_t pixels = c.batch;
    for (int d = 0; d < c.spatial; ++d) pixels *= c.out(d);
    if (pixels > kFewPixels || !w.is_same(weight_)) return {};
    return {w.storage().get()};
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
void bias_gradient(const Tensor& grad, const Tensor& out) {
  DimVector dims;
  for (int64_t d = 0; d < grad.dim(); ++d) {
    if (d != 1) dims.push_back(d);
  }
  ops::sum_out(grad, IntArrayRef(dims), false, std::nullopt, out);
}

void finish(const Tensor& computed, const Tensor& out) {
  if (!computed.is_same(out)) copy_into(out, computed);
}

}  // namespace

void convolution_cpu(const Tensor& input,
                     const Tensor& weight,
                     const OptionalTensor& bias,
                     ArrayRef<int64_t> stride,
                     ArrayRef<int64_t> padding,
                     ArrayRef<int64_t> dilation,
                     bool transposed,
                     ArrayRef<int64_t> output_padding,
                     int64_t groups,
                     const Tensor& out) {
  if (out.numel() == 0) return;
  ConvArgs args = conv_args<int64_t>(input,
                                     weight,
                                     bias,
                                     stride,
                                     padding,
                                     dilation,
                                     transposed,
                                     output_padding,
                                     groups);
  Convolution run(input, weight, args, bias.has_value());
  Tensor y = run.computed(out);
  Tensor b = bias ? *bias : Tensor();
  if (input.numel() == 0 || weight.numel() == 0) {
    fill_with(y, int64_t{0});
    add_bias(y, b);
  } else {
    run.forward(input, b, y);
  }
  finish(y, out);
}

void convolution_backward_cpu(const Tensor& grad_output,
                              const Tensor& input,
                              const Tensor& weight,
                              std::optional<ArrayRef<int64_t>>,
                              ArrayRef<int64_t> stride,
                              ArrayRef<int64_t> padding,
                              ArrayRef<int64_t> dilation,
                              bool transposed,
                              ArrayRef<int64_t> output_padding,
                              int64_t groups,
                              ArrayRef<bool>,
                              const Tensor& grad_input,
                              const Tensor& grad_weight,
                              const Tensor& grad_bias) {
  ConvArgs args = conv_args<int64_t>(input,
                                     weight,
                                     {},
                                     stride,
                                     padding,
                                     dilation,
                                     transposed,
                                     output_padding,
                                     groups);
  // The derivative of w * x by x is conj(w); plain copies are made of it.
  Tensor x = input.is_complex() ? ops::conj(input) : input;
  Tensor w = weight.is_complex() ? ops::conj(weight) : weight;
  Convolution run(x, w, args);
  bool empty =
      grad_output.numel() == 0 || input.numel() == 0 || weight.numel() == 0;
  if (grad_input.defined()) {
    Tensor dx = run.computed(grad_input);
    empty ? fill_with(dx, int64_t{0}) : run.input_gradient(grad_output, dx);
    finish(dx, grad_input);
  }
  if (grad_weight.defined()) {
    RowMajor dw(grad_weight, computed_in(weight.dtype()));
    empty ? fill_with(dw.tensor(), int64_t{0})
          : run.weight_gradient(x, grad_output, dw.tensor());
    dw.finish();
  }
  if (grad_bias.defined()) bias_gradient(grad_output, grad_bias);
}

}  // namespace taeda::native
