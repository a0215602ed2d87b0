// Norms of the tensors of a list.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cpu/kernels/attention.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_foreach_norm.h>
#include <taeda/gen/ops/abs.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace taeda::native {

namespace {

constexpr int64_t kChunk = 16384;

// Folds chunks of a tensor's elements with `part`, in parallel, and joins them.
template <class Part, class Join>
double summed(int64_t n, Part&& part, Join&& join) {
  int64_t chunks = (n + kChunk - 1) / kChunk;
  std::vector<double> parts(static_cast<size_t>(chunks));
  parallel_for(0, chunks, 2, [&](int64_t from, int64_t to) {
    for (int64_t c = from; c < to; ++c) {
      parts[static_cast<size_t>(c)] =
          part(c * kChunk, std::min(kChunk, n - c * kChunk));
    }
  });
  double total = 0;
  for (double p : parts) total = join(total, p);
  return total;
}

template <class A>
double norm_of(const A* x, int64_t n, double order) {
  auto plus = [](double a, double b) { return a + b; };
  auto larger = [](double a, double b) { return b > a || b != b ? b : a; };
  if (order == 2) {
    const AttentionTable& table = TAEDA_ISA_TABLE(kAttentionTable);
    auto square = [&](int64_t at, int64_t count) -> double {
      if constexpr (std::is_same_v<A, float>) {
        return table.f32.dot(x + at, x + at, count);
      } else {
        return table.f64.dot(x + at, x + at, count);
      }
    };
    return std::sqrt(summed(n, square, plus));
  }
  bool infinite = std::isinf(order);
  auto part = [&](int64_t at, int64_t count) {
    double sum = 0;
    for (int64_t i = at; i < at + count; ++i) {
      double v = std::abs(static_cast<double>(x[i]));
      sum = infinite     ? larger(sum, v)
            : order == 1 ? sum + v
            : order == 0 ? sum + (v != 0)
                         : sum + std::pow(v, order);
    }
    return sum;
  };
  if (infinite) return summed(n, part, larger);
  double total = summed(n, part, plus);
  return order == 1 || order == 0 ? total : std::pow(total, 1 / order);
}

}  // namespace

void _foreach_norm_cpu(TensorList self,
                       const Scalar& ord,
                       std::optional<ScalarType>,
                       TensorList out) {
  double order = ord.to_double();
  for (size_t i = 0; i < self.size(); ++i) {
    TAEDA_CHECK(is_floating(out[i].dtype()) || is_complex(out[i].dtype()),
                "_foreach_norm: dtype should be floating point or complex, "
                "got ",
                out[i].dtype());
    Tensor t = self[i].is_complex() ? ops::abs(self[i]) : self[i];
    ScalarType type = compute_type(out[i].dtype());
    bool plain =
        t.is_non_overlapping_and_dense() && t.dtype() == type && !t.is_neg();
    Tensor x = plain ? t : contiguous_as(t, type);
    double value = type == kDouble
                       ? norm_of(x.const_data<double>(), x.numel(), order)
                       : norm_of(x.const_data<float>(), x.numel(), order);
    Scalar(value).store(out[i].dtype(), out[i].mutable_raw_data());
  }
}

}  // namespace taeda::native
