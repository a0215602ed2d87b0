// cumsum, cumprod, logcumsumexp, cummax, cummin.
#include <taeda/aten/math/math.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/cpu/along_dim.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/aten/native/indexing.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/_cumprod_backward.h>
#include <taeda/gen/native/_logcumsumexp_backward.h>
#include <taeda/gen/native/_reverse_cumsum.h>
#include <taeda/gen/native/cummax.h>
#include <taeda/gen/native/cummin.h>
#include <taeda/gen/native/cumprod.h>
#include <taeda/gen/native/cumsum.h>
#include <taeda/gen/native/logcumsumexp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace taeda::native {

namespace {

constexpr int64_t kGrain = 32768;

// What a running value is kept in: sums of floats lose less in double.
template <class T>
struct Running {
  using type = T;
};
template <>
struct Running<float> {
  using type = double;
};

template <class R, class Step>
R first_of(Step&& step, R v) {
  if constexpr (std::is_invocable_v<Step, R>) {
    return step(v);
  } else {
    return v;
  }
}

// out[k] = step(out[k - 1], in[k]) along n; rows one by one, or the columns of
// a row side by side. The first is as it is, or step(in[0]) where there is
// such.
template <class T, class Step>
void scan(const AlongDim& f, T* out, bool backwards, Step&& step) {
  using R = typename Running<T>::type;
  const T* in = f.in<T>();
  if (f.inner == 1) {
    int64_t grain = std::max<int64_t>(1, kGrain / f.n);
    parallel_for(0, f.outer, grain, [&](int64_t begin, int64_t end) {
      for (int64_t o = begin; o < end; ++o) {
        const T* x = in + o * f.n;
        T* y = out + o * f.n;
        int64_t at = backwards ? f.n - 1 : 0, by = backwards ? -1 : 1;
        R running = first_of(step, static_cast<R>(x[at]));
        y[at] = static_cast<T>(running);
        for (int64_t i = 1; i < f.n; ++i) {
          at += by;
          running = step(running, static_cast<R>(x[at]));
          y[at] = static_cast<T>(running);
        }
      }
    });
    return;
  }
  constexpr int64_t most = 256;
  int64_t width = std::min(f.inner, most);
  int64_t blocks = (f.inner + width - 1) / width;
  int64_t grain = std::max<int64_t>(1, kGrain / (f.n * width));
  parallel_for(0, f.outer * blocks, grain, [&](int64_t begin, int64_t end) {
    R running[most];
    for (int64_t b = begin; b < end; ++b) {
      int64_t first = (b % blocks) * width;
      int64_t at = b / blocks * f.n * f.inner + first;
      int64_t count = std::min(width, f.inner - first);
      for (int64_t i = 0; i < f.n; ++i) {
        int64_t k = at + (backwards ? f.n - 1 - i : i) * f.inner;
        const T* x = in + k;
        T* y = out + k;
        for (int64_t c = 0; c < count; ++c) {
          R v = static_cast<R>(x[c]);
          running[c] = i == 0 ? first_of(step, v) : step(running[c], v);
          y[c] = static_cast<T>(running[c]);
        }
      }
    }
  });
}

template <class F>
void visit_wide(ScalarType t, F&& f) {
  visit_type(t, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_same_v<T, float> || std::is_same_v<T, double> ||
                  std::is_same_v<T, int64_t> ||
                  std::is_same_v<T, complex<float>> ||
                  std::is_same_v<T, complex<double>>) {
      f(tag);
    }
  });
}

// Through the type that is computed in, to out's.
template <class Step>
void scan_into(const Tensor& self,
               int64_t dim,
               const Tensor& out,
               Step step,
               bool backwards = false) {
  if (out.numel() == 0) return;
  ScalarType type = wide_type(out.dtype());
  Tensor converted = cast(self, out.dtype());
  AlongDim f = along_dim(converted, dim, type);
  bool direct = out.dtype() == type && out.is_contiguous();
  Tensor work = direct ? out : make_tensor("scan", out.sizes(), type);
  visit_wide(type, [&](auto tag) {
    using T = decltype(tag);
    scan<T>(f, work.mutable_data<T>(), backwards, step);
  });
  if (!direct) copy_into(out, work);
}

// The part that is larger in size is taken out. An infinity has the direction
// of what is added; nothing has none.
template <class T>
complex<T> log_add(complex<T> a, complex<T> b) {
  if (math::is_nan(a) || math::is_nan(b)) {
    T nan = std::numeric_limits<T>::quiet_NaN();
    return {nan, nan};
  }
  if (std::isinf(a.real()) && a.real() == b.real()) {
    if (a.real() < 0) return {a.real(), T(0)};
    return math::log(math::exp(a) + math::exp(b));
  }
  bool ordered = a.real() >= b.real();
  complex<T> large = ordered ? a : b, small = ordered ? b : a;
  return large + math::log1p(math::exp(small - large));
}
template <class T>
T log_add(T a, T b) {
  if (std::isnan(a) || std::isnan(b)) return a + b;
  T high = std::max(a, b), low = std::min(a, b);
  if (std::isinf(high)) return high;
  return high + std::log1p(std::exp(low - high));
}

struct LogAdd {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return a;
    } else {
      return log_add(a, b);
    }
  }
  // To nothing, which settles what nothing's angle is.
  template <class T>
  complex<T> operator()(complex<T> a) const {
    return log_add(a, {-std::numeric_limits<T>::infinity(), T(0)});
  }
};

}  // namespace

void cumsum_cpu(const Tensor& self,
                int64_t dim,
                std::optional<ScalarType>,
                const Tensor& out) {
  scan_into(self, dim, out, []<class T>(T a, T b) { return sum_of<T>(a, b); });
}
void reverse_cumsum_cpu(const Tensor& self, int64_t dim, const Tensor& out) {
  auto add = []<class T>(T a, T b) { return sum_of<T>(a, b); };
  scan_into(self, dim, out, add, /*backwards=*/true);
}
void cumprod_cpu(const Tensor& self,
                 int64_t dim,
                 std::optional<ScalarType>,
                 const Tensor& out) {
  scan_into(
      self, dim, out, []<class T>(T a, T b) { return product_of<T>(a, b); });
}
void logcumsumexp_cpu(const Tensor& self, int64_t dim, const Tensor& out) {
  scan_into(self, dim, out, LogAdd());
}

namespace {

// A later element of the same size takes the place; NaN stays.
template <bool kLargest, class T>
void running_extremum(const AlongDim& f, T* values, int64_t* indices) {
  const T* in = f.in<T>();
  parallel_for(0, f.rows(), 1 + kGrain / f.n, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {
      int64_t at = r / f.inner * f.n * f.inner + r % f.inner;
      T best = in[at];
      int64_t place = 0;
      for (int64_t i = 0; i < f.n; ++i, at += f.inner) {
        T v = in[at];
        bool better = kLargest ? v >= best : v <= best;
        if (better || v != v) [[unlikely]] {
          best = v;
          place = i;
        }
        values[at] = best;
        indices[at] = place;
      }
    }
  });
}

void cumextremum(const Tensor& self,
                 int64_t dim,
                 bool largest,
                 const Tensor& values,
                 const Tensor& indices) {
  if (self.numel() == 0) return;
  ScalarType type = wide_type(self.dtype());
  AlongDim f = along_dim(self, dim, type);
  auto room_of = [&](const Tensor& out, ScalarType t) {
    bool fits = out.dtype() == t && out.is_contiguous();
    return fits ? out : make_tensor("cummax", self.sizes(), t);
  };
  Tensor work = room_of(values, type), places = room_of(indices, kLong);
  visit_wide(type, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_arithmetic_v<T>) {
      T* best = work.mutable_data<T>();
      int64_t* at = places.mutable_data<int64_t>();
      if (largest) return running_extremum<true>(f, best, at);
      running_extremum<false>(f, best, at);
    }
  });
  if (!work.is_same(values)) copy_into(values, work);
  if (!places.is_same(indices)) copy_into(indices, places);
}

}  // namespace

void cummax_cpu(const Tensor& self,
                int64_t dim,
                const Tensor& values,
                const Tensor& indices) {
  cumextremum(self, dim, /*largest=*/true, values, indices);
}
void cummin_cpu(const Tensor& self,
                int64_t dim,
                const Tensor& values,
                const Tensor& indices) {
  cumextremum(self, dim, /*largest=*/false, values, indices);
}
void cumprod_backward_cpu(const Tensor& grad,
                          const Tensor& self,
                          int64_t dim,
                          const Tensor& result) {
  ScalarType type = wide_type(self.dtype());
  if (self.numel() == 0) return;
  Tensor out = make_tensor("cumprod", self.sizes(), type);
  AlongDim f = along_dim(self, dim, type);
  Tensor plain = contiguous_as(grad, type);
  visit_wide(type, [&](auto tag) {
    using T = decltype(tag);
    const T* x = f.in<T>();
    const T* g = plain.const_data<T>();
    T* y = out.mutable_data<T>();
    for (int64_t r = 0; r < f.rows(); ++r) {
      int64_t first = r / f.inner * f.n * f.inner + r % f.inner;
      T tail = T(0);
      for (int64_t i = f.n; i-- > 0;) {
        int64_t at = first + i * f.inner;
        tail = i + 1 < f.n
                   ? sum_of<T>(g[at], product_of<T>(x[at + f.inner], tail))
                   : g[at];
        y[at] = tail;
      }
      T head = T(1);
      for (int64_t i = 0; i < f.n; ++i) {
        int64_t at = first + i * f.inner;
        y[at] = product_of<T>(y[at], head);
        head = product_of<T>(head, x[at]);
      }
    }
  });
  copy_into(result, out);
}
namespace {

// What part of e^total e^of is, conjugated. Where the sum is 0 so is each share
// of it.
double share_of(double of, double total) {
  return std::isinf(total) && total < 0 ? 0.0 : std::exp(of - total);
}
complex<double> share_of(complex<double> of, complex<double> total) {
  double size = total.real();
  if (std::isinf(size) && size < 0) return 0.0;
  return conj(math::exp(of - total));
}

// Element i has its share in the total of each later j. The totals are taken
// again in double: those of float have lost the digits of the shares.
template <class T>
void logcumsumexp_slopes(
    const T* x, const T* g, T* total, T* y, int64_t n, int64_t stride) {
  for (int64_t i = 0; i < n; ++i) {
    T here = x[i * stride];
    total[i] = i == 0 ? here : log_add(total[i - 1], here);
  }
  T tail(0);
  for (int64_t i = n; i-- > 0;) {
    T kept = i + 1 < n ? share_of(total[i], total[i + 1]) : T(0);
    tail = kept == T(0) ? g[i * stride] : g[i * stride] + kept * tail;
    y[i * stride] = share_of(x[i * stride], total[i]) * tail;
  }
}

}  // namespace

void logcumsumexp_backward_cpu(const Tensor& grad,
                               const Tensor& self,
                               const Tensor&,
                               int64_t dim,
                               const Tensor& out) {
  if (self.numel() == 0) return;
  ScalarType type = is_complex(self.dtype()) ? kComplexDouble : kDouble;
  AlongDim f = along_dim(cast(self, type), dim, type);
  Tensor grads = contiguous_as(grad, type);
  Tensor wide = make_tensor("logcumsumexp", self.sizes(), type);
  auto run = [&](auto tag) {
    using T = decltype(tag);
    const T* x = f.in<T>();
    const T* g = grads.const_data<T>();
    T* y = wide.mutable_data<T>();
    int64_t grain = 1 + kGrain / f.n;
    parallel_for(0, f.rows(), grain, [&](int64_t begin, int64_t end) {
      std::vector<T> totals(static_cast<size_t>(f.n));
      for (int64_t r = begin; r < end; ++r) {
        int64_t at = r / f.inner * f.n * f.inner + r % f.inner;
        logcumsumexp_slopes(
            x + at, g + at, totals.data(), y + at, f.n, f.inner);
      }
    });
  };
  if (type == kDouble) {
    run(double{});
  } else {
    run(complex<double>{});
  }
  copy_into(out, wide);
}

}  // namespace taeda::native
