// convolution and its gradients as calls of cuDNN's, see Note [Convolutions by
// cuDNN].
#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cuda/cudnn_plans.h>
#include <taeda/aten/native/cuda/quick.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/core/strides.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/view.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

bool has_convolutions_of(ScalarType t) {
  return t == kFloat || t == kDouble || t == kHalf || t == kBFloat16;
}

// Whether the library may compute from these.
bool may_use_cudnn(std::initializer_list<const TensorBase*> tensors) {
  const TensorBase& first = **tensors.begin();
  bool fits = first.dim() >= 3 && first.dim() <= 5 &&
              has_convolutions_of(first.dtype()) &&
              settings::cudnn_enabled.load();
  for (const TensorBase* t : tensors) {
    fits = fits && t->device() == first.device() &&
           t->dtype() == first.dtype() && t->layout() == Layout::Strided &&
           t->numel() > 0;
  }
  return fits && has_cudnn();
}

// Channels innermost where a tensor has them so.
MemoryFormat format_of(std::initializer_list<const TensorBase*> tensors) {
  for (const TensorBase* t : tensors) {
    MemoryFormat f = t->suggest_memory_format();
    if (f != MemoryFormat::Contiguous) return f;
  }
  return MemoryFormat::Contiguous;
}

DimVector with_two_dims(DimVector spatial, int64_t added) {
  if (spatial.size() == 1) spatial.insert(spatial.begin(), added);
  return spatial;
}

// One value stands for all dims.
DimVector spread(const IValue& given, size_t dims) {
  const auto& values = given.get<std::vector<int64_t>>();
  if (values.size() == 1) return DimVector(dims, values[0]);
  return DimVector(values.begin(), values.end());
}

class Call {
 public:
  Call(const char* op, const TensorBase& like, MemoryFormat format)
      : op_(op), format_(format), device_(like.device().index) {
    call_.dtype = like.dtype();
  }

  Call& geometry(const IValue& stride,
                 const IValue& padding,
                 const IValue& dilation,
                 size_t dims) {
    call_.stride = with_two_dims(spread(stride, dims), 1);
    call_.padding = with_two_dims(spread(padding, dims), 0);
    call_.dilation = with_two_dims(spread(dilation, dims), 1);
    return *this;
  }
  // Computes one of the three tensors; the others are read.
  bool run(Convolution::Way way,
           const TensorBase& x,
           const TensorBase& w,
           const TensorBase& y) {
    call_.way = way;
    const TensorBase& out = way == Convolution::Forward         ? y
                            : way == Convolution::InputGradient ? x
                                                                : w;
    TensorBase made = out;
    if (!out.is_contiguous(format_)) made = make_like(out);
    auto side = [&](const TensorBase& t) {
      return t.is_same(out) ? side_of(made, made.mutable_raw_data())
                            : read_side(t);
    };
    call_.x = side(x);
    call_.w = side(w);
    call_.y = side(y);
    if (!convolve(op_, call_, device_)) return false;
    if (!made.is_same(out)) copy_into(out, made);
    return true;
  }

 private:
  ConvolutionSide side_of(const TensorBase& t, void* data) const {
    DimVector sizes(t.sizes());
    if (sizes.size() == 3) sizes.insert(sizes.begin() + 2, int64_t{1});
    return {data, sizes, strides_of(sizes)};
  }
  ConvolutionSide read_side(const TensorBase& t) {
    kept_.push_back(ops::contiguous(Tensor(t), format_));
    const TensorBase& dense = kept_.back();
    return side_of(dense, const_cast<void*>(dense.const_raw_data()));
  }
  TensorBase make_like(const TensorBase& t) const {
    return make_tensor_strided(
        op_, t.sizes(), strides_of(t.sizes()), t.dtype(), t.device());
  }
  DimVector strides_of(IntArrayRef sizes) const {
    auto all = strides::of_format(sizes, format_);
    return DimVector(all.begin(), all.end());
  }

  const char* op_;
  MemoryFormat format_;
  int device_;
  Convolution call_;
  std::vector<TensorBase> kept_;
};

void add_bias(const TensorBase& out, const TensorBase& bias) {
  DimVector channel(static_cast<size_t>(out.dim()), 1);
  channel[1] = bias.numel();
  Tensor sum(out);
  ops::add_(sum, ops::view(Tensor(bias), channel));
}

}  // namespace

bool convolution_by_cudnn(const IValue* values,
                          const std::vector<TensorBase>& results) {
  const auto& input = values[0].get<TensorBase>();
  const auto& weight = values[1].get<TensorBase>();
  const TensorBase& out = results[0];
  if (!may_use_cudnn({&input, &weight, &out})) return false;
  auto dims = static_cast<size_t>(input.dim() - 2);
  Call call("convolution", input, format_of({&input, &weight}));
  call.geometry(values[3], values[4], values[5], dims);
  bool transposed = values[6].get<bool>();
  bool done = transposed
                  ? call.run(Convolution::InputGradient, out, weight, input)
                  : call.run(Convolution::Forward, input, weight, out);
  if (done && values[2].is<TensorBase>()) {
    const auto& bias = values[2].get<TensorBase>();
    if (bias.defined()) add_bias(out, bias);
  }
  return done;
}

bool convolution_backward_by_cudnn(const IValue* values,
                                   const std::vector<TensorBase>& results) {
  const auto& grad = values[0].get<TensorBase>();
  const auto& input = values[1].get<TensorBase>();
  const auto& weight = values[2].get<TensorBase>();
  if (!may_use_cudnn({&input, &weight, &grad})) return false;
  auto dims = static_cast<size_t>(input.dim() - 2);
  Call call("convolution_backward", input, format_of({&input, &weight, &grad}));
  call.geometry(values[4], values[5], values[6], dims);
  bool transposed = values[7].get<bool>();
  if (results[0].defined()) {
    bool done =
        transposed
            ? call.run(Convolution::Forward, grad, weight, results[0])
            : call.run(Convolution::InputGradient, results[0], weight, grad);
    if (!done) return false;
  }
  if (results[1].defined()) {
    const TensorBase &x = transposed ? grad : input,
                     &y = transposed ? input : grad;
    if (!call.run(Convolution::WeightGradient, x, results[1], y)) return false;
  }
  if (results[2].defined()) {
    DimVector all{0};
    for (int64_t d = 2; d < grad.dim(); ++d) all.push_back(d);
    copy_into(results[2], ops::sum(Tensor(grad), all, false));
  }
  return true;
}

}  // namespace taeda::cuda
