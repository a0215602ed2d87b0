// Layer and RMS norms: rows of the last dims.
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/normalization.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_fused_rms_norm.h>
#include <taeda/gen/native/_fused_rms_norm_backward.h>
#include <taeda/gen/native/native_layer_norm.h>
#include <taeda/gen/native/native_layer_norm_backward.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace taeda::native {

Tensor parameter_as(const Tensor& t, ScalarType sum_type) {
  return t.defined() ? contiguous_as(t, sum_type) : t;
}

std::pair<int64_t, int64_t> norm_rows(std::string_view op,
                                      const Tensor& input,
                                      IntArrayRef shape,
                                      const Tensor& weight,
                                      const Tensor& bias) {
  TAEDA_CHECK(!shape.empty(),
              op,
              ": Expected normalized_shape to be at least 1-dimensional, i.e., "
              "containing at least one element, but got normalized_shape = ",
              shape);
  TAEDA_CHECK(!weight.defined() || weight.sizes() == shape,
              op,
              ": Expected weight to be of same shape as normalized_shape, but "
              "got weight of shape ",
              weight.sizes(),
              " and normalized_shape = ",
              shape);
  TAEDA_CHECK(
      !bias.defined() || bias.sizes() == shape,
      op,
      ": Expected bias to be of same shape as normalized_shape, but got "
      "bias of shape ",
      bias.sizes(),
      " and normalized_shape = ",
      shape);
  size_t rank = static_cast<size_t>(input.dim());
  bool fits =
      rank >= shape.size() && input.sizes().slice(rank - shape.size()) == shape;
  TAEDA_CHECK(fits,
              op,
              ": Given normalized_shape=",
              shape,
              ", expected input with shape [*, ",
              shape,
              "], but got input of size",
              input.sizes());
  int64_t n = 1;
  for (int64_t s : shape) n *= s;
  int64_t rows = 1;
  for (size_t d = 0; d < rank - shape.size(); ++d) rows *= input.sizes()[d];
  return {rows, n};
}

ScalarType statistics_type(const Tensor& input,
                           const Tensor& weight,
                           const Tensor& bias) {
  ScalarType t = input.dtype();
  if (!is_reduced_floating(t)) return t;
  bool wide = (weight.defined() && weight.dtype() == kFloat) ||
              (bias.defined() && bias.dtype() == kFloat);
  return wide ? kFloat : t;
}

namespace {

int64_t grain_of(int64_t n) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1));
}

// Sizes of the statistics: 1 where the input is normalised over.
DimVector statistics_sizes(const Tensor& input, size_t shape_rank) {
  DimVector sizes(input.sizes());
  for (size_t d = sizes.size() - shape_rank; d < sizes.size(); ++d) {
    sizes[d] = 1;
  }
  return sizes;
}

template <class T>
void forward_rows(const Tensor& x,
                  const Tensor& weight,
                  const Tensor& bias,
                  const Tensor& out,
                  const Tensor& mean,
                  const Tensor& rstd,
                  int64_t rows,
                  int64_t n,
                  double eps) {
  using A = lane_sum_t<T>;
  bool centred = mean.defined();
  const A* w = data_or_null<A>(weight);
  const A* b = data_or_null<A>(bias);
  const T* in = x.const_data<T>();
  T* y = out.mutable_data<T>();
  A* m = writable_or_null<A>(mean);
  A* s = rstd.mutable_data<A>();
  const NormKernels<T>& kernels = norm_kernels<T>();
  parallel_for(0, rows, grain_of(n), [&](int64_t from, int64_t to) {
    kernels.forward(in + from * n,
                    w,
                    b,
                    y + from * n,
                    centred ? m + from : nullptr,
                    s + from,
                    to - from,
                    n,
                    eps,
                    centred);
  });
}

// Gradients of rows; parameters' gradients are summed per part, then together.
template <class T>
void backward_rows(const Tensor& dy,
                   const Tensor& x,
                   const Tensor& weight,
                   const Tensor& mean,
                   const Tensor& rstd,
                   const Tensor& dx,
                   const Tensor& dw,
                   const Tensor& db,
                   int64_t rows,
                   int64_t n) {
  using A = lane_sum_t<T>;
  bool centred = mean.defined();
  int64_t parts = std::clamp<int64_t>(rows / grain_of(n), 1, get_num_threads());
  // Rows are summed in groups, so that a long batch loses little.
  constexpr int64_t kGroup = 256;
  std::vector<A> sums(static_cast<size_t>(parts * n * 2));
  std::vector<A> group(static_cast<size_t>(parts * n * 2));
  const A* w = data_or_null<A>(weight);
  const A* m = data_or_null<A>(mean);
  const A* s = rstd.const_data<A>();
  const T* g = dy.const_data<T>();
  const T* in = x.const_data<T>();
  T* out = writable_or_null<T>(dx);
  const NormKernels<T>& kernels = norm_kernels<T>();
  parallel_for(0, parts, 1, [&](int64_t from, int64_t to) {
    for (int64_t p = from; p < to; ++p) {
      A* total = sums.data() + p * n * 2;
      A* some = group.data() + p * n * 2;
      int64_t end = rows * (p + 1) / parts;
      for (int64_t r = rows * p / parts; r < end; r += kGroup) {
        int64_t count = std::min(kGroup, end - r);
        std::fill(some, some + 2 * n, A(0));
        kernels.backward(g + r * n,
                         in + r * n,
                         w,
                         centred ? m + r : nullptr,
                         s + r,
                         out ? out + r * n : nullptr,
                         dw.defined() ? some : nullptr,
                         db.defined() ? some + n : nullptr,
                         count,
                         n,
                         centred);
        for (int64_t i = 0; i < 2 * n; ++i) total[i] += some[i];
      }
    }
  });
  for (int64_t p = 1; p < parts; ++p) {
    for (int64_t i = 0; i < 2 * n; ++i) sums[i] += sums[p * n * 2 + i];
  }
  A* into[] = {writable_or_null<A>(dw), writable_or_null<A>(db)};
  for (int k = 0; k < 2; ++k) {
    if (into[k]) std::copy_n(sums.data() + k * n, n, into[k]);
  }
}

struct RowGradients {
  Tensor input, weight, bias;
};

// `mean` undefined: the RMS norm.
RowGradients row_gradients(std::string_view op,
                           const Tensor& grad_out,
                           const Tensor& input,
                           const Tensor& mean,
                           const Tensor& rstd,
                           const Tensor& weight,
                           const Tensor& bias,
                           int64_t rows,
                           int64_t n,
                           ArrayRef<bool> mask) {
  check_mask(op, mask, mean.defined() ? 3 : 2);
  check_shape(op, "grad_out", grad_out, input.sizes());
  if (mean.defined()) check_count(op, "mean", mean, rows);
  check_count(op, "rstd", rstd, rows);
  RowGradients out;
  ScalarType sum_type = compute_type(input.dtype());
  Device device = input.device();
  auto make = [&](const Tensor& like, ScalarType t) {
    return make_tensor(op, like.sizes(), t, device);
  };
  if (mask[0]) out.input = make(input, input.dtype());
  if (mask[1] && weight.defined()) out.weight = make(weight, sum_type);
  if (mask.size() > 2 && mask[2] && bias.defined()) {
    out.bias = make(bias, sum_type);
  }
  if (device.is_meta()) return out;
  Tensor dy = contiguous_as(grad_out, input.dtype()), x = contiguous(input);
  Tensor w = parameter_as(weight, sum_type);
  Tensor m = parameter_as(mean, sum_type), s = parameter_as(rstd, sum_type);
  visit_norm_type(op, x.dtype(), [&](auto tag) {
    backward_rows<decltype(tag)>(
        dy, x, w, m, s, out.input, out.weight, out.bias, rows, n);
  });
  if (out.weight.defined()) out.weight = cast(out.weight, weight.dtype());
  if (out.bias.defined()) out.bias = cast(out.bias, bias.dtype());
  return out;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> native_layer_norm(
    const Tensor& input,
    ArrayRef<int64_t> normalized_shape,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    double eps) {
  Tensor w = or_undefined(weight), b = or_undefined(bias);
  auto [rows, n] = norm_rows("layer_norm", input, normalized_shape, w, b);
  ScalarType sum_type = compute_type(input.dtype());
  ScalarType kept = statistics_type(input, w, b);
  DimVector sizes = statistics_sizes(input, normalized_shape.size());
  Device device = input.device();
  Tensor out = make_tensor("layer_norm", input.sizes(), input.dtype(), device);
  if (device.is_meta()) {
    Tensor mean = make_tensor("layer_norm", sizes, kept, device);
    Tensor rstd = make_tensor("layer_norm", sizes, kept, device);
    return {out, mean, rstd};
  }
  Tensor mean = make_tensor("layer_norm", sizes, sum_type, device);
  Tensor rstd = make_tensor("layer_norm", sizes, sum_type, device);
  Tensor x = contiguous(input);
  w = parameter_as(w, sum_type), b = parameter_as(b, sum_type);
  visit_norm_type(
      "LayerNormKernelImpl", x.dtype(), [&, rows = rows, n = n](auto tag) {
        forward_rows<decltype(tag)>(x, w, b, out, mean, rstd, rows, n, eps);
      });
  return {out, cast(mean, kept), cast(rstd, kept)};
}

std::tuple<Tensor, Tensor, Tensor> native_layer_norm_backward(
    const Tensor& grad_out,
    const Tensor& input,
    ArrayRef<int64_t> normalized_shape,
    const Tensor& mean,
    const Tensor& rstd,
    const OptionalTensor& weight,
    const OptionalTensor& bias,
    ArrayRef<bool> output_mask) {
  Tensor w = or_undefined(weight), b = or_undefined(bias);
  auto [rows, n] =
      norm_rows("layer_norm_backward", input, normalized_shape, w, b);
  RowGradients g = row_gradients("layer_norm_backward",
                                 grad_out,
                                 input,
                                 mean,
                                 rstd,
                                 w,
                                 b,
                                 rows,
                                 n,
                                 output_mask);
  return {g.input, g.weight, g.bias};
}

std::tuple<Tensor, Tensor> _fused_rms_norm(const Tensor& input,
                                           ArrayRef<int64_t> normalized_shape,
                                           const OptionalTensor& weight,
                                           std::optional<double> eps) {
  Tensor w = or_undefined(weight);
  auto [rows, n] = norm_rows("rms_norm", input, normalized_shape, w, {});
  ScalarType sum_type = compute_type(input.dtype());
  DimVector sizes = statistics_sizes(input, normalized_shape.size());
  Device device = input.device();
  Tensor out = make_tensor("rms_norm", input.sizes(), input.dtype(), device);
  Tensor rstd = make_tensor("rms_norm", sizes, sum_type, device);
  if (device.is_meta()) return {out, rstd};
  double smallest = sum_type == kDouble ? std::numeric_limits<double>::epsilon()
                                        : std::numeric_limits<float>::epsilon();
  Tensor x = contiguous(input);
  w = parameter_as(w, sum_type);
  visit_norm_type("rms_norm", x.dtype(), [&, rows = rows, n = n](auto tag) {
    forward_rows<decltype(tag)>(
        x, w, {}, out, {}, rstd, rows, n, eps.value_or(smallest));
  });
  return {out, rstd};
}

std::tuple<Tensor, Tensor> _fused_rms_norm_backward(
    const Tensor& grad_out,
    const Tensor& input,
    ArrayRef<int64_t> normalized_shape,
    const Tensor& rstd,
    const OptionalTensor& weight,
    ArrayRef<bool> output_mask) {
  Tensor w = or_undefined(weight);
  auto [rows, n] =
      norm_rows("rms_norm_backward", input, normalized_shape, w, {});
  RowGradients g = row_gradients("rms_norm_backward",
                                 grad_out,
                                 input,
                                 {},
                                 rstd,
                                 w,
                                 {},
                                 rows,
                                 n,
                                 output_mask);
  return {g.input, g.weight};
}

}  // namespace taeda::native
