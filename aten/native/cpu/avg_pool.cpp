// Averages over windows or bins.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/row_major.h>
#include <taeda/aten/native/avg_pool.h>
#include <taeda/aten/native/normalization.h>
#include <taeda/aten/native/pooling.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_adaptive_avg_pool2d.h>
#include <taeda/gen/native/_adaptive_avg_pool2d_backward.h>
#include <taeda/gen/native/_adaptive_avg_pool3d.h>
#include <taeda/gen/native/_adaptive_avg_pool3d_backward.h>
#include <taeda/gen/native/avg_pool2d.h>
#include <taeda/gen/native/avg_pool2d_backward.h>
#include <taeda/gen/native/avg_pool3d.h>
#include <taeda/gen/native/avg_pool3d_backward.h>

#include <algorithm>
#include <array>
#include <vector>

namespace taeda::native {

namespace {

template <class T>
using sum_t =
    std::conditional_t<std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>,
                       float,
                       T>;

// A window's part inside of the input along one dim, and its size with padding.
struct Span {
  int64_t start, end, padded;
};

// What every output averages over, dim by dim.
struct Windows {
  std::array<std::vector<Span>, 3> spans;
  bool count_pad = true;
  int64_t divisor = 0;  // 0: the count

  int64_t count(const Span& z, const Span& y, const Span& x) const {
    if (divisor != 0) return divisor;
    if (count_pad) return z.padded * y.padded * x.padded;
    auto inside = [](const Span& s) {
      return std::max<int64_t>(s.end - s.start, 0);
    };
    return inside(z) * inside(y) * inside(x);
  }
};

Windows pool_windows(const Pool& p, bool count_pad, int64_t divisor) {
  Windows w{{}, count_pad, divisor};
  for (size_t d = 0; d < 3; ++d) {
    for (int64_t i = 0; i < p.out[d]; ++i) {
      int64_t start = i * p.stride[d] - p.padding[d];
      int64_t end = std::min(start + p.kernel[d], p.in[d] + p.padding[d]);
      w.spans[d].push_back(
          {std::max<int64_t>(start, 0), std::min(end, p.in[d]), end - start});
    }
  }
  return w;
}

// None for planes that there are not, which may be of any size.
Windows bins(const Pool& p, const Tensor& result) {
  Windows w;
  if (result.numel() == 0) return w;
  for (size_t d = 0; d < 3; ++d) {
    for (int64_t i = 0; i < p.out[d]; ++i) {
      int64_t start = bin_start(i, p.in[d], p.out[d]);
      int64_t end = bin_end(i, p.in[d], p.out[d]);
      w.spans[d].push_back({start, end, end - start});
    }
  }
  return w;
}

// Calls f(z, y, x) for the spans of every output, in order.
template <class F>
void each_window(const Windows& w, F&& f) {
  for (const Span& z : w.spans[0]) {
    for (const Span& y : w.spans[1]) {
      for (const Span& x : w.spans[2]) f(z, y, x);
    }
  }
}

template <class T>
sum_t<T> run_sum(const T* x, int64_t n) {
  using A = sum_t<T>;
  if constexpr (!std::is_integral_v<T>) {
    if (n >= 16) return norm_kernels<T>().sum(x, n);
  }
  A sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += static_cast<A>(x[i]);
  return sum;
}

template <class T>
void average_plane(const Pool& p, const T* in, T* out, const Windows& w) {
  using A = sum_t<T>;
  each_window(w, [&](const Span& z, const Span& y, const Span& x) {
    // Whole rows lie behind each other.
    bool whole = x.end - x.start == p.in[2];
    int64_t rows = whole ? 1 : y.end - y.start;
    int64_t run = (whole ? y.end - y.start : 1) * (x.end - x.start);
    A sum = 0;
    for (int64_t iz = z.start; iz < z.end; ++iz) {
      const T* row = in + (iz * p.in[1] + y.start) * p.in[2] + x.start;
      for (int64_t r = 0; r < rows; ++r) sum += run_sum(row + r * p.in[2], run);
    }
    int64_t count = w.count(z, y, x);
    *out++ = count == 0 ? T(0) : static_cast<T>(sum / static_cast<A>(count));
  });
}

// Adds to dx, in the type of sums.
template <class T>
void spread_plane(const Pool& p, const T* dy, sum_t<T>* dx, const Windows& w) {
  using A = sum_t<T>;
  each_window(w, [&](const Span& z, const Span& y, const Span& x) {
    A g = static_cast<A>(*dy++);
    int64_t count = w.count(z, y, x);
    if (count == 0) return;
    g /= static_cast<A>(count);
    for (int64_t iz = z.start; iz < z.end; ++iz) {
      for (int64_t iy = y.start; iy < y.end; ++iy) {
        A* row = dx + (iz * p.in[1] + iy) * p.in[2];
        for (int64_t ix = x.start; ix < x.end; ++ix) row[ix] += g;
      }
    }
  });
}

template <class F>
void visit_average_type(std::string_view op, ScalarType t, bool longs, F&& f) {
  switch (t) {
    case kFloat:
      return f(float{});
    case kDouble:
      return f(double{});
    case kBFloat16:
      return f(BFloat16{});
    case kHalf:
      return f(Half{});
    case kLong:
      if (longs) return f(int64_t{});
      [[fallthrough]];
    default:
      not_implemented_for(op, t);
  }
}

void average(std::string_view op,
             const Tensor& self,
             const Pool& p,
             bool longs,
             const Windows& windows,
             const Tensor& out) {
  Tensor x = contiguous(self);
  RowMajor means(out);
  visit_average_type(op, self.dtype(), longs, [&](auto tag) {
    using T = decltype(tag);
    const T* in = x.const_data<T>();
    T* y = means.tensor().mutable_data<T>();
    int64_t grain =
        std::max<int64_t>(1, 16384 / std::max<int64_t>(p.in_size(), 1));
    parallel_for(0, p.planes, grain, [&](int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) {
        average_plane(p, in + i * p.in_size(), y + i * p.out_size(), windows);
      }
    });
  });
  means.finish();
}

void spread(std::string_view op,
            const Tensor& grad,
            const Pool& p,
            const Windows& windows,
            const Tensor& out) {
  Tensor g = contiguous_as(grad, out.dtype());
  RowMajor sums(out);
  visit_average_type(op, out.dtype(), true, [&](auto tag) {
    using T = decltype(tag);
    const T* dy = g.const_data<T>();
    T* dx = sums.tensor().mutable_data<T>();
    int64_t grain =
        std::max<int64_t>(1, 16384 / std::max<int64_t>(p.in_size(), 1));
    parallel_for(0, p.planes, grain, [&](int64_t from, int64_t to) {
      std::vector<sum_t<T>> plane(static_cast<size_t>(p.in_size()));
      for (int64_t i = from; i < to; ++i) {
        std::fill(plane.begin(), plane.end(), sum_t<T>(0));
        spread_plane(p, dy + i * p.out_size(), plane.data(), windows);
        T* to_plane = dx + i * p.in_size();
        for (size_t j = 0; j < plane.size(); ++j) {
          to_plane[j] = static_cast<T>(plane[j]);
        }
      }
    });
  });
  sums.finish();
}

}  // namespace

#define TAEDA_AVG_POOL(D)                                                     \
  void avg_pool##D##d_cpu(const Tensor& self,                                 \
                          ArrayRef<int64_t> kernel_size,                      \
                          ArrayRef<int64_t> stride,                           \
                          ArrayRef<int64_t> padding,                          \
                          bool ceil_mode,                                     \
                          bool count_include_pad,                             \
                          std::optional<int64_t> divisor_override,            \
                          const Tensor& out) {                                \
    Pool p = make_pool<int64_t>("avg_pool" #D "d",                            \
                                self,                                         \
                                D,                                            \
                                kernel_size,                                  \
                                stride,                                       \
                                padding,                                      \
                                kOne,                                         \
                                ceil_mode);                                   \
    average("avg_pool" #D "d",                                                \
            self,                                                             \
            p,                                                                \
            true,                                                             \
            pool_windows(p, count_include_pad, divisor_override.value_or(0)), \
            out);                                                             \
  }                                                                           \
  void avg_pool##D##d_backward_cpu(const Tensor& grad_output,                 \
                                   const Tensor& self,                        \
                                   ArrayRef<int64_t> kernel_size,             \
                                   ArrayRef<int64_t> stride,                  \
                                   ArrayRef<int64_t> padding,                 \
                                   bool ceil_mode,                            \
                                   bool count_include_pad,                    \
                                   std::optional<int64_t> divisor_override,   \
                                   const Tensor& out) {                       \
    Pool p = make_pool<int64_t>("avg_pool" #D "d_backward",                   \
                                self,                                         \
                                D,                                            \
                                kernel_size,                                  \
                                stride,                                       \
                                padding,                                      \
                                kOne,                                         \
                                ceil_mode);                                   \
    spread("avg_pool" #D "d_backward",                                        \
           grad_output,                                                       \
           p,                                                                 \
           pool_windows(p, count_include_pad, divisor_override.value_or(0)),  \
           out);                                                              \
  }                                                                           \
  void _adaptive_avg_pool##D##d_cpu(                                          \
      const Tensor& self, ArrayRef<int64_t> output_size, const Tensor& out) { \
    Pool p = make_adaptive_pool<int64_t>(                                     \
        "adaptive_avg_pool" #D "d", self, D, output_size);                    \
    average("adaptive_avg_pool" #D "d", self, p, false, bins(p, out), out);   \
  }                                                                           \
  void _adaptive_avg_pool##D##d_backward_cpu(                                 \
      const Tensor& grad_output, const Tensor& self, const Tensor& out) {     \
    const char* op = "adaptive_avg_pool" #D "d_backward";                     \
    Pool p = make_adaptive_pool<int64_t>(                                     \
        op, self, D, last_sizes<int64_t>(op, grad_output, D));                \
    spread(op, grad_output, p, bins(p, out), out);                            \
  }
TAEDA_AVG_POOL(2)
TAEDA_AVG_POOL(3)
#undef TAEDA_AVG_POOL

}  // namespace taeda::native
