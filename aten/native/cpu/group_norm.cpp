// Group norm: statistics of the channels of a group.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/native_group_norm.h>
#include <taeda/gen/native/native_group_norm_backward.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace taeda::native {

namespace {

// [n, c, plane], c in `groups` groups of `width` channels.
struct Groups {
  int64_t n, channels, plane, groups;
  int64_t width() const { return channels / groups; }
  int64_t rows() const { return n * groups; }
  int64_t size() const { return width() * plane; }
  int64_t grain() const {
    return std::max<int64_t>(1, 16384 / std::max<int64_t>(size(), 1));
  }
};

// Each group of channels of one image is a row; scale and shift of a channel
// and of its group become one multiplication and one addition.
template <class T>
void forward_groups(const Groups& s,
                    const Tensor& x,
                    const Tensor& weight,
                    const Tensor& bias,
                    const Tensor& out,
                    const Tensor& mean,
                    const Tensor& rstd,
                    double eps) {
  using A = lane_sum_t<T>;
  const NormKernels<T>& k = norm_kernels<T>();
  const A* w = data_or_null<A>(weight);
  const A* b = data_or_null<A>(bias);
  const T* in = x.const_data<T>();
  T* y = out.mutable_data<T>();
  A* means = mean.mutable_data<A>();
  A* scales = rstd.mutable_data<A>();
  A count = static_cast<A>(s.size());
  parallel_for(0, s.rows(), s.grain(), [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      const T* row = in + r * s.size();
      A m = k.sum(row, s.size()) / count;
      A var = k.square_sum(row, m, s.size()) / count;
      A scale = A(1) / std::sqrt(var + static_cast<A>(eps));
      means[r] = m, scales[r] = scale;
      for (int64_t c = 0; c < s.width(); ++c) {
        int64_t channel = r % s.groups * s.width() + c;
        A a = w ? scale * w[channel] : scale;
        A shift = (b ? b[channel] : A(0)) - m * a;
        int64_t at = r * s.size() + c * s.plane;
        k.affine(in + at, a, shift, y + at, s.plane);
      }
    }
  });
}

// Two passes over each row: the sums that its gradient depends on, by plane,
// then the gradient. The planes' sums serve the parameters' gradients, too.
template <class T>
void backward_groups(const Groups& s,
                     const Tensor& dy,
                     const Tensor& x,
                     const Tensor& weight,
                     const Tensor& mean,
                     const Tensor& rstd,
                     const Tensor& dx,
                     const Tensor& dw,
                     const Tensor& db) {
  using A = lane_sum_t<T>;
  const NormKernels<T>& k = norm_kernels<T>();
  const A* w = data_or_null<A>(weight);
  const A* means = mean.const_data<A>();
  const A* scales = rstd.const_data<A>();
  const T* g = dy.const_data<T>();
  const T* in = x.const_data<T>();
  T* out = writable_or_null<T>(dx);
  size_t planes = static_cast<size_t>(s.n * s.channels);
  std::vector<NormSums<A>> sums(planes);
  A count = static_cast<A>(s.size());
  parallel_for(0, s.rows(), s.grain(), [&](int64_t from, int64_t to) {
    for (int64_t r = from; r < to; ++r) {
      A m = means[r], scale = scales[r], sum = 0, dot = 0;
      for (int64_t c = 0; c < s.width(); ++c) {
        int64_t plane = r * s.width() + c;
        NormSums<A> own =
            k.grad_sums(g + plane * s.plane, in + plane * s.plane, m, s.plane);
        sums[static_cast<size_t>(plane)] = own;
        A factor = w ? w[plane % s.channels] : A(1);
        sum += own.sum * factor, dot += own.dot * factor;
      }
      if (out == nullptr) continue;
      A slope = scale * scale * scale * dot / count;
      A shift = m * slope - scale * sum / count;
      for (int64_t c = 0; c < s.width(); ++c) {
        int64_t plane = r * s.width() + c, at = plane * s.plane;
        A a = w ? scale * w[plane % s.channels] : scale;
        k.affine2(g + at, in + at, a, -slope, shift, out + at, s.plane);
      }
    }
  });
  A* into_w = writable_or_null<A>(dw);
  A* into_b = writable_or_null<A>(db);
  for (int64_t c = 0; c < s.channels; ++c) {
    // Sums over the batch, in double and in a fixed order, so that they do not
    // depend on the number of threads.
    double weight_sum = 0, bias_sum = 0;
    for (int64_t n = 0; n < s.n; ++n) {
      int64_t plane = n * s.channels + c;
      const NormSums<A>& own = sums[static_cast<size_t>(plane)];
      weight_sum += own.dot * scales[plane / s.width()];
      bias_sum += own.sum;
    }
    if (into_w) into_w[c] = static_cast<A>(weight_sum);
    if (into_b) into_b[c] = static_cast<A>(bias_sum);
  }
}

}  // namespace

void native_group_norm_cpu(const Tensor& input,
                           const OptionalTensor& weight,
                           const OptionalTensor& bias,
                           int64_t N,
                           int64_t C,
                           int64_t HxW,
                           int64_t group,
                           double eps,
                           const Tensor& out,
                           const Tensor& mean,
                           const Tensor& rstd) {
  Groups s{N, C, HxW, group};
  ScalarType type = compute_type(input.dtype());
  Tensor x = contiguous(input);
  Tensor w = parameter_as(or_undefined(weight), type);
  Tensor b = parameter_as(or_undefined(bias), type);
  RowMajor y(out), m(mean, type), r(rstd, type);
  visit_norm_type("GroupNormKernelImpl", x.dtype(), [&](auto tag) {
    forward_groups<decltype(tag)>(
        s, x, w, b, y.tensor(), m.tensor(), r.tensor(), eps);
  });
  y.finish();
  m.finish();
  r.finish();
}

void native_group_norm_backward_cpu(const Tensor& grad_out,
                                    const Tensor& input,
                                    const Tensor& mean,
                                    const Tensor& rstd,
                                    const OptionalTensor& weight,
                                    int64_t N,
                                    int64_t C,
                                    int64_t HxW,
                                    int64_t group,
                                    ArrayRef<bool>,
                                    const Tensor& grad_input,
                                    const Tensor& grad_weight,
                                    const Tensor& grad_bias) {
  Groups s{N, C, HxW, group};
  ScalarType type = compute_type(input.dtype());
  Tensor g = contiguous_as(grad_out, input.dtype()), x = contiguous(input);
  Tensor w = parameter_as(or_undefined(weight), type);
  Tensor m = parameter_as(mean, type), r = parameter_as(rstd, type);
  RowMajor dx(grad_input), dw(grad_weight, type), db(grad_bias, type);
  visit_norm_type("group_norm_backward", x.dtype(), [&](auto tag) {
    backward_groups<decltype(tag)>(
        s, g, x, w, m, r, dx.tensor(), dw.tensor(), db.tensor());
  });
  dx.finish();
  dw.finish();
  db.finish();
}

}  // namespace taeda::native
