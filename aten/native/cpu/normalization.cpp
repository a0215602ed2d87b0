// Layer and RMS norms: rows of the last dims.
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_fused_rms_norm.h>
#include <taeda/gen/native/_fused_rms_norm_backward.h>
#include <taeda/gen/native/native_layer_norm.h>
#include <taeda/gen/native/native_layer_norm_backward.h>

#include <algorithm>
#include <limits>
#include <vector>

namespace taeda::native {

namespace {

int64_t grain_of(int64_t n) {
  return std::max<int64_t>(1, 16384 / std::max<int64_t>(n, 1));
}

// Layer norm, or RMS norm where no mean is wanted.
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
  // One part for each thread, with sums of its own: adding to shared ones would
  // need locks.
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

void row_gradients(std::string_view op,
                   const Tensor& grad_out,
                   const Tensor& input,
                   size_t shape_rank,
                   const Tensor& mean,
                   const Tensor& rstd,
                   const OptionalTensor& weight,
                   const Tensor& grad_input,
                   const Tensor& grad_weight,
                   const Tensor& grad_bias) {
  auto [rows, n] = rows_of(input.sizes(), shape_rank);
  ScalarType sum_type = compute_type(input.dtype());
  Tensor dy = contiguous_as(grad_out, input.dtype()), x = contiguous(input);
  Tensor w = parameter_as(or_undefined(weight), sum_type);
  Tensor m = parameter_as(mean, sum_type), s = parameter_as(rstd, sum_type);
  RowMajor dw(grad_weight, sum_type), db(grad_bias, sum_type);
  visit_norm_type(op, x.dtype(), [&, rows = rows, n = n](auto tag) {
    backward_rows<decltype(tag)>(
        dy, x, w, m, s, grad_input, dw.tensor(), db.tensor(), rows, n);
  });
  dw.finish();
  db.finish();
}

}  // namespace

void native_layer_norm_cpu(const Tensor& input,
                           ArrayRef<int64_t> normalized_shape,
                           const OptionalTensor& weight,
                           const OptionalTensor& bias,
                           double eps,
                           const Tensor& out,
                           const Tensor& mean,
                           const Tensor& rstd) {
  auto [rows, n] = rows_of(input.sizes(), normalized_shape.size());
  ScalarType sum_type = compute_type(input.dtype());
  Tensor x = contiguous(input);
  Tensor w = parameter_as(or_undefined(weight), sum_type);
  Tensor b = parameter_as(or_undefined(bias), sum_type);
  RowMajor m(mean, sum_type), s(rstd, sum_type);
  visit_norm_type(
      "LayerNormKernelImpl", x.dtype(), [&, rows = rows, n = n](auto tag) {
        forward_rows<decltype(tag)>(
            x, w, b, out, m.tensor(), s.tensor(), rows, n, eps);
      });
  m.finish();
  s.finish();
}

void native_layer_norm_backward_cpu(const Tensor& grad_out,
                                    const Tensor& input,
                                    ArrayRef<int64_t> normalized_shape,
                                    const Tensor& mean,
                                    const Tensor& rstd,
                                    const OptionalTensor& weight,
                                    const OptionalTensor&,
                                    ArrayRef<bool>,
                                    const Tensor& grad_input,
                                    const Tensor& grad_weight,
                                    const Tensor& grad_bias) {
  row_gradients("layer_norm_backward",
                grad_out,
                input,
                normalized_shape.size(),
                mean,
                rstd,
                weight,
                grad_input,
                grad_weight,
                grad_bias);
}

void _fused_rms_norm_cpu(const Tensor& input,
                         ArrayRef<int64_t> normalized_shape,
                         const OptionalTensor& weight,
                         std::optional<double> eps,
                         const Tensor& out,
                         const Tensor& rstd) {
  auto [rows, n] = rows_of(input.sizes(), normalized_shape.size());
  ScalarType sum_type = compute_type(input.dtype());
  // PyTorch's default: the epsilon of the type that is computed in.
  double smallest = sum_type == kDouble ? std::numeric_limits<double>::epsilon()
                                        : std::numeric_limits<float>::epsilon();
  Tensor x = contiguous(input);
  Tensor w = parameter_as(or_undefined(weight), sum_type);
  visit_norm_type("rms_norm", x.dtype(), [&, rows = rows, n = n](auto tag) {
    forward_rows<decltype(tag)>(
        x, w, {}, out, {}, rstd, rows, n, eps.value_or(smallest));
  });
}

void _fused_rms_norm_backward_cpu(const Tensor& grad_out,
                                  const Tensor& input,
                                  ArrayRef<int64_t> normalized_shape,
                                  const Tensor& rstd,
                                  const OptionalTensor& weight,
                                  ArrayRef<bool>,
                                  const Tensor& grad_input,
                                  const Tensor& grad_weight) {
  row_gradients("rms_norm_backward",
                grad_out,
                input,
                normalized_shape.size(),
                {},
                rstd,
                weight,
                grad_input,
                grad_weight,
                {});
}

}  // namespace taeda::native
