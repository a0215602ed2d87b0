// softmax, log_softmax and their derivatives, row by row.
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/softmax.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_log_softmax.h>
#include <taeda/gen/native/_log_softmax_backward_data.h>
#include <taeda/gen/native/_softmax.h>
#include <taeda/gen/native/_softmax_backward_data.h>

#include <algorithm>
#include <array>
#include <vector>

namespace taeda::native {

namespace {

constexpr int64_t kSoftmaxGrain = 32768;

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
    int64_t grain =
        std::max<int64_t>(1, kSoftmaxGrain / std::max<int64_t>(f.n, 1));
    parallel_for(0, f.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) row(o * f.n);
    });
    return;
  }
  int64_t width = std::min(f.inner, kSoftmaxColumns);
  int64_t blocks = (f.inner + width - 1) / width;
  int64_t grain = std::max<int64_t>(1, kSoftmaxGrain / (f.n * width));
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

using Floats = std::array<const float*, 2>;

// Rows of 16-bit floats that lie one behind the other: widened one at a time,
// they stay in the nearest cache. `all` says whether the call is about such.
struct RowsOf16Bits {
  RowsOf16Bits(int64_t dim, std::initializer_list<Tensor> in, const Tensor& to)
      : inputs(in), out(to) {
    auto fits = [&](const Tensor& t) {
      return t.dtype() == out.dtype() && t.is_contiguous();
    };
    bool small = out.dtype() == kHalf || out.dtype() == kBFloat16;
    bool last = out.dim() > 0 && wrap_dim(dim, out.dim()) == out.dim() - 1;
    all = small && last && fits(out) && std::ranges::all_of(inputs, fits);
  }

  template <class F>
  void run(F&& kernel) const {
    const ScalarType type = out.dtype();
    const ConvertFn widen = convert_function(type, kFloat);
    const ConvertFn narrow = convert_function(kFloat, type);
    const int64_t n = out.size(-1), rows = out.numel() / n, size = 2;
    const auto count = static_cast<int64_t>(inputs.size());
    int64_t grain = std::max<int64_t>(1, kSoftmaxGrain / n);
    parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
      std::vector<float> room(static_cast<size_t>((count + 1) * n));
      float* to = room.data() + count * n;
      for (int64_t at = begin * n * size; at < end * n * size; at += n * size) {
        Floats in{};
        for (int64_t k = 0; k < count; ++k) {
          const Tensor& t = inputs[static_cast<size_t>(k)];
          auto* from = static_cast<const char*>(t.const_raw_data()) + at;
          widen(from, size, room.data() + k * n, 4, n);
          in[static_cast<size_t>(k)] = room.data() + k * n;
        }
        kernel(in, to, n);
        narrow(to, 4, static_cast<char*>(out.mutable_raw_data()) + at, size, n);
      }
    });
  }

  std::vector<Tensor> inputs;
  Tensor out;
  bool all;
};

void softmax_into(const Tensor& self,
                  int64_t dim,
                  const Tensor& out,
                  bool log) {
  if (self.numel() == 0) return;
  if (RowsOf16Bits rows(dim, {self}, out); rows.all) {
    auto row = kernels<float>().row;
    rows.run([&](const Floats& in, float* to, int64_t n) {
      row(in[0], to, n, log);
    });
    return;
  }
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
float rounding_of(ScalarType output) {
  if (output == kBFloat16) return 0x1p-8f;
  return output == kHalf ? 0x1p-11f : 0;
}

void softmax_backward_into(const Tensor& grad,
                           const Tensor& output,
                           int64_t dim,
                           const Tensor& out,
                           bool log) {
  if (grad.numel() == 0) return;
  ScalarType type = wide_type(grad.dtype());
  const float rounding = rounding_of(output.dtype());
  if (RowsOf16Bits rows(dim, {grad, output}, out); rows.all) {
    auto backward = kernels<float>().row_backward;
    rows.run([&](const Floats& in, float* to, int64_t n) {
      backward(in[0], in[1], to, n, log, rounding);
    });
    return;
  }
  AlongDim f = along_dim(output, dim, type);
  Tensor plain = contiguous_as(grad, type);
  visit_float(type, [&](auto tag) {
    using T = decltype(tag);
    const SoftmaxKernels<T>& k = kernels<T>();
    const T* y = f.in<T>();
    const T* g = plain.const_data<T>();
    with_output<T>(out, type, [&](T* to) {
      each_row(
          f,
          [&](int64_t i) {
            k.row_backward(g + i, y + i, to + i, f.n, log, rounding);
          },
          [&](int64_t i, int64_t count) {
            k.columns_backward(
                g + i, y + i, to + i, f.n, f.inner, count, log, rounding);
          });
    });
  });
}

}  // namespace

void softmax_cpu(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  softmax_into(self, dim, out, /*log=*/false);
}
void log_softmax_cpu(const Tensor& self, int64_t dim, bool, const Tensor& out) {
  softmax_into(self, dim, out, /*log=*/true);
}
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

}  // namespace taeda::native
