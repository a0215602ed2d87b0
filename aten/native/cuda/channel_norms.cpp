// Batch norm and its gradients on the device.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/rows.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/rsqrt.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Three = std::tuple<Tensor, Tensor, Tensor>;
using Five = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

constexpr const char* kName = "native_batch_norm";
constexpr const char* kBackName = "native_batch_norm_backward";
constexpr const char* kHeader = "channel_norms";
constexpr RowKernel kMoments{kName,
                             kHeader,
                             "PlaneMoments",
                             1,
                             3,
                             true,
                             false,
                             /*leaves_states=*/true};
constexpr RowKernel kSlopes{kBackName,
                            kHeader,
                            "PlaneSums",
                            2,
                            2,
                            true,
                            false,
                            /*leaves_states=*/true};
constexpr int kLanes = 8;
constexpr int64_t kLeastRows = 64;
constexpr unsigned kThreads = 256;

// [batch, channels, plane], or rows of one element for each channel.
struct Channels {
  Tensor data;
  MemoryFormat format = MemoryFormat::Contiguous;
  int64_t channels, rows, count, plane;
  bool columns;

  explicit Channels(const Tensor& t)
      : format(t.suggest_memory_format()),
        channels(t.sizes()[1]),
        count(t.numel() / std::max<int64_t>(channels, 1)) {
    int64_t batch = std::max<int64_t>(t.sizes()[0], 1);
    columns = format != MemoryFormat::Contiguous || count == t.sizes()[0];
    plane = count / batch;
    rows = columns ? count : batch;
    data = laid_out(t, t.dtype());
  }
  Tensor made(const char* op, const Tensor& like) const {
    return make_tensor_strided(op,
                               like.sizes(),
                               format_strides(like.sizes(), format),
                               data.dtype(),
                               like.device());
  }
  // The same layout of a tensor of the same sizes.
  Tensor laid_out(const Tensor& t, ScalarType dtype) const {
    if (t.dtype() == dtype && t.is_contiguous(format)) return t;
    Tensor copy = make_tensor_strided(
        kName, t.sizes(), format_strides(t.sizes(), format), dtype, t.device());
    copy_into(copy, t);
    return copy;
  }
  RowCall rows_call() const {
    RowCall call{};
    call.rows = columns ? rows : rows * channels;
    call.count = columns ? channels : plane;
    call.groups = static_cast<int>(channels);
    call.width = 1;
    return call;
  }
};

Tensor or_none(const OptionalTensor& t) {
  return t && t->defined() ? Tensor(*t) : Tensor();
}
void* memory_of(const Tensor& t) {
  return t.defined() ? const_cast<void*>(t.const_raw_data()) : nullptr;
}

// The states of each channel, by planes or by columns of a block each.
Tensor states_of(const Channels& x,
                 const RowKernel& planes,
                 const char* columns,
                 const void* first,
                 const void* second,
                 const Tensor& means,
                 ChannelCall& call) {
  ScalarType t = x.data.dtype();
  Device device = x.data.device();
  call.channels = x.channels;
  call.count = x.count;
  call.rows = x.rows;
  if (!x.columns) {
    RowCall rows = x.rows_call();
    rows.in[0] = first;
    rows.in[1] = second;
    rows.first = memory_of(means);
    Tensor states(run_rows(planes, t, t, device, rows));
    call.outer = x.rows;
    call.splits = static_cast<int>(states.sizes()[1]);
    call.states = memory_of(states);
    return states;
  }
  int64_t across = (x.channels + 31) / 32;
  int64_t most = 4 * properties_of(current_device()).multiprocessors;
  int64_t splits = std::min((x.rows + kLeastRows - 1) / kLeastRows,
                            (most + across - 1) / across);
  call.splits = static_cast<int>(std::max<int64_t>(splits, 1));
  Tensor states = make_tensor(planes.op,
                              {call.splits, x.channels, planes.state},
                              accumulated_in(t),
                              device);
  call.states = memory_of(states);
  call.in[0] = first;
  call.in[1] = second;
  call.mean = memory_of(means);
  Grid grid{static_cast<unsigned>(across),
            static_cast<unsigned>(call.splits),
            32 * kLanes};
  TemplateArgument arguments[] = {t, kLanes};
  run_blocks(
      {planes.op, kHeader, columns, "ChannelCall"}, arguments, grid, &call);
  call.outer = call.splits;
  call.splits = 1;
  return states;
}

void join(const char* op,
          const char* function,
          ArrayRef<TemplateArgument> arguments,
          ChannelCall& call) {
  Grid grid;
  grid.threads = kThreads;
  grid.x = static_cast<unsigned>((call.channels + kThreads / 32 - 1) /
                                 (kThreads / 32));
  run_blocks({op, kHeader, function, "ChannelCall"}, arguments, grid, &call);
}

struct Statistics {
  Tensor mean, rstd;
};

// Running statistics that a kernel can write, and their way back. They get no
// new version: in training the derivative does not read them.
struct Running {
  Tensor given, used;
  Running(const Tensor& t, ScalarType wide) : given(t) {
    if (t.defined()) used = in_dtype(t, wide);
  }
  void write_back() const {
    if (given.defined() && !used.is_same(given)) copy_into(given, used);
  }
};

Statistics of_batch(const Channels& x,
                    const Tensor& running_mean,
                    const Tensor& running_var,
                    double momentum,
                    double eps) {
  ScalarType t = x.data.dtype(), wide = accumulated_in(t);
  Device device = x.data.device();
  Statistics made{make_tensor(kName, {x.channels}, wide, device),
                  make_tensor(kName, {x.channels}, wide, device)};
  Running means(running_mean, wide), variances(running_var, wide);
  ChannelCall call{};
  const void* data = x.data.const_raw_data();
  Tensor states =
      states_of(x, kMoments, "column_moments", data, nullptr, Tensor(), call);
  call.mean = memory_of(made.mean);
  call.rstd = memory_of(made.rstd);
  call.running_mean = memory_of(means.used);
  call.running_var = memory_of(variances.used);
  call.momentum = momentum;
  call.eps = eps;
  TemplateArgument arguments[] = {t};
  join(kName, "join_moments", arguments, call);
  means.write_back();
  variances.write_back();
  return made;
}

Statistics of_running(const Tensor& mean,
                      const Tensor& variance,
                      ScalarType wide,
                      double eps) {
  Tensor raised = ops::add(in_dtype(variance, wide), Scalar(eps));
  return {in_dtype(mean, wide), ops::rsqrt(raised)};
}

// Factors and summands of one dtype.
ScalarType give_affine(RowCall& call,
                       const Tensor& weight,
                       Tensor& bias,
                       ScalarType otherwise) {
  ScalarType dtype = weight.defined() ? weight.dtype()
                     : bias.defined() ? bias.dtype()
                                      : otherwise;
  if (bias.defined()) bias = in_dtype(bias, dtype);
  call.factors = memory_of(weight);
  call.summands = memory_of(bias);
  return dtype;
}

Tensor contiguous_or_none(const OptionalTensor& t) {
  return t && t->defined() ? in_rows(*t) : Tensor();
}

Tensor normalised(const Channels& x,
                  const Tensor& input,
                  const Statistics& s,
                  const Tensor& weight,
                  Tensor bias) {
  Tensor out = x.made(kName, input);
  RowCall call = x.rows_call();
  ScalarType t = x.data.dtype(), w = give_affine(call, weight, bias, t);
  call.in[0] = x.data.const_raw_data();
  call.out = out.mutable_raw_data();
  call.first = memory_of(s.mean);
  call.second = memory_of(s.rstd);
  RowKernel kernel{kName,
                   kHeader,
                   x.columns ? "ChannelColumns" : "ChannelPlanes",
                   1,
                   1,
                   /*folds=*/false};
  run_rows(kernel, t, w, input.device(), call);
  return out;
}

Three batch_norm(const Tensor& input,
                 const OptionalTensor& weight,
                 const OptionalTensor& bias,
                 const OptionalTensor& running_mean,
                 const OptionalTensor& running_var,
                 bool training,
                 double momentum,
                 double eps) {
  DeviceGuard guard(input.device().index);
  Channels x(input);
  ScalarType wide = accumulated_in(input.dtype());
  Statistics s =
      training
          ? of_batch(
                x, or_none(running_mean), or_none(running_var), momentum, eps)
          : of_running(*running_mean, *running_var, wide, eps);
  Tensor out = normalised(
      x, input, s, contiguous_or_none(weight), contiguous_or_none(bias));
  if (training) return {out, s.mean, s.rstd};
  Tensor none = make_tensor(kName, {0}, wide, input.device());
  return {out, none, none};
}

Five batch_norm_functional(const Tensor& input,
                           const OptionalTensor& weight,
                           const OptionalTensor& bias,
                           const Tensor& running_mean,
                           const Tensor& running_var,
                           bool training,
                           double momentum,
                           double eps) {
  Tensor mean = ops::clone(running_mean), var = ops::clone(running_var);
  auto [out, kept_mean, kept_rstd] =
      batch_norm(input, weight, bias, mean, var, training, momentum, eps);
  return {out, kept_mean, kept_rstd, mean, var};
}

// Sums of the gradient of each channel, and gradients of factors and summands.
struct Slopes {
  Tensor sums, of_factor, of_summand;
};
Slopes slopes_of(const Channels& x,
                 const Tensor& grad,
                 const Statistics& s,
                 ScalarType dtype) {
  ScalarType t = x.data.dtype(), wide = accumulated_in(t);
  Device device = x.data.device();
  ChannelCall call{};
  Tensor states = states_of(x,
                            kSlopes,
                            "column_slopes",
                            grad.const_raw_data(),
                            x.data.const_raw_data(),
                            s.mean,
                            call);
  Slopes made{make_tensor(kBackName, {x.channels, 2}, wide, device),
              make_tensor(kBackName, {x.channels}, dtype, device),
              make_tensor(kBackName, {x.channels}, dtype, device)};
  call.sums = memory_of(made.sums);
  call.rstd = memory_of(s.rstd);
  call.of_factor = memory_of(made.of_factor);
  call.of_summand = memory_of(made.of_summand);
  TemplateArgument arguments[] = {t, dtype};
  join(kBackName, "join_slopes", arguments, call);
  return made;
}

Three batch_norm_backward(const Tensor& grad_out,
                          const Tensor& input,
                          const OptionalTensor& given,
                          const OptionalTensor& running_mean,
                          const OptionalTensor& running_var,
                          const OptionalTensor& save_mean,
                          const OptionalTensor& save_rstd,
                          bool training,
                          double eps,
                          ArrayRef<bool> wanted) {
  DeviceGuard guard(input.device().index);
  Channels x(input);
  ScalarType t = input.dtype(), wide = accumulated_in(t);
  Tensor grad = x.laid_out(grad_out, t);
  Tensor weight = contiguous_or_none(given), none;
  Statistics s = training ? Statistics{in_dtype(*save_mean, wide),
                                       in_dtype(*save_rstd, wide)}
                          : of_running(*running_mean, *running_var, wide, eps);
  Slopes slopes;
  if (training || wanted[1] || wanted[2]) {
    slopes = slopes_of(x, grad, s, weight.defined() ? weight.dtype() : t);
  }
  Tensor gi;
  if (wanted[0]) {
    gi = x.made(kBackName, input);
    RowCall call = x.rows_call();
    ScalarType w = give_affine(call, weight, none, t);
    call.in[0] = grad.const_raw_data();
    call.in[1] = x.data.const_raw_data();
    call.out = gi.mutable_raw_data();
    call.first = memory_of(s.mean);
    call.second = memory_of(s.rstd);
    call.sums = training ? memory_of(slopes.sums) : nullptr;
    call.eps = 1.0 / static_cast<double>(x.count);
    RowKernel kernel{kBackName,
                     kHeader,
                     x.columns ? "ChannelColumnsBack" : "ChannelPlanesBack",
                     2,
                     1,
                     /*folds=*/false};
    run_rows(kernel, t, w, input.device(), call);
  }
  return {gi,
          wanted[1] ? slopes.of_factor : Tensor(),
          wanted[2] ? slopes.of_summand : Tensor()};
}

}  // namespace

Definitions channel_norm_definitions() {
  static const Definition all[] = {
      defined_as("native_batch_norm", batch_norm),
      defined_as("_native_batch_norm_legit_functional", batch_norm_functional),
      defined_as("native_batch_norm_backward", batch_norm_backward),
  };
  return all;
}

}  // namespace taeda::cuda
