// Layer, RMS and group norms and their gradients on the device.
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/rows.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/zeros.h>

#include <algorithm>
#include <limits>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

constexpr RowKernel kLayer{"native_layer_norm", "row_norms", "LayerNorm", 1, 3};
constexpr RowKernel kRms{"_fused_rms_norm", "row_norms", "RmsNorm", 1, 3};
constexpr RowKernel kGroup{"native_group_norm", "row_norms", "GroupNorm", 1, 3};
constexpr RowKernel kLayerBack{
    "native_layer_norm_backward", "row_norms", "LayerNormBack", 2, 2};
constexpr RowKernel kRmsBack{
    "_fused_rms_norm_backward", "row_norms", "RmsNormBack", 2, 2};
constexpr RowKernel kGroupBack{
    "native_group_norm_backward", "row_norms", "GroupNormBack", 2, 2};
constexpr RowKernel kPlanes{"native_group_norm_backward",
                            "row_norms",
                            "PlaneSums",
                            2,
                            2,
                            /*folds=*/true,
                            /*writes=*/false,
                            /*leaves_states=*/true};

// What is not given is undefined.
Tensor or_none(const OptionalTensor& t) {
  return t && t->defined() ? Tensor(*t) : Tensor();
}

// Factors and summands of one dtype, behind each other.
struct Affine {
  Tensor factors, summands;
  ScalarType dtype;
  Affine(const Tensor& weight, const Tensor& bias, ScalarType otherwise)
      : dtype(weight.defined() ? weight.dtype()
              : bias.defined() ? bias.dtype()
                               : otherwise) {
    if (weight.defined()) factors = in_dtype(weight, dtype);
    if (bias.defined()) summands = in_dtype(bias, dtype);
  }
  void give(RowCall& call) const {
    if (factors.defined()) call.factors = factors.const_raw_data();
    if (summands.defined()) call.summands = summands.const_raw_data();
  }
};

int64_t product(IntArrayRef sizes) {
  int64_t n = 1;
  for (int64_t s : sizes) n *= s;
  return n;
}

RowCall rows_call(const Tensor& t, int64_t count) {
  RowCall call{};
  call.count = count;
  call.rows = t.numel() / std::max<int64_t>(count, 1);
  call.width = 1;
  call.groups = 1;
  return call;
}

// The normalised rows, their means and 1 / deviations.
Three normalised(const RowKernel& kernel,
                 const Tensor& given,
                 const Affine& affine,
                 RowCall call,
                 IntArrayRef statistics) {
  Tensor input = in_rows(given);
  ScalarType t = input.dtype(), wide = accumulated_in(t);
  Tensor out = make_tensor(kernel.op, input.sizes(), t, input.device());
  Tensor mean = make_tensor(kernel.op, statistics, wide, input.device());
  Tensor rstd = make_tensor(kernel.op, statistics, wide, input.device());
  call.in[0] = input.const_raw_data();
  call.out = out.mutable_raw_data();
  call.first = mean.mutable_raw_data();
  call.second = rstd.mutable_raw_data();
  affine.give(call);
  run_rows(kernel, t, affine.dtype, input.device(), call);
  return {out, mean, rstd};
}

DimVector row_statistics(const Tensor& input, size_t rank) {
  DimVector sizes(input.sizes().begin(), input.sizes().end());
  for (size_t d = sizes.size() - rank; d < sizes.size(); ++d) sizes[d] = 1;
  return sizes;
}

Three layer_norm(const Tensor& input,
                 IntArrayRef shape,
                 const OptionalTensor& weight,
                 const OptionalTensor& bias,
                 double eps) {
  Affine affine(or_none(weight), or_none(bias), input.dtype());
  RowCall call = rows_call(input, product(shape));
  call.eps = eps;
  return normalised(
      kLayer, input, affine, call, row_statistics(input, shape.size()));
}

Two rms_norm(const Tensor& input,
             IntArrayRef shape,
             const OptionalTensor& weight,
             std::optional<double> eps) {
  Affine affine(or_none(weight), Tensor(), input.dtype());
  RowCall call = rows_call(input, product(shape));
  double smallest = input.dtype() == kDouble
                        ? std::numeric_limits<double>::epsilon()
                        : std::numeric_limits<float>::epsilon();
  call.eps = eps.value_or(smallest);
  auto [out, mean, rstd] = normalised(
      kRms, input, affine, call, row_statistics(input, shape.size()));
  return {out, rstd};
}

// Rows, and what was kept of them.
struct Kept {
  Tensor grad, input, mean, rstd;
  Kept(const Tensor& g, const Tensor& x, const Tensor& m, const Tensor& r)
      : grad(in_dtype(g, x.dtype())), input(in_rows(x)) {
    ScalarType wide = accumulated_in(x.dtype());
    if (m.defined()) mean = in_dtype(m, wide);
    rstd = in_dtype(r, wide);
  }
};

Tensor input_gradient(const RowKernel& kernel,
                      const Kept& kept,
                      const Affine& affine,
                      RowCall call) {
  const Tensor& x = kept.input;
  Tensor out = make_tensor(kernel.op, x.sizes(), x.dtype(), x.device());
  call.in[0] = kept.grad.const_raw_data();
  call.in[1] = x.const_raw_data();
  call.out = out.mutable_raw_data();
  if (kept.mean.defined()) {
    call.first = const_cast<void*>(kept.mean.const_raw_data());
  }
  call.second = const_cast<void*>(kept.rstd.const_raw_data());
  affine.give(call);
  run_rows(kernel, x.dtype(), affine.dtype, x.device(), call);
  return out;
}

// Gradients of factors and of summands, where they are wanted, by columns: rows
// are split over so many blocks that each multiprocessor has a few.
Two column_gradients(const char* op,
                     const Kept& kept,
                     int64_t rows,
                     int64_t count,
                     IntArrayRef shape,
                     ScalarType dtype,
                     bool of_factors,
                     bool of_summands) {
  constexpr int kLanes = 8;
  constexpr int64_t kLeastRows = 32;
  const Tensor& x = kept.input;
  DeviceGuard guard(x.device().index);
  ScalarType t = x.dtype(), wide = accumulated_in(t);
  ColumnCall call{};
  call.rows = rows;
  call.count = count;
  call.in[0] = kept.grad.const_raw_data();
  call.in[1] = x.const_raw_data();
  if (kept.mean.defined()) call.first = kept.mean.const_raw_data();
  call.second = kept.rstd.const_raw_data();
  int pack = static_cast<int>(16 / x.itemsize());
  auto unaligned = [](const void* p) {
    return reinterpret_cast<uintptr_t>(p) % 16 != 0;
  };
  if (count % pack != 0 || unaligned(call.in[0]) || unaligned(call.in[1])) {
    pack = 1;
  }
  int64_t across = (count + 32 * pack - 1) / (32 * pack);
  int64_t most = 4 * properties_of(current_device()).multiprocessors;
  int64_t wanted = std::min((rows + kLeastRows - 1) / kLeastRows,
                            (most + across - 1) / across);
  call.splits = static_cast<int>(std::max<int64_t>(wanted, 1));
  Tensor parts = make_tensor(op, {call.splits, 2, count}, wide, x.device());
  call.parts = parts.mutable_raw_data();
  Tensor weights, biases;
  if (of_factors) weights = make_tensor(op, shape, dtype, x.device());
  if (of_summands) biases = make_tensor(op, shape, dtype, x.device());
  if (of_factors) call.out[0] = weights.mutable_raw_data();
  if (of_summands) call.out[1] = biases.mutable_raw_data();
  Grid grid;
  grid.x = static_cast<unsigned>(across);
  grid.y = static_cast<unsigned>(call.splits);
  grid.threads = 32 * kLanes;
  TemplateArgument sums[] = {t, kLanes, pack};
  run_blocks({op, "row_norms", "column_sums", "ColumnCall"}, sums, grid, &call);
  grid = {};
  grid.x = static_cast<unsigned>((count + grid.threads - 1) / grid.threads);
  TemplateArgument totals[] = {wide, dtype};
  run_blocks(
      {op, "row_norms", "column_totals", "ColumnCall"}, totals, grid, &call);
  return {weights, biases};
}

Three row_gradients(const RowKernel& kernel,
                    const Kept& kept,
                    IntArrayRef shape,
                    const Tensor& weight,
                    const Tensor& bias,
                    ArrayRef<bool> wanted) {
  Affine affine(weight, Tensor(), kept.input.dtype());
  RowCall call = rows_call(kept.input, product(shape));
  Tensor gi, gw, gb;
  if (wanted[0]) gi = input_gradient(kernel, kept, affine, call);
  bool of_factors = wanted[1] && weight.defined();
  bool of_summands = wanted.size() > 2 && wanted[2] && bias.defined();
  if ((of_factors || of_summands) && call.count > 0) {
    ScalarType dtype = of_factors ? weight.dtype() : bias.dtype();
    std::tie(gw, gb) = column_gradients(kernel.op,
                                        kept,
                                        call.rows,
                                        call.count,
                                        shape,
                                        dtype,
                                        of_factors,
                                        of_summands);
  }
  return {gi, gw, gb};
}

Three layer_norm_backward(const Tensor& grad,
                          const Tensor& input,
                          IntArrayRef shape,
                          const Tensor& mean,
                          const Tensor& rstd,
                          const OptionalTensor& weight,
                          const OptionalTensor& bias,
                          ArrayRef<bool> wanted) {
  Kept kept(grad, input, mean, rstd);
  return row_gradients(
      kLayerBack, kept, shape, or_none(weight), or_none(bias), wanted);
}

Two rms_norm_backward(const Tensor& grad,
                      const Tensor& input,
                      IntArrayRef shape,
                      const Tensor& rstd,
                      const OptionalTensor& weight,
                      ArrayRef<bool> wanted) {
  Kept kept(grad, input, Tensor(), rstd);
  auto [gi, gw, gb] =
      row_gradients(kRmsBack, kept, shape, or_none(weight), Tensor(), wanted);
  return {gi, gw};
}

RowCall groups_call(const Tensor& input,
                    int64_t n,
                    int64_t width,
                    int64_t group) {
  RowCall call =
      rows_call(input, input.numel() / std::max<int64_t>(n * group, 1));
  call.width = width;
  call.groups = static_cast<int>(group);
  return call;
}

Three group_norm(const Tensor& input,
                 const OptionalTensor& weight,
                 const OptionalTensor& bias,
                 int64_t n,
                 int64_t,
                 int64_t width,
                 int64_t group,
                 double eps) {
  Affine affine(or_none(weight), or_none(bias), input.dtype());
  RowCall call = groups_call(input, n, width, group);
  call.eps = eps;
  return normalised(kGroup, input, affine, call, {n, group});
}

// Of each channel, from the sums of its planes: sum over n of
// rstd (sum(g x) - mean sum(g)), and of sum(g).
Two channel_gradients(const Kept& kept,
                      int64_t n,
                      int64_t channels,
                      int64_t width,
                      int64_t group,
                      bool of_factors) {
  RowCall call = rows_call(kept.input, width);
  call.in[0] = kept.grad.const_raw_data();
  call.in[1] = kept.input.const_raw_data();
  ScalarType t = kept.input.dtype();
  Tensor sums(run_rows(kPlanes, t, t, kept.input.device(), call));
  if (!sums.defined()) {
    sums = ops::zeros({n * channels, 1, 2},
                      kept.mean.dtype(),
                      std::nullopt,
                      kept.input.device());
  }
  DimVector shares{1}, batch{0};
  sums = ops::sum(sums, IntArrayRef(shares), false);
  sums = ops::reshape(sums, {n, group, channels / group, 2});
  Tensor grads = ops::select(sums, 3, 0);
  Tensor gb =
      ops::reshape(ops::sum(grads, IntArrayRef(batch), false), {channels});
  if (!of_factors) return {Tensor(), gb};
  auto beside = [&](const Tensor& s) { return ops::reshape(s, {n, group, 1}); };
  Tensor centred =
      ops::sub(ops::select(sums, 3, 1), ops::mul(grads, beside(kept.mean)));
  Tensor gw =
      ops::sum(ops::mul(centred, beside(kept.rstd)), IntArrayRef(batch), false);
  return {ops::reshape(gw, {channels}), gb};
}

Three group_norm_backward(const Tensor& grad,
                          const Tensor& input,
                          const Tensor& mean,
                          const Tensor& rstd,
                          const OptionalTensor& given,
                          int64_t n,
                          int64_t channels,
                          int64_t width,
                          int64_t group,
                          ArrayRef<bool> wanted) {
  Tensor weight = or_none(given);
  Kept kept(grad, input, mean, rstd);
  Affine affine(weight, Tensor(), input.dtype());
  RowCall call = groups_call(input, n, width, group);
  Tensor gi, gw, gb;
  if (wanted[0]) gi = input_gradient(kGroupBack, kept, affine, call);
  if (wanted[1] || wanted[2]) {
    std::tie(gw, gb) =
        channel_gradients(kept, n, channels, width, group, wanted[1]);
    if (!wanted[2]) gb = Tensor();
  }
  return {gi, gw, gb};
}

}  // namespace

Definitions row_norm_definitions() {
  static const Definition all[] = {
      defined_as("native_layer_norm", layer_norm),
      defined_as("native_layer_norm_backward", layer_norm_backward),
      defined_as("_fused_rms_norm", rms_norm),
      defined_as("_fused_rms_norm_backward", rms_norm_backward),
      defined_as("native_group_norm", group_norm),
      defined_as("native_group_norm_backward", group_norm_backward),
  };
  return all;
}

}  // namespace taeda::cuda
