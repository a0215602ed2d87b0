// Batch norm: statistics per channel, over planes or over rows of channels.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_native_batch_norm_legit_functional.h>
#include <taeda/gen/native/native_batch_norm.h>
#include <taeda/gen/native/native_batch_norm_backward.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace taeda::native {

namespace {

// How a tensor [n, c, ...] lies in memory: planes of `plane` elements per
// channel, or (plane 0) rows of channels.
struct ChannelLayout {
  Tensor data;
  int64_t batch = 0, channels = 0, plane = 0, rows = 0;
  MemoryFormat format = MemoryFormat::Contiguous;
  bool by_rows() const { return plane == 0; }
};

ChannelLayout layout_of(const Tensor& t, ScalarType dtype) {
  ChannelLayout l;
  // Without elements there is no plane to look at either.
  l.batch = t.numel() == 0 ? 0 : t.sizes()[0];
  l.channels = t.sizes()[1];
  l.format = t.suggest_memory_format();
  Tensor x = cast(t, dtype);
  int64_t per_channel = l.channels == 0 ? 0 : t.numel() / l.channels;
  bool flat = per_channel == l.batch;  // no spatial extent
  if (l.format != MemoryFormat::Contiguous) {
    if (!x.is_contiguous(l.format) || x.is_neg()) {
      Tensor copy = make_tensor_strided(
          "batch_norm", x.sizes(), format_strides(x.sizes(), l.format), dtype);
      copy_into(copy, x);
      x = copy;
    }
    l.data = x;
    l.rows = per_channel;
    return l;
  }
  l.format = MemoryFormat::Contiguous;
  l.data = contiguous(x);
  if (flat) {
    l.rows = l.batch;
  } else {
    l.plane = l.batch == 0 ? 1 : std::max<int64_t>(per_channel / l.batch, 1);
  }
  return l;
}

// The same layout for a second tensor.
Tensor laid_out(const Tensor& t, const ChannelLayout& l, ScalarType dtype) {
  bool same = t.dtype() == dtype && !t.is_conj() && !t.is_neg() &&
              t.is_contiguous(l.format);
  if (same) return t;
  Tensor copy = make_tensor_strided(
      "batch_norm", t.sizes(), format_strides(t.sizes(), l.format), dtype);
  copy_into(copy, t);
  return copy;
}

constexpr int64_t kRowBlock = 64;

// Column sums in double of blocks of rows; f(first, count, sums) adds a block.
template <class A, class F>
void sum_blocks(int64_t rows, int64_t width, double* totals, F&& f) {
  int64_t parts = std::clamp<int64_t>(
      rows * width / 32768, 1, std::max(1, get_num_threads()));
  std::vector<double> partial(static_cast<size_t>(parts * width));
  parallel_for(0, parts, 1, [&](int64_t from, int64_t to) {
    std::vector<A> block(static_cast<size_t>(width));
    for (int64_t p = from; p < to; ++p) {
      int64_t end = rows * (p + 1) / parts;
      for (int64_t r = rows * p / parts; r < end; r += kRowBlock) {
        std::fill(block.begin(), block.end(), A(0));
        f(r, std::min(kRowBlock, end - r), block.data());
        double* into = partial.data() + p * width;
        for (int64_t c = 0; c < width; ++c) into[c] += block[c];
      }
    }
  });
  std::fill(totals, totals + width, 0.0);
  for (int64_t p = 0; p < parts; ++p) {
    for (int64_t c = 0; c < width; ++c) totals[c] += partial[p * width + c];
  }
}

template <class T>
struct BatchNorm {
  using A = lane_sum_t<T>;
  const ChannelLayout& l;
  const NormKernels<T>& k = norm_kernels<T>();

  int64_t count() const { return l.by_rows() ? l.rows : l.batch * l.plane; }
  int64_t grain() const {
    return std::max<int64_t>(1, 32768 / std::max<int64_t>(count(), 1));
  }
  // Calls f(channel, offset of a plane) for every plane, channels in parallel.
  template <class F>
  void each_channel(F&& f) const {
    parallel_for(0, l.channels, grain(), [&](int64_t from, int64_t to) {
      for (int64_t c = from; c < to; ++c) f(c);
    });
  }
  int64_t offset(int64_t n, int64_t c) const {
    return (n * l.channels + c) * l.plane;
  }

  void statistics(A* mean, A* var) const {
    const T* x = l.data.const_data<T>();
    double n = static_cast<double>(count());
    if (l.by_rows()) {
      int64_t width = l.channels;
      std::vector<double> sums(static_cast<size_t>(width));
      sum_blocks<A>(
          l.rows, width, sums.data(), [&](int64_t r, int64_t m, A* s) {
            k.sum_rows(x + r * width, s, m, width);
          });
      for (int64_t c = 0; c < width; ++c) mean[c] = static_cast<A>(sums[c] / n);
      sum_blocks<A>(
          l.rows, width, sums.data(), [&](int64_t r, int64_t m, A* s) {
            k.square_sum_rows(x + r * width, mean, s, m, width);
          });
      for (int64_t c = 0; c < width; ++c) var[c] = static_cast<A>(sums[c] / n);
      return;
    }
    each_channel([&](int64_t c) {
      double sum = 0, square = 0;
      for (int64_t b = 0; b < l.batch; ++b) {
        sum += k.sum(x + offset(b, c), l.plane);
      }
      mean[c] = static_cast<A>(sum / n);
      for (int64_t b = 0; b < l.batch; ++b) {
        square += k.square_sum(x + offset(b, c), mean[c], l.plane);
      }
      var[c] = static_cast<A>(square / n);
    });
  }

  // y = a x + b per channel.
  void transform(const A* a, const A* b, T* y) const {
    const T* x = l.data.const_data<T>();
    if (l.by_rows()) {
      int64_t width = l.channels;
      int64_t rows = std::max<int64_t>(1, 32768 / std::max<int64_t>(width, 1));
      parallel_for(0, l.rows, rows, [&](int64_t from, int64_t to) {
        k.affine_rows(
            x + from * width, a, b, y + from * width, to - from, width);
      });
      return;
    }
    int64_t planes = l.batch * l.channels;
    int64_t some = std::max<int64_t>(1, 32768 / l.plane);
    parallel_for(0, planes, some, [&](int64_t from, int64_t to) {
      for (int64_t p = from; p < to; ++p) {
        int64_t c = p % l.channels;
        k.affine(x + p * l.plane, a[c], b[c], y + p * l.plane, l.plane);
      }
    });
  }

  // Sums of dy and of dy (x - mean).
  void grad_sums(const T* dy, const A* mean, double* sums, double* dots) const {
    const T* x = l.data.const_data<T>();
    if (l.by_rows()) {
      int64_t width = l.channels;
      std::vector<double> both(static_cast<size_t>(2 * width));
      sum_blocks<A>(
          l.rows, 2 * width, both.data(), [&](int64_t r, int64_t m, A* s) {
            k.grad_sum_rows(
                dy + r * width, x + r * width, mean, s, s + width, m, width);
          });
      std::copy_n(both.data(), width, sums);
      std::copy_n(both.data() + width, width, dots);
      return;
    }
    each_channel([&](int64_t c) {
      double sum = 0, dot = 0;
      for (int64_t b = 0; b < l.batch; ++b) {
        int64_t at = offset(b, c);
        NormSums<A> s = k.grad_sums(dy + at, x + at, mean[c], l.plane);
        sum += s.sum, dot += s.dot;
      }
      sums[c] = sum, dots[c] = dot;
    });
  }

  // dx = a dy + b x + c per channel.
  void grad_transform(
      const T* dy, const A* a, const A* b, const A* c, T* dx) const {
    const T* x = l.data.const_data<T>();
    if (l.by_rows()) {
      int64_t width = l.channels;
      int64_t rows = std::max<int64_t>(1, 32768 / std::max<int64_t>(width, 1));
      parallel_for(0, l.rows, rows, [&](int64_t from, int64_t to) {
        int64_t at = from * width;
        k.affine2_rows(dy + at, x + at, a, b, c, dx + at, to - from, width);
      });
      return;
    }
    int64_t planes = l.batch * l.channels;
    int64_t some = std::max<int64_t>(1, 32768 / l.plane);
    parallel_for(0, planes, some, [&](int64_t from, int64_t to) {
      for (int64_t p = from; p < to; ++p) {
        int64_t ch = p % l.channels, at = p * l.plane;
        k.affine2(dy + at, x + at, a[ch], b[ch], c[ch], dx + at, l.plane);
      }
    });
  }
};

// new = (1 - momentum) old + momentum seen, in the statistics' own dtype.
template <class A>
void update_running(const Tensor& running, const A* seen, double momentum) {
  Tensor values = contiguous_as(running, scalar_type_of<A>);
  bool direct = values.is_same(running);
  Tensor fresh =
      direct ? running
             : make_tensor("batch_norm", running.sizes(), scalar_type_of<A>);
  const A* old = values.const_data<A>();
  A* out = fresh.mutable_data<A>();
  for (int64_t c = 0; c < running.numel(); ++c) {
    out[c] = static_cast<A>(momentum * static_cast<double>(seen[c]) +
                            (1 - momentum) * static_cast<double>(old[c]));
  }
  // No new version: in training the derivative does not read them.
  if (!direct) copy_into(running, fresh);
}

struct Parameters {
  Tensor weight, bias, mean, var;
};

// Normalises; the statistics of the batch are kept in training.
template <class T>
void forward_channels(const ChannelLayout& layout,
                      const Parameters& p,
                      bool training,
                      double momentum,
                      double eps,
                      const Tensor& out,
                      const Tensor& save_mean,
                      const Tensor& save_scale) {
  using A = lane_sum_t<T>;
  constexpr ScalarType kType = scalar_type_of<A>;
  BatchNorm<T> run{layout};
  int64_t channels = layout.channels;
  std::vector<A> a(static_cast<size_t>(channels)), b(a), var(a), own, inv;
  if (!training) own = inv = a;
  A* m = training ? save_mean.mutable_data<A>() : own.data();
  A* s = training ? save_scale.mutable_data<A>() : inv.data();
  if (training) {
    run.statistics(m, var.data());
  } else {
    std::copy_n(contiguous_as(p.mean, kType).const_data<A>(), channels, m);
    std::copy_n(
        contiguous_as(p.var, kType).const_data<A>(), channels, var.data());
  }
  for (int64_t c = 0; c < channels; ++c) {
    s[c] = A(1) / std::sqrt(var[c] + static_cast<A>(eps));
  }
  Tensor w = parameter_as(p.weight, kType), d = parameter_as(p.bias, kType);
  for (int64_t c = 0; c < channels; ++c) {
    a[c] = w.defined() ? s[c] * w.const_data<A>()[c] : s[c];
    b[c] = (d.defined() ? d.const_data<A>()[c] : A(0)) - m[c] * a[c];
  }
  run.transform(a.data(), b.data(), out.mutable_data<T>());
  if (!training) return;
  double n = static_cast<double>(run.count());
  if (p.mean.defined()) update_running<A>(p.mean, m, momentum);
  if (p.var.defined()) {
    // The running variance is the unbiased one.
    for (A& v : var) v = static_cast<A>(v * (n / (n - 1)));
    update_running<A>(p.var, var.data(), momentum);
  }
}

}  // namespace

void native_batch_norm_cpu(const Tensor& input,
                           const OptionalTensor& weight,
                           const OptionalTensor& bias,
                           const OptionalTensor& running_mean,
                           const OptionalTensor& running_var,
                           bool training,
                           double momentum,
                           double eps,
                           const Tensor& out,
                           const Tensor& save_mean,
                           const Tensor& save_invstd) {
  Parameters p{or_undefined(weight),
               or_undefined(bias),
               or_undefined(running_mean),
               or_undefined(running_var)};
  ScalarType type = compute_type(input.dtype());
  RowMajor mean(save_mean, type), scale(save_invstd, type);
  ChannelLayout layout = layout_of(input, input.dtype());
  visit_norm_type("batch_norm", input.dtype(), [&](auto tag) {
    forward_channels<decltype(tag)>(
        layout, p, training, momentum, eps, out, mean.tensor(), scale.tensor());
  });
  mean.finish();
  scale.finish();
}

void batch_norm_functional_cpu(const Tensor& input,
                               const OptionalTensor& weight,
                               const OptionalTensor& bias,
                               const Tensor& running_mean,
                               const Tensor& running_var,
                               bool training,
                               double momentum,
                               double eps,
                               const Tensor& out,
                               const Tensor& save_mean,
                               const Tensor& save_invstd,
                               const Tensor& running_mean_out,
                               const Tensor& running_var_out) {
  copy_into(running_mean_out, running_mean);
  copy_into(running_var_out, running_var);
  native_batch_norm_cpu(input,
                        weight,
                        bias,
                        running_mean_out,
                        running_var_out,
                        training,
                        momentum,
                        eps,
                        out,
                        save_mean,
                        save_invstd);
}

namespace {

struct BackwardStatistics {
  bool train;
  double eps;
  Tensor mean;
  Tensor spread;  // 1 / deviation in training, else the variance
  Tensor weight;
};

template <class T>
void backward_channels(const ChannelLayout& layout,
                       const Tensor& dy,
                       const BackwardStatistics& p,
                       const Tensor& dx,
                       const Tensor& dw,
                       const Tensor& db) {
  using A = lane_sum_t<T>;
  BatchNorm<T> run{layout};
  size_t width = static_cast<size_t>(p.mean.numel());
  std::vector<double> sums(width), dots(width);
  std::vector<A> a(width), b(width), c(width);
  const A* m = p.mean.const_data<A>();
  const A* s = p.spread.const_data<A>();
  const T* g = dy.const_data<T>();
  run.grad_sums(g, m, sums.data(), dots.data());
  double n = static_cast<double>(run.count());
  for (size_t i = 0; i < width; ++i) {
    double rstd = p.train ? static_cast<double>(s[i])
                          : 1 / std::sqrt(static_cast<double>(s[i]) + p.eps);
    double factor =
        p.weight.defined() ? rstd * p.weight.const_data<A>()[i] : rstd;
    if (dw.defined()) dw.mutable_data<A>()[i] = static_cast<A>(dots[i] * rstd);
    if (db.defined()) db.mutable_data<A>()[i] = static_cast<A>(sums[i]);
    double slope = p.train ? factor * rstd * rstd * dots[i] / n : 0;
    a[i] = static_cast<A>(factor);
    b[i] = static_cast<A>(-slope);
    c[i] = p.train ? static_cast<A>(slope * m[i] - factor * sums[i] / n) : A(0);
  }
  if (dx.defined()) {
    run.grad_transform(g, a.data(), b.data(), c.data(), dx.mutable_data<T>());
  }
}

}  // namespace

void native_batch_norm_backward_cpu(const Tensor& grad_out,
                                    const Tensor& input,
                                    const OptionalTensor& weight,
                                    const OptionalTensor& running_mean,
                                    const OptionalTensor& running_var,
                                    const OptionalTensor& save_mean,
                                    const OptionalTensor& save_invstd,
                                    bool train,
                                    double eps,
                                    ArrayRef<bool>,
                                    const Tensor& grad_input,
                                    const Tensor& grad_weight,
                                    const Tensor& grad_bias) {
  ScalarType type = compute_type(input.dtype());
  BackwardStatistics p{
      train,
      eps,
      parameter_as(or_undefined(train ? save_mean : running_mean), type),
      parameter_as(or_undefined(train ? save_invstd : running_var), type),
      parameter_as(or_undefined(weight), type)};
  ChannelLayout layout = layout_of(input, input.dtype());
  Tensor dy = laid_out(grad_out, layout, input.dtype());
  RowMajor dw(grad_weight, type), db(grad_bias, type);
  visit_norm_type("batch_norm_backward", input.dtype(), [&](auto tag) {
    backward_channels<decltype(tag)>(
        layout, dy, p, grad_input, dw.tensor(), db.tensor());
  });
  dw.finish();
  db.finish();
}

}  // namespace taeda::native
