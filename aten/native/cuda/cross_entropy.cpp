// Cross entropy of rows with class numbers, and its gradient, on the device.
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/rows.h>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

constexpr const char* kForwardName = "_cross_entropy_rows";
constexpr RowKernel kForward{kForwardName,
                             "cross_entropy",
                             "CrossEntropy",
                             1,
                             2,
                             /*folds=*/true,
                             /*writes=*/false,
                             /*leaves_states=*/false};
constexpr RowKernel kBackward{"_cross_entropy_rows_backward",
                              "cross_entropy",
                              "CrossEntropyBack",
                              1,
                              1,
                              /*folds=*/false};
constexpr int64_t kNone = 0, kMean = 1;

// Tensors that must outlive the launches.
struct Classes {
  Tensor x, target, weight;
  RowCall call{};
  Classes(const Tensor& self,
          const Tensor& targets,
          const OptionalTensor& weights,
          int64_t ignored)
      : x(in_rows(self)), target(in_dtype(targets, kLong)) {
    call.rows = x.sizes()[0];
    call.count = x.sizes()[1];
    call.in[0] = x.const_raw_data();
    call.targets = target.const_raw_data();
    call.ignored = ignored;
    if (!weights || !weights->defined()) return;
    weight = in_rows(*weights);
    call.factors = weight.const_raw_data();
  }
  ScalarType weight_type() const {
    return weight.defined() ? weight.dtype() : x.dtype();
  }
};

std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& self,
                                           const Tensor& target,
                                           const OptionalTensor& weight,
                                           int64_t reduction,
                                           int64_t ignore_index) {
  Classes given(self, target, weight, ignore_index);
  RowCall& call = given.call;
  ScalarType t = self.dtype(), wide = accumulated_in(t);
  Device device = self.device();
  auto made = [&](IntArrayRef sizes, ScalarType dtype) {
    return make_tensor(kForwardName, sizes, dtype, device);
  };
  Tensor log_sums = made({call.rows}, wide);
  Tensor losses = made({call.rows, 2}, wide);
  Tensor total = made({}, wide);
  Tensor out = reduction == kNone ? made({call.rows}, t) : made({}, t);
  call.first = log_sums.mutable_raw_data();
  call.second = losses.mutable_raw_data();
  call.out = reduction == kNone ? out.mutable_raw_data() : nullptr;
  run_rows(kForward, t, given.weight_type(), device, call);
  call.first = total.mutable_raw_data();
  call.out = out.mutable_raw_data();
  call.flag = static_cast<int>(reduction);
  DeviceGuard guard(device.index);
  Grid grid;
  grid.threads = 1024;
  TemplateArgument arguments[] = {t};
  run_blocks({kForwardName, "cross_entropy", "cross_entropy_total", "RowCall"},
             arguments,
             grid,
             &call);
  return {out, log_sums, total};
}

Tensor backward(const Tensor& grad,
                const Tensor& self,
                const Tensor& target,
                const OptionalTensor& weight,
                int64_t reduction,
                int64_t ignore_index,
                const Tensor& log_sum_exp,
                const Tensor& total_weight) {
  Classes given(self, target, weight, ignore_index);
  RowCall& call = given.call;
  ScalarType t = self.dtype(), wide = accumulated_in(t);
  Tensor out = make_tensor(kBackward.op, self.sizes(), t, self.device());
  Tensor g = in_dtype(grad, wide), log_sums = in_dtype(log_sum_exp, wide);
  Tensor total = in_dtype(total_weight, wide);
  call.out = out.mutable_raw_data();
  call.first = const_cast<void*>(log_sums.const_raw_data());
  call.scale = g.const_raw_data();
  call.flag = reduction == kNone ? 1 : 0;
  if (reduction == kMean) call.divisor = total.const_raw_data();
  run_rows(kBackward, t, given.weight_type(), self.device(), call);
  return out;
}

}  // namespace

Definitions cross_entropy_definitions() {
  static const Definition all[] = {
      defined_as("_cross_entropy_rows", forward),
      defined_as("_cross_entropy_rows_backward", backward),
  };
  return all;
}

}  // namespace taeda::cuda
