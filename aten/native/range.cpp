// Factories of sequences: arange, linspace and their relatives.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/parallel/parallel.h>
#include <taeda/gen/native/arange.h>
#include <taeda/gen/native/linspace.h>
#include <taeda/gen/native/logspace.h>
#include <taeda/gen/native/range.h>
#include <taeda/gen/native/tril_indices.h>
#include <taeda/gen/native/triu_indices.h>
#include <taeda/gen/ops/item.h>

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

void check_bounds(double start, double end, double step) {
  TAEDA_CHECK(step != 0, "step must be nonzero");
  TAEDA_CHECK(std::isfinite(start) && std::isfinite(end),
              "unsupported range: ",
              start,
              " -> ",
              end);
  TAEDA_CHECK(step > 0 ? end >= start : end <= start,
              "upper bound and lower bound inconsistent with step sign");
}

// Truth values have no sequence of more than one element.
void refuse_bool(std::string_view op, ScalarType dtype) {
  if (dtype == kBool) not_implemented_for(op, dtype);
}

void check_count(double count) {
  TAEDA_CHECK(count >= 0 && count <= 9.2e18,
              "invalid size, possible overflow?");
}

void fill_steps(const Tensor& out, const Scalar& start, const Scalar& step) {
  visit_type(out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      int64_t first = start.to<int64_t>(), by = step.to<int64_t>();
      generate<T>(out, [=](int64_t i) { return first + i * by; });
    } else if constexpr (kIsComplex<T>) {
      not_implemented_for("arange", out.dtype());
    } else {
      double first = start.to_double(), by = step.to_double();
      generate<T>(
          out, [=](int64_t i) { return first + static_cast<double>(i) * by; });
    }
  });
}

int64_t arange_count(const Scalar& start,
                     const Scalar& end,
                     const Scalar& step,
                     ScalarType dtype) {
  check_bounds(start.to_double(), end.to_double(), step.to_double());
  if (dtype == kLong) {
    int64_t a = start.to<int64_t>(), b = end.to<int64_t>();
    int64_t by = step.to<int64_t>();
    TAEDA_CHECK_AS(Value, by != 0, "step must be nonzero, got ", step);
    int64_t sign = by > 0 ? 1 : -1;
    return (b - a + by - sign) / by;
  }
  double count =
      std::ceil((end.to_double() - start.to_double()) / step.to_double());
  check_count(count);
  return static_cast<int64_t>(count);
}

}  // namespace

template <class I>
void arange_shape(const Scalar& start,
                  const Scalar& end,
                  const Scalar& step,
                  Dtype dtype,
                  MaybeLayout layout,
                  MaybeDevice,
                  MaybeBool,
                  Plan<I>& plan) {
  auto whole = [](const Scalar& s) { return s.is_integral() || s.is_bool(); };
  ScalarType t = dtype.value_or(
      whole(start) && whole(end) && whole(step) ? kLong : default_dtype());
  plan_size<I>(plan, {I(arange_count(start, end, step, t))}, t, layout);
  TAEDA_CHECK_AS(NotImplemented,
                 t != kBool && !is_complex(t),
                 "\"arange\" not implemented for '",
                 t,
                 "'");
}
TAEDA_SHAPE(arange_shape);

template <class I>
void arange_start_shape(const Scalar& start,
                        const Scalar& end,
                        Dtype dtype,
                        MaybeLayout layout,
                        MaybeDevice device,
                        MaybeBool pin,
                        Plan<I>& plan) {
  arange_shape<I>(start, end, int64_t{1}, dtype, layout, device, pin, plan);
}
TAEDA_SHAPE(arange_start_shape);

template <class I>
void arange_end_shape(const Scalar& end,
                      Dtype dtype,
                      MaybeLayout layout,
                      MaybeDevice device,
                      MaybeBool pin,
                      Plan<I>& plan) {
  arange_start_shape<I>(int64_t{0}, end, dtype, layout, device, pin, plan);
}
TAEDA_SHAPE(arange_end_shape);

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

namespace {

// The planned sequence goes into `out` as that is shaped if it has as many
// elements.
template <class I>
void keep_shape(Plan<I>& plan, const Spec<I>& out) {
  if (out.numel() == plan[0].sizes[0]) plan.set(0, out.sizes(), out.dtype());
}

}  // namespace

template <class I>
void arange_out_shape(const Scalar& start,
                      const Scalar& end,
                      const Scalar& step,
                      const Spec<I>& out,
                      Plan<I>& plan) {
  if (out.dtype() == kLong) {
    TAEDA_CHECK_AS(Value,
                   step.equal(0.0) || step.to<int64_t>() != 0,
                   "step must be nonzero");
  }
  arange_shape<I>(start, end, step, out.dtype(), {}, {}, {}, plan);
  keep_shape(plan, out);
}
TAEDA_SHAPE(arange_out_shape);

template <class I>
void arange_end_out_shape(const Scalar& end,
                          const Spec<I>& out,
                          Plan<I>& plan) {
  arange_out_shape<I>(int64_t{0}, end, int64_t{1}, out, plan);
}
TAEDA_SHAPE(arange_end_out_shape);

void arange_out_cpu(const Scalar& start,
                    const Scalar&,
                    const Scalar& step,
                    const Tensor& out) {
  fill_steps(out, start, step);
}
void arange_out_cpu(const Scalar&, const Tensor& out) {
  fill_steps(out, int64_t{0}, int64_t{1});
}

template <class I>
void range_step_shape(const Scalar& start,
                      const Scalar& end,
                      const Scalar& step,
                      Dtype dtype,
                      MaybeLayout layout,
                      MaybeDevice,
                      MaybeBool,
                      Plan<I>& plan) {
  double a = start.to_double(), b = end.to_double(), by = step.to_double();
  check_bounds(a, b, by);
  refuse_bool("range", dtype.value_or(default_dtype()));
  double count = std::floor((b - a) / by) + 1;
  check_count(count);
  plan_size<I>(plan,
               {I(static_cast<int64_t>(count))},
               dtype.value_or(default_dtype()),
               layout);
}
TAEDA_SHAPE(range_step_shape);

template <class I>
void range_shape(const Scalar& start,
                 const Scalar& end,
                 Dtype dtype,
                 MaybeLayout layout,
                 MaybeDevice device,
                 MaybeBool pin,
                 Plan<I>& plan) {
  range_step_shape<I>(start, end, int64_t{1}, dtype, layout, device, pin, plan);
}
TAEDA_SHAPE(range_shape);

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

// linspace, logspace
// ----------------------------------------------------------------

namespace {

void check_bound(std::string_view, const Scalar&) {}
template <class I>
void check_bound(std::string_view op, const Spec<I>& t) {
  TAEDA_CHECK(t.dim() == 0,
              op,
              " only supports 0-dimensional start and end tensors, but got "
              "start with ",
              t.dim(),
              " dimension(s).");
}

// A and B are Scalar or Spec.
template <class I, class A, class B>
void plan_space(Plan<I>& plan,
                const A& start,
                const B& end,
                int64_t steps,
                Dtype dtype,
                MaybeLayout layout) {
  check_bound(plan.op(), start);
  check_bound(plan.op(), end);
  TAEDA_CHECK(steps >= 0, "number of steps must be non-negative, got ", steps);
  bool has_complex = start.is_complex() || end.is_complex();
  ScalarType usual =
      has_complex ? complex_type_of(default_dtype()) : default_dtype();
  TAEDA_CHECK(!has_complex || !dtype || is_complex(*dtype),
              "torch.",
              plan.op(),
              "(): inferred dtype ",
              usual,
              " can't be safely cast to passed dtype ",
              *dtype);
  if (steps > 1) refuse_bool(plan.op(), dtype.value_or(usual));
  plan_size<I>(plan, {I(steps)}, dtype.value_or(usual), layout);
}

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
    auto at = position_of(P(first), P(last), steps);
    generate<T>(out, [&](int64_t i) { return map(at(i)); });
  });
}

Scalar bound_of(const Tensor& t) { return ops::item(t); }
const Scalar& bound_of(const Scalar& s) { return s; }

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

#define TAEDA_SPACES(linspace_rule, logspace_rule, A, B, SpecA, SpecB) \
  template <class I>                                                   \
  void linspace_rule(const SpecA& start,                               \
                     const SpecB& end,                                 \
                     int64_t steps,                                    \
                     Dtype dtype,                                      \
                     MaybeLayout layout,                               \
                     MaybeDevice,                                      \
                     MaybeBool,                                        \
                     Plan<I>& plan) {                                  \
    plan_space(plan, start, end, steps, dtype, layout);                \
  }                                                                    \
  TAEDA_SHAPE(linspace_rule);                                          \
  template <class I>                                                   \
  void logspace_rule(const SpecA& start,                               \
                     const SpecB& end,                                 \
                     int64_t steps,                                    \
                     double,                                           \
                     Dtype dtype,                                      \
                     MaybeLayout layout,                               \
                     MaybeDevice,                                      \
                     MaybeBool,                                        \
                     Plan<I>& plan) {                                  \
    plan_space(plan, start, end, steps, dtype, layout);                \
  }                                                                    \
  TAEDA_SHAPE(logspace_rule);                                          \
  void linspace_cpu(const A& start,                                    \
                    const B& end,                                      \
                    int64_t steps,                                     \
                    Dtype,                                             \
                    MaybeLayout,                                       \
                    MaybeDevice,                                       \
                    MaybeBool,                                         \
                    const Tensor& out) {                               \
    space(bound_of(start), bound_of(end), steps, out, Same());         \
  }                                                                    \
  void logspace_cpu(const A& start,                                    \
                    const B& end,                                      \
                    int64_t steps,                                     \
                    double base,                                       \
                    Dtype,                                             \
                    MaybeLayout,                                       \
                    MaybeDevice,                                       \
                    MaybeBool,                                         \
                    const Tensor& out) {                               \
    space(bound_of(start), bound_of(end), steps, out, power_of(base)); \
  }
TAEDA_SPACES(linspace_shape, logspace_shape, Scalar, Scalar, Scalar, Scalar)
TAEDA_SPACES(linspace_tensor_scalar_shape,
             logspace_tensor_scalar_shape,
             Tensor,
             Scalar,
             Spec<I>,
             Scalar)
TAEDA_SPACES(linspace_scalar_tensor_shape,
             logspace_scalar_tensor_shape,
             Scalar,
             Tensor,
             Scalar,
             Spec<I>)
TAEDA_SPACES(linspace_tensor_tensor_shape,
             logspace_tensor_tensor_shape,
             Tensor,
             Tensor,
             Spec<I>,
             Spec<I>)
#undef TAEDA_SPACES

template <class I>
void linspace_out_shape(const Scalar& start,
                        const Scalar& end,
                        int64_t steps,
                        const Spec<I>& out,
                        Plan<I>& plan) {
  plan_space(plan, start, end, steps, out.dtype(), {});
  keep_shape(plan, out);
}
TAEDA_SHAPE(linspace_out_shape);

template <class I>
void logspace_out_shape(const Scalar& start,
                        const Scalar& end,
                        int64_t steps,
                        double,
                        const Spec<I>& out,
                        Plan<I>& plan) {
  linspace_out_shape(start, end, steps, out, plan);
}
TAEDA_SHAPE(logspace_out_shape);

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

// Calls visit(row, first_col, end_col) for rows with columns in the triangle.
template <class F>
void each_triangle_row(bool upper, int64_t rows, int64_t cols, int64_t offset, F&& f) {
  for (int64_t r = 0; r < rows; ++r) {
    int64_t edge = std::clamp<int64_t>(r + offset + (upper ? 0 : 1), 0, cols);
    if (upper) {
      f(r, edge, cols);
    } else {
      f(r, int64_t{0}, edge);
    }
  }
}

// Further away than the matrix is wide or high changes nothing more.
int64_t clamped_offset(int64_t offset, int64_t rows, int64_t cols) {
  return std::clamp(offset, -rows - 1, cols + 1);
}

template <class I>
void plan_triangle(Plan<I>& plan,
                   bool upper,
                   int64_t rows,
                   int64_t cols,
                   int64_t offset,
                   Dtype dtype,
                   MaybeLayout layout) {
  TAEDA_CHECK(rows >= 0, "row must be non-negative, got ", rows);
  TAEDA_CHECK(cols >= 0, "col must be non-negative, got ", cols);
  offset = clamped_offset(offset, rows, cols);
  int64_t count = 0;
  each_triangle_row(upper, rows, cols, offset, [&](int64_t, int64_t a, int64_t b) {
    count += b - a;
  });
  plan_size<I>(plan, {I(2), I(count)}, dtype.value_or(kLong), layout);
}

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
      each_triangle_row(upper, rows, cols, offset, [&](int64_t r, int64_t a, int64_t b) {
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

template <class I>
void tril_indices_shape(int64_t row,
                        int64_t col,
                        int64_t offset,
                        Dtype dtype,
                        MaybeLayout layout,
                        MaybeDevice,
                        MaybeBool,
                        Plan<I>& plan) {
  plan_triangle(plan, false, row, col, offset, dtype, layout);
}
TAEDA_SHAPE(tril_indices_shape);
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

template <class I>
void triu_indices_shape(int64_t row,
                        int64_t col,
                        int64_t offset,
                        Dtype dtype,
                        MaybeLayout layout,
                        MaybeDevice,
                        MaybeBool,
                        Plan<I>& plan) {
  plan_triangle(plan, true, row, col, offset, dtype, layout);
}
TAEDA_SHAPE(triu_indices_shape);
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
