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

using Dtype = std::optional<ScalarType>;
using MaybeLayout = std::optional<Layout>;
using MaybeDevice = std::optional<Device>;
using MaybeBool = std::optional<bool>;

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
      if constexpr (std::is_integral_v<T>) {
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

void check_count(double count) {
  TAEDA_CHECK(count >= 0 && count <= 9.2e18,
              "invalid size, possible overflow?");
}

void fill_steps(const Tensor& out, const Scalar& start, const Scalar& step) {
  if (!out.is_cpu()) return;
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

Tensor arange(const Scalar& start,
              const Scalar& end,
              const Scalar& step,
              Dtype dtype,
              MaybeLayout layout,
              MaybeDevice device,
              MaybeBool) {
  auto whole = [](const Scalar& s) { return s.is_integral() || s.is_bool(); };
  ScalarType t = dtype.value_or(
      whole(start) && whole(end) && whole(step) ? kLong : default_dtype());
  int64_t count = arange_count(start, end, step, t);
  Tensor out = new_tensor("arange", {count}, t, layout, device);
  TAEDA_CHECK_AS(NotImplemented,
                 t != kBool && !is_complex(t),
                 "\"arange\" not implemented for '",
                 t,
                 "'");
  fill_steps(out, start, step);
  return out;
}
Tensor arange(const Scalar& start,
              const Scalar& end,
              Dtype dtype,
              MaybeLayout layout,
              MaybeDevice device,
              MaybeBool pin) {
  return arange(start, end, int64_t{1}, dtype, layout, device, pin);
}
Tensor arange(const Scalar& end,
              Dtype dtype,
              MaybeLayout layout,
              MaybeDevice device,
              MaybeBool pin) {
  return arange(int64_t{0}, end, int64_t{1}, dtype, layout, device, pin);
}

namespace {

// A result goes into `out` as it is shaped if it has as many elements.
void write_sequence(const char* op, const Tensor& values, const Tensor& out) {
  if (out.numel() != values.numel()) resize_output(out, values.sizes());
  check_no_internal_overlap(op, out);
  copy_into(out,
            make_view(values, out.sizes(), contiguous_strides(out.sizes()), 0));
}

}  // namespace

void arange_out(const Scalar& start,
                const Scalar& end,
                const Scalar& step,
                const Tensor& out) {
  if (out.dtype() == kLong) {
    TAEDA_CHECK_AS(Value,
                   step.equal(0.0) || step.to<int64_t>() != 0,
                   "step must be nonzero");
  }
  Tensor values = arange(start, end, step, out.dtype(), {}, out.device(), {});
  write_sequence("arange", values, out);
}
void arange_out(const Scalar& end, const Tensor& out) {
  arange_out(int64_t{0}, end, int64_t{1}, out);
}

Tensor range(const Scalar& start,
             const Scalar& end,
             const Scalar& step,
             Dtype dtype,
             MaybeLayout layout,
             MaybeDevice device,
             MaybeBool) {
  double a = start.to_double(), b = end.to_double(), by = step.to_double();
  check_bounds(a, b, by);
  double count = std::floor((b - a) / by) + 1;
  check_count(count);
  Tensor out =
      new_tensor("range", {static_cast<int64_t>(count)}, dtype, layout, device);
  fill_steps(out, start, step);
  return out;
}
Tensor range(const Scalar& start,
             const Scalar& end,
             Dtype dtype,
             MaybeLayout layout,
             MaybeDevice device,
             MaybeBool pin) {
  return range(start, end, int64_t{1}, dtype, layout, device, pin);
}

// linspace, logspace
// ----------------------------------------------------------------

namespace {

ScalarType type_of_space(std::string_view op,
                         const Scalar& start,
                         const Scalar& end,
                         Dtype dtype) {
  bool has_complex = start.is_complex() || end.is_complex();
  if (dtype) {
    TAEDA_CHECK(!has_complex || is_complex(*dtype),
                "torch.",
                op,
                "(): inferred dtype ",
                complex_type_of(default_dtype()),
                " can't be safely cast to passed dtype ",
                *dtype);
    return *dtype;
  }
  return has_complex ? complex_type_of(default_dtype()) : default_dtype();
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
Tensor space(std::string_view op,
             const Scalar& start,
             const Scalar& end,
             int64_t steps,
             Dtype dtype,
             MaybeLayout layout,
             MaybeDevice device,
             Map&& map) {
  TAEDA_CHECK(steps >= 0, "number of steps must be non-negative, got ", steps);
  ScalarType t = type_of_space(op, start, end, dtype);
  Tensor out = new_tensor(op, {steps}, t, layout, device);
  if (steps == 1 && out.is_cpu()) {
    visit_type(t, [&](auto tag) {
      using T = decltype(tag);
      using V = std::conditional_t<kIsComplex<T>, complex<double>, double>;
      V v = map(start.to<V>());
      generate<T>(out, [=](int64_t) { return v; });
    });
    return out;
  }
  if (!out.is_cpu()) return out;
  visit_type(t, [&](auto tag) {
    using T = decltype(tag);
    using V = std::conditional_t<kIsComplex<T>, complex<double>, double>;
    // Integers begin at the truncated bounds.
    V first = start.to<V>(), last = end.to<V>();
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
      first = static_cast<V>(start.to<int64_t>());
      last = static_cast<V>(end.to<int64_t>());
    }
    // Exponents are not rounded before the power is taken.
    using P =
        std::conditional_t<std::is_same_v<Map, Same> && kIsFloat<T>, T, V>;
    auto at = position_of(P(first), P(last), steps);
    generate<T>(out, [&](int64_t i) { return map(at(i)); });
  });
  return out;
}

Scalar bound_of(std::string_view op, const Tensor& t) {
  TAEDA_CHECK(t.dim() == 0,
              op,
              " only supports 0-dimensional start and end tensors, but got "
              "start with ",
              t.dim(),
              " dimension(s).");
  if (!t.is_meta()) return ops::item(t);
  return t.is_complex() ? Scalar(complex<double>()) : Scalar(0.0);
}
const Scalar& bound_of(std::string_view, const Scalar& s) { return s; }

// Where the sequence goes without a device being named.
template <class A, class B>
MaybeDevice device_beside(const A& start, const B& end, MaybeDevice device) {
  auto one = [&](const auto& bound) {
    if constexpr (std::is_same_v<std::decay_t<decltype(bound)>, Tensor>) {
      if (!device && bound.is_meta()) device = bound.device();
    }
  };
  one(start);
  one(end);
  return device;
}

template <class A, class B>
Tensor linspace_of(const A& start,
                   const B& end,
                   int64_t steps,
                   Dtype dtype,
                   MaybeLayout layout,
                   MaybeDevice device) {
  return space("linspace",
               bound_of("linspace", start),
               bound_of("linspace", end),
               steps,
               dtype,
               layout,
               device_beside(start, end, device),
               Same());
}

complex<double> power(double base, complex<double> v) {
  double size = std::pow(base, v.real());
  double angle = v.imag() * std::log(base);
  return {size * std::cos(angle), size * std::sin(angle)};
}
double power(double base, double v) { return std::pow(base, v); }

template <class A, class B>
Tensor logspace_of(const A& start,
                   const B& end,
                   int64_t steps,
                   double base,
                   Dtype dtype,
                   MaybeLayout layout,
                   MaybeDevice device) {
  return space("logspace",
               bound_of("logspace", start),
               bound_of("logspace", end),
               steps,
               dtype,
               layout,
               device_beside(start, end, device),
               [base](auto v) { return power(base, v); });
}

}  // namespace

#define TAEDA_SPACES(A, B)                                              \
  Tensor linspace(const A& start,                                       \
                  const B& end,                                         \
                  int64_t steps,                                        \
                  Dtype dtype,                                          \
                  MaybeLayout layout,                                   \
                  MaybeDevice device,                                   \
                  MaybeBool) {                                          \
    return linspace_of(start, end, steps, dtype, layout, device);       \
  }                                                                     \
  Tensor logspace(const A& start,                                       \
                  const B& end,                                         \
                  int64_t steps,                                        \
                  double base,                                          \
                  Dtype dtype,                                          \
                  MaybeLayout layout,                                   \
                  MaybeDevice device,                                   \
                  MaybeBool) {                                          \
    return logspace_of(start, end, steps, base, dtype, layout, device); \
  }
TAEDA_SPACES(Scalar, Scalar)
TAEDA_SPACES(Tensor, Scalar)
TAEDA_SPACES(Scalar, Tensor)
TAEDA_SPACES(Tensor, Tensor)
#undef TAEDA_SPACES

void linspace_out(const Scalar& start,
                  const Scalar& end,
                  int64_t steps,
                  const Tensor& out) {
  Tensor values =
      linspace(start, end, steps, out.dtype(), {}, out.device(), {});
  write_sequence("linspace", values, out);
}
void logspace_out(const Scalar& start,
                  const Scalar& end,
                  int64_t steps,
                  double base,
                  const Tensor& out) {
  Tensor values =
      logspace(start, end, steps, base, out.dtype(), {}, out.device(), {});
  write_sequence("logspace", values, out);
}

// Triangles ------------------------------------------------------------------

namespace {

// Calls visit(row, first_col, end_col) for rows with columns in the triangle.
template <class F>
void for_rows(bool upper, int64_t rows, int64_t cols, int64_t offset, F&& f) {
  for (int64_t r = 0; r < rows; ++r) {
    int64_t edge = std::clamp<int64_t>(r + offset + (upper ? 0 : 1), 0, cols);
    if (upper) {
      f(r, edge, cols);
    } else {
      f(r, int64_t{0}, edge);
    }
  }
}

Tensor triangle(std::string_view op,
                bool upper,
                int64_t rows,
                int64_t cols,
                int64_t offset,
                Dtype dtype,
                MaybeLayout layout,
                MaybeDevice device) {
  TAEDA_CHECK(rows >= 0, "row must be non-negative, got ", rows);
  TAEDA_CHECK(cols >= 0, "col must be non-negative, got ", cols);
  // Further away than the matrix is wide or high changes nothing more.
  offset = std::clamp(offset, -rows - 1, cols + 1);
  int64_t count = 0;
  for_rows(upper, rows, cols, offset, [&](int64_t, int64_t a, int64_t b) {
    count += b - a;
  });
  Tensor out =
      new_tensor(op, {2, count}, dtype.value_or(kLong), layout, device);
  if (!out.is_cpu()) return out;
  visit_type(out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T>) {
      T* row = out.mutable_data<T>();
      T* col = row + count;
      for_rows(upper, rows, cols, offset, [&](int64_t r, int64_t a, int64_t b) {
        for (int64_t c = a; c < b; ++c) {
          *row++ = static_cast<T>(r);
          *col++ = static_cast<T>(c);
        }
      });
    } else {
      not_implemented_for(op, out.dtype());
    }
  });
  return out;
}

}  // namespace

Tensor tril_indices(int64_t row,
                    int64_t col,
                    int64_t offset,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool) {
  return triangle(
      "tril_indices", false, row, col, offset, dtype, layout, device);
}
Tensor triu_indices(int64_t row,
                    int64_t col,
                    int64_t offset,
                    Dtype dtype,
                    MaybeLayout layout,
                    MaybeDevice device,
                    MaybeBool) {
  return triangle(
      "triu_indices", true, row, col, offset, dtype, layout, device);
}

}  // namespace taeda::native
