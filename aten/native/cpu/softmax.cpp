// softmax, log_softmax and their derivatives.
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/softmax.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_log_softmax.h>
#include <taeda/gen/native/_log_softmax_backward_data.h>
#include <taeda/gen/native/_softmax.h>
#include <taeda/gen/native/_softmax_backward_data.h>
#include <taeda/gen/native/log_softmax.h>
#include <taeda/gen/native/softmax.h>
#include <taeda/gen/ops/_log_softmax.h>
#include <taeda/gen/ops/_softmax.h>
#include <taeda/gen/ops/_to_copy.h>

#include <algorithm>
#include <cmath>

namespace taeda::native {

namespace {

constexpr int64_t kGrain = 32768;

template <class T>
const SoftmaxKernels<T>& kernels() {
  static const SoftmaxTable& table = TAEDA_ISA_TABLE(kSoftmaxTable);
  if constexpr (sizeof(T) == 4) {
    return table.f32;
  } else {
    return table.f64;
  }
}

// row(offset) for every row, columns(offset, count) where rows interleave.
template <class Row, class Columns>
void each_row(const AlongDim& f, Row&& row, Columns&& columns) {
  if (f.inner == 1) {
    int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(f.n, 1));
    parallel_for(0, f.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) row(o * f.n);
    });
    return;
  }
  int64_t width = std::min(f.inner, kSoftmaxColumns);
  int64_t blocks = (f.inner + width - 1) / width;
  int64_t grain = std::max<int64_t>(1, kGrain / (f.n * width));
  parallel_for(0, f.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      int64_t first = (b % blocks) * width;
      columns(b / blocks * f.n * f.inner + first,
              std::min(width, f.inner - first));
    }
  });
}

template <class F>
void visit_float(ScalarType t, F&& f) {
  t == kDouble ? f(double{}) : f(float{});
}

// Runs f(pointer) on `out` itself or on a temporary of the compute type.
template <class T, class F>
void with_output(const Tensor& out, ScalarType type, F&& f) {
  if (out.dtype() == type && out.is_contiguous()) {
    f(out.mutable_data<T>());
    return;
  }
  Tensor work = make_tensor("softmax", out.sizes(), type);
  f(work.mutable_data<T>());
  copy_into(out, work);
}

void softmax_into(const Tensor& self,
                  int64_t dim,
                  const Tensor& out,
                  bool log) {
  if (self.numel() == 0) return;
  ScalarType type = wide_type(self.dtype());
  AlongDim f = along_dim(self, dim, type);
  visit_float(type, [&](auto tag) {
    using T = decltype(tag);
    const SoftmaxKernels<T>& k = kernels<T>();
    const T* in = f.in<T>();
    with_output<T>(out, type, [&](T* to) {
      each_row(
          f,
          [&](int64_t at) { k.row(in + at, to + at, f.n, log); },
          [&](int64_t at, int64_t count) {
            k.columns(in + at, to + at, f.n, f.inner, count, log);
          });
    });
  });
}

// 16-bit probabilities have lost their sum of one to rounding. Given back, it
// takes what their errors have in common out of the differences of gradients.
// Rows that are off by more than rounding are not a softmax and stay.
void restore_sums(const AlongDim& f, float rounding) {
  float* data = f.data.mutable_data<float>();
  int64_t grain = std::max<int64_t>(1, kGrain / std::max<int64_t>(f.n, 1));
  parallel_for(0, f.rows(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      float* y = data + r / f.inner * f.n * f.inner + r % f.inner;
      float sum = 0;
      for (int64_t i = 0; i < f.n; ++i) sum += y[i * f.inner];
      if (!(std::fabs(sum - 1) <= rounding)) continue;
      for (int64_t i = 0; i < f.n; ++i) y[i * f.inner] /= sum;
    }
  });
}

void softmax_backward_into(const Tensor& grad,
                           const Tensor& output,
                           int64_t dim,
                           const Tensor& out,
                           bool log) {
  if (grad.numel() == 0) return;
  ScalarType type = wide_type(grad.dtype());
  AlongDim f = along_dim(output, dim, type);
  if (!log && output.dtype() == kBFloat16) restore_sums(f, 0x1p-8f);
  if (!log && output.dtype() == kHalf) restore_sums(f, 0x1p-11f);
  Tensor plain = contiguous_as(grad, type);
  visit_float(type, [&](auto tag) {
    using T = decltype(tag);
    const SoftmaxKernels<T>& k = kernels<T>();
    const T* y = f.in<T>();
    const T* g = plain.const_data<T>();
    with_output<T>(out, type, [&](T* to) {
      each_row(
          f,
          [&](int64_t i) { k.row_backward(g + i, y + i, to + i, f.n, log); },
          [&](int64_t i, int64_t count) {
            k.columns_backward(g + i, y + i, to + i, f.n, f.inner, count, log);
          });
    });
  });
}

template <class I>
void plan_softmax(std::string_view op,
                  const Spec<I>& self,
                  int64_t dim,
                  bool half_to_float,
                  Plan<I>& plan) {
  wrap_dim(dim, self.dim());
  TAEDA_CHECK(
      !half_to_float,
      op,
      ": softmax with half to float conversion is not supported on CPU");
  if (!self.is_floating_point() || is_float8(self.dtype())) {
    not_implemented_for(op, self.dtype());
  }
  plan.set(0, self.sizes(), self.dtype());
}

}  // namespace

template <class I>
void softmax_shape(const Spec<I>& self,
                   int64_t dim,
                   bool half_to_float,
                   Plan<I>& plan) {
  plan_softmax("softmax", self, dim, half_to_float, plan);
}
TAEDA_SHAPE(softmax_shape);
void softmax_cpu(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  softmax_into(self, dim, out, /*log=*/false);
}

template <class I>
void log_softmax_shape(const Spec<I>& self,
                       int64_t dim,
                       bool half_to_float,
                       Plan<I>& plan) {
  plan_softmax("log_softmax", self, dim, half_to_float, plan);
}
TAEDA_SHAPE(log_softmax_shape);
void log_softmax_cpu(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  softmax_into(self, dim, out, /*log=*/true);
}

template <class I>
void softmax_backward_shape(const Spec<I>& grad_output,
                            const Spec<I>& output,
                            int64_t dim,
                            ScalarType input_dtype,
                            Plan<I>& plan) {
  wrap_dim(dim, output.dim());
  constexpr std::string_view kName = "softmax_backward";
  check_shape(kName, "grad_output", grad_output, output.sizes());
  for (ScalarType t : {grad_output.dtype(), output.dtype()}) {
    if (!is_floating(t) || is_float8(t)) not_implemented_for(kName, t);
  }
  plan.set(0, grad_output.sizes(), input_dtype);
}
TAEDA_SHAPE(softmax_backward_shape);
void softmax_backward_cpu(const Tensor& grad_output,
                          const Tensor& output,
                          int64_t dim,
                          ScalarType,
                          const Tensor& out) {
  softmax_backward_into(grad_output, output, dim, out, /*log=*/false);
}
void log_softmax_backward_cpu(const Tensor& grad_output,
                              const Tensor& output,
                              int64_t dim,
                              ScalarType,
                              const Tensor& out) {
  softmax_backward_into(grad_output, output, dim, out, /*log=*/true);
}

namespace {

Tensor as_dtype(const Tensor& self, std::optional<ScalarType> dtype) {
  return dtype && *dtype != self.dtype() ? ops::_to_copy(self, dtype) : self;
}

}  // namespace

Tensor softmax(const Tensor& self,
               int64_t dim,
               std::optional<ScalarType> dtype) {
  return ops::_softmax(as_dtype(self, dtype), dim, false);
}
Tensor log_softmax(const Tensor& self,
                   int64_t dim,
                   std::optional<ScalarType> dtype) {
  return ops::_log_softmax(as_dtype(self, dtype), dim, false);
}

}  // namespace taeda::native
