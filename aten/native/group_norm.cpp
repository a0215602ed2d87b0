// Group norm, and instance norm through it.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/derived.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/group_norm.h>
#include <taeda/gen/native/instance_norm.h>
#include <taeda/gen/native/native_group_norm.h>
#include <taeda/gen/native/native_group_norm_backward.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/alias.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/lerp.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/native_batch_norm.h>
#include <taeda/gen/ops/native_group_norm.h>
#include <taeda/gen/ops/reciprocal.h>
#include <taeda/gen/ops/sub.h>

#include <algorithm>
#include <cmath>

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

// N * C * HxW is the number of elements; nothing overflows.
bool fill(const IntArrayRef& sizes, int64_t elements) {
  int64_t count = 1;
  for (int64_t s : sizes) {
    if (s < 0 || __builtin_mul_overflow(count, s, &count)) return false;
  }
  return count == elements;
}
bool fill(const SymIntArrayRef& sizes, const SymInt& elements) {
  SymInt count = 1;
  for (const SymInt& s : sizes) count *= s;
  return count == elements;
}

template <class I>
void check_groups(
    const Spec<I>& input, const I& N, const I& C, const I& HxW, int64_t group) {
  TAEDA_CHECK(
      group > 0, "Expected num groups to be greater than 0, got ", group);
  TAEDA_CHECK(C % group == 0,
              "Expected number of channels in input to be divisible by "
              "num_groups, but got input of shape ",
              input.sizes(),
              " and num_groups=",
              group);
  TAEDA_CHECK(fill({N, C, HxW}, input.numel()),
              "group_norm: expected an input of N * C * HxW elements, got N = ",
              N,
              ", C = ",
              C,
              ", HxW = ",
              HxW,
              " and ",
              input.sizes());
}

template <class I>
void check_vector(const char* name,
                  const Spec<I>& t,
                  const I& channels,
                  const Spec<I>& input) {
  TAEDA_CHECK(!t.defined() || (t.dim() == 1 && t.numel() == channels),
              "Expected ",
              name,
              " to be a vector of size equal to the number of channels in "
              "input, but got ",
              name,
              " of shape ",
              t.sizes(),
              " and input of shape ",
              input.sizes());
}

}  // namespace

template <class I>
void native_group_norm_shape(const Spec<I>& input,
                             const Spec<I>& weight,
                             const Spec<I>& bias,
                             I N,
                             I C,
                             I HxW,
                             int64_t group,
                             double,
                             Plan<I>& plan) {
  check_groups(input, N, C, HxW, group);
  check_vector("weight", weight, C, input);
  check_vector("bias", bias, C, input);
  ScalarType kept = statistics_type(input, weight, bias);
  plan.set(0, input.sizes(), input.suggest_memory_format(), input.dtype());
  plan.set(1, {N, I(group)}, kept);
  plan.set(2, {N, I(group)}, kept);
}
TAEDA_SHAPE(native_group_norm_shape);

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

template <class I>
void native_group_norm_backward_shape(const Spec<I>& grad_out,
                                      const Spec<I>& input,
                                      const Spec<I>& mean,
                                      const Spec<I>& rstd,
                                      const Spec<I>& weight,
                                      I N,
                                      I C,
                                      I HxW,
                                      int64_t group,
                                      ArrayRef<bool> output_mask,
                                      Plan<I>& plan) {
  constexpr std::string_view kName = "group_norm_backward";
  check_mask(kName, output_mask, 3);
  check_groups(input, N, C, HxW, group);
  check_shape(kName, "grad_out", grad_out, input.sizes());
  check_count(kName, "mean", mean, N * group);
  check_count(kName, "rstd", rstd, N * group);
  if (weight.defined()) check_count(kName, "weight", weight, C);
  ScalarType kept = weight.defined() ? weight.dtype() : input.dtype();
  if (output_mask[0]) {
    plan.set(0, input.sizes(), input.suggest_memory_format(), input.dtype());
  }
  if (output_mask[1]) plan.set(1, {C}, kept);
  if (output_mask[2]) plan.set(2, {C}, kept);
}
TAEDA_SHAPE(native_group_norm_backward_shape);

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

Tensor group_norm(const Tensor& input,
                  int64_t num_groups,
                  const OptionalTensor& weight,
                  const OptionalTensor& bias,
                  double eps,
                  bool) {
  TAEDA_CHECK_AS(Index,
                 input.dim() >= 2,
                 "group_norm: Expected at least 2 dimensions for input tensor "
                 "but received ",
                 input.dim());
  ArrayRef<SymInt> sizes = symbolic_sizes(input);
  SymInt plane = 1;
  for (const SymInt& s : sizes.slice(2)) plane *= s;
  return std::get<0>(group_norm_sized(
      input, weight, bias, sizes[0], sizes[1], plane, num_groups, eps));
}

namespace {

// Running statistics go some way to the mean of the instances' own, which are
// [n, c]. The alias may be written to where a level refuses `running` itself.
void follow(const Tensor& running, const Tensor& instances, double momentum) {
  if (!running.defined()) return;
  GradModeGuard off(false);
  int64_t rows[] = {0};
  Tensor now = ops::mean(ops::_to_copy(instances, kDouble), IntArrayRef(rows));
  Tensor before = ops::_to_copy(running, kDouble);
  Tensor next = ops::lerp(before, now, Scalar(momentum));
  ops::copy_(ops::alias(running), next);
}

}  // namespace

Tensor instance_norm(const Tensor& input,
                     const OptionalTensor& weight,
                     const OptionalTensor& bias,
                     const OptionalTensor& running_mean,
                     const OptionalTensor& running_var,
                     bool use_input_stats,
                     double momentum,
                     double eps,
                     bool) {
  Tensor mean = or_undefined(running_mean), var = or_undefined(running_var);
  TAEDA_CHECK(use_input_stats || (mean.defined() && var.defined()),
              "Expected running_mean and running_var to be defined when "
              "use_input_stats is false");
  if (!use_input_stats) {
    return std::get<0>(ops::native_batch_norm(
        input, weight, bias, running_mean, running_var, false, momentum, eps));
  }
  TAEDA_CHECK_AS(Index,
                 input.dim() >= 2,
                 "instance_norm: expected at least 2 dims, got ",
                 input);
  ArrayRef<SymInt> sizes = symbolic_sizes(input);
  SymInt elements = 1;
  for (const SymInt& s : sizes.slice(2)) elements *= s;
  auto [out, means, scales] = group_norm_sized(
      input, weight, bias, sizes[0], sizes[1], elements, input.size(1), eps);
  if (!mean.defined() && !var.defined()) return out;
  double plane = static_cast<double>(elements.guard());
  double unbiased = plane / (plane - 1);
  follow(mean, means, momentum);
  if (var.defined()) {
    Tensor wide = ops::_to_copy(scales, kDouble);
    Tensor spread =
        ops::sub(ops::reciprocal(ops::mul(wide, wide)), Scalar(eps));
    follow(var, ops::mul(spread, Scalar(unbiased)), momentum);
  }
  return out;
}

}  // namespace taeda::native
