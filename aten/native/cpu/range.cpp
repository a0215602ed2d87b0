// Factories of sequences: arange, linspace and their relatives.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cpu/isa_table.h>
#include <taeda/aten/native/cpu/kernels/ramp.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/range.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/arange.h>
#include <taeda/gen/native/linspace.h>
#include <taeda/gen/native/logspace.h>
#include <taeda/gen/native/range.h>
#include <taeda/gen/native/tril_indices.h>
#include <taeda/gen/native/triu_indices.h>
#include <taeda/gen/ops/item.h>

#include <algorithm>
#include <cmath>

namespace taeda::native {

namespace {

constexpr int64_t kGrain = 32768;

template <class T>
constexpr bool kIsComplex = false;
template <class T>
constexpr bool kIsComplex<complex<T>> = true;

// out[i] = value(i) for the elements of a new tensor; value's type is what
// numbers of T are computed in.
template <class T, class F>
void generate(const Tensor& out, F&& value) {
  T* data = out.mutable_data<T>();
  parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      if constexpr (std::is_same_v<T, bool>) {
        data[i] = value(i) != 0;
      } else if constexpr (std::is_integral_v<T>) {
        data[i] = static_cast<T>(static_cast<int64_t>(value(i)));
      } else if constexpr (kIsComplex<T>) {
        using R = typename T::value_type;
        complex<double> v(value(i));
        data[i] = T(R(v.real()), R(v.imag()));
      } else {
        data[i] = static_cast<T>(static_cast<double>(value(i)));
      }
    }
  });
}

// The loop of a type in the kernels' table; null where it has none.
template <class T, class V>
RampFn<T, V> ramp_of() {
  const RampTable& table = TAEDA_ISA_TABLE(kRampTable);
  if constexpr (std::is_same_v<T, int64_t>) return table.i64;
  if constexpr (std::is_same_v<T, int32_t>) return table.i32;
  if constexpr (std::is_same_v<T, double>) return table.f64;
  if constexpr (std::is_same_v<T, float> && std::is_same_v<V, float>) {
    return table.f32;
  }
  if constexpr (std::is_same_v<T, float> && std::is_same_v<V, double>) {
    return table.f32_by_f64;
  }
  return nullptr;
}

// out[i] = base + step i.
template <class T, class V>
void ramp(const Tensor& out, V base, V step) {
  RampFn<T, V> fill = ramp_of<T, V>();
  if (fill == nullptr) {
    generate<T>(out,
                [=](int64_t i) { return base + static_cast<V>(i) * step; });
    return;
  }
  T* data = out.mutable_data<T>();
  parallel_for(0, out.numel(), kGrain, [&](int64_t begin, int64_t end) {
    fill(data + begin, begin, end - begin, base, step);
  });
}

void fill_steps(const Tensor& out, const Scalar& start, const Scalar& step) {
  visit_type(out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      ramp<T>(out, start.to<int64_t>(), step.to<int64_t>());
    } else if constexpr (kIsComplex<T>) {
      not_implemented_for("arange", out.dtype());
    } else {
      ramp<T>(out, start.to_double(), step.to_double());
    }
  });
}

}  // namespace

void arange_cpu(const Scalar& start,
                const Scalar&,
                const Scalar& step,
                Dtype,
                MaybeLayout,
                MaybeDevice,
                MaybeBool,
                const Tensor& out) {
  fill_steps(out, start, step);
}
void arange_cpu(const Scalar& start,
                const Scalar&,
                Dtype,
                MaybeLayout,
                MaybeDevice,
                MaybeBool,
                const Tensor& out) {
  fill_steps(out, start, int64_t{1});
}
void arange_cpu(const Scalar&,
                Dtype,
                MaybeLayout,
                MaybeDevice,
                MaybeBool,
                const Tensor& out) {
  fill_steps(out, int64_t{0}, int64_t{1});
}

void arange_out_cpu(const Scalar& start,
                    const Scalar&,
                    const Scalar& step,
                    const Tensor& out) {
  fill_steps(out, start, step);
}
void arange_out_cpu(const Scalar&, const Tensor& out) {
  fill_steps(out, int64_t{0}, int64_t{1});
}

void range_cpu(const Scalar& start,
               const Scalar&,
               const Scalar& step,
               Dtype,
               MaybeLayout,
               MaybeDevice,
               MaybeBool,
               const Tensor& out) {
  fill_steps(out, start, step);
}
void range_cpu(const Scalar& start,
               const Scalar&,
               Dtype,
               MaybeLayout,
               MaybeDevice,
               MaybeBool,
               const Tensor& out) {
  fill_steps(out, start, int64_t{1});
}

void range_out_cpu(const Scalar& start, const Scalar&, const Tensor& out) {
  fill_steps(out, start, int64_t{1});
}

// linspace, logspace
// ----------------------------------------------------------------

namespace {

template <class T>
constexpr bool kIsFloat = is_floating(scalar_type_of<T>);

struct Same {
  auto operator()(auto v) const { return v; }
};

// a + b c, rounded once by types that have such an instruction and after each
// step by 16-bit ones.
template <class V>
V add_product(V a, V b, V c) {
  if constexpr (std::is_same_v<V, float> || std::is_same_v<V, double>) {
    return std::fma(b, c, a);
  } else {
    return V(a + V(b * c));
  }
}

// Both halves are counted from their own end, so that the last element is
// `end` itself. All in V, as in PyTorch: the step is rounded to V, too.
template <class V>
auto position_of(V start, V end, int64_t steps) {
  V step =
      steps > 1 ? V(V(end - start) / V(static_cast<double>(steps - 1))) : V(0);
  return [=](int64_t i) {
    bool near_start = i < steps / 2;
    double count = static_cast<double>(near_start ? i : i + 1 - steps);
    return add_product(near_start ? start : end, step, V(count));
  };
}

// The same by the loops of the kernels.
template <class T>
void halves(const Tensor& out, double start, double end, int64_t steps) {
  const T first = T(start), last = T(end);
  const T step = T(last - first) / T(static_cast<double>(steps - 1));
  const RampFn<T, T> fill = ramp_of<T, T>();
  T* data = out.mutable_data<T>();
  parallel_for(0, steps, kGrain, [&](int64_t begin, int64_t to) {
    const int64_t middle = std::clamp(steps / 2, begin, to);
    fill(data + begin, begin, middle - begin, first, step);
    fill(data + middle, middle + 1 - steps, to - middle, last, step);
  });
}

template <class Map>
void space(const Scalar& start,
           const Scalar& end,
           int64_t steps,
           const Tensor& out,
           Map&& map) {
  visit_type(out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using V = std::conditional_t<kIsComplex<T>, complex<double>, double>;
    if (steps == 1) {
      V v = map(start.to<V>());
      return generate<T>(out, [=](int64_t) { return v; });
    }
    // Integers begin at the truncated bounds.
    V first = start.to<V>(), last = end.to<V>();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      first = static_cast<V>(start.to<int64_t>());
      last = static_cast<V>(end.to<int64_t>());
    }
    // Exponents are not rounded before the power is taken.
    using P = std::conditional_t<std::is_same_v<std::decay_t<Map>, Same> &&
                                     kIsFloat<T>,
                                 T,
                                 V>;
    if constexpr (std::is_same_v<P, T> && std::is_same_v<Map, Same> &&
                  std::is_floating_point_v<T>) {
      return halves<T>(out, first, last, steps);
    }
    auto at = position_of(P(first), P(last), steps);
    generate<T>(out, [&](int64_t i) { return map(at(i)); });
  });
}

Scalar end_of(const Tensor& t) { return ops::item(t); }
const Scalar& end_of(const Scalar& s) { return s; }

complex<double> power(double base, complex<double> v) {
  double size = std::pow(base, v.real());
  double angle = v.imag() * std::log(base);
  return {size * std::cos(angle), size * std::sin(angle)};
}
double power(double base, double v) { return std::pow(base, v); }

auto power_of(double base) {
  return [base](auto v) { return power(base, v); };
}

}  // namespace

#define TAEDA_SPACES(A, B)                                         \
  void linspace_cpu(const A& start,                                \
                    const B& end,                                  \
                    int64_t steps,                                 \
                    Dtype,                                         \
                    MaybeLayout,                                   \
                    MaybeDevice,                                   \
                    MaybeBool,                                     \
                    const Tensor& out) {                           \
    space(end_of(start), end_of(end), steps, out, Same());         \
  }                                                                \
  void logspace_cpu(const A& start,                                \
                    const B& end,                                  \
                    int64_t steps,                                 \
                    double base,                                   \
                    Dtype,                                         \
                    MaybeLayout,                                   \
                    MaybeDevice,                                   \
                    MaybeBool,                                     \
                    const Tensor& out) {                           \
    space(end_of(start), end_of(end), steps, out, power_of(base)); \
  }
TAEDA_SPACES(Scalar, Scalar)
TAEDA_SPACES(Tensor, Scalar)
TAEDA_SPACES(Scalar, Tensor)
TAEDA_SPACES(Tensor, Tensor)
#undef TAEDA_SPACES

void linspace_out_cpu(const Scalar& start,
                      const Scalar& end,
                      int64_t steps,
                      const Tensor& out) {
  space(start, end, steps, out, Same());
}
void logspace_out_cpu(const Scalar& start,
                      const Scalar& end,
                      int64_t steps,
                      double base,
                      const Tensor& out) {
  space(start, end, steps, out, power_of(base));
}

// Triangles ------------------------------------------------------------------

namespace {

void triangle(std::string_view op,
              bool upper,
              int64_t rows,
              int64_t cols,
              int64_t offset,
              const Tensor& out) {
  offset = clamped_offset(offset, rows, cols);
  visit_type(out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      T* row = out.mutable_data<T>();
      T* col = row + out.sizes()[1];
      each_triangle_row(
          upper, rows, cols, offset, [&](int64_t r, int64_t a, int64_t b) {
            for (int64_t c = a; c < b; ++c) {
              *row++ = static_cast<T>(r);
              *col++ = static_cast<T>(c);
            }
          });
    } else {
      not_implemented_for(op, out.dtype());
    }
  });
}

}  // namespace

void tril_indices_cpu(int64_t row,
                      int64_t col,
                      int64_t offset,
                      Dtype,
                      MaybeLayout,
                      MaybeDevice,
                      MaybeBool,
                      const Tensor& out) {
  triangle("tril_indices", false, row, col, offset, out);
}
void triu_indices_cpu(int64_t row,
                      int64_t col,
                      int64_t offset,
                      Dtype,
                      MaybeLayout,
                      MaybeDevice,
                      MaybeBool,
                      const Tensor& out) {
  triangle("triu_indices", true, row, col, offset, out);
}

}  // namespace taeda::native
