// Factories of sequences (arange, linspace and their relatives): how many
// elements there are.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/native/range.h>
#include <taeda/gen/native/arange.h>
#include <taeda/gen/native/linspace.h>
#include <taeda/gen/native/logspace.h>
#include <taeda/gen/native/range.h>
#include <taeda/gen/native/tril_indices.h>
#include <taeda/gen/native/triu_indices.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/linspace.h>
#include <taeda/gen/ops/logspace.h>

#include <cmath>
#include <limits>

namespace taeda::native {

namespace {

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

template <class I>
void range_out_shape(const Scalar& start,
                     const Scalar& end,
                     const Scalar& step,
                     const Spec<I>& out,
                     Plan<I>& plan) {
  range_step_shape<I>(start, end, step, out.dtype(), {}, {}, {}, plan);
  keep_shape(plan, out);
}
TAEDA_SHAPE(range_out_shape);

template <class I>
void range_end_out_shape(const Scalar& start,
                         const Scalar& end,
                         const Spec<I>& out,
                         Plan<I>& plan) {
  range_out_shape<I>(start, end, int64_t{1}, out, plan);
}
TAEDA_SHAPE(range_end_out_shape);

// linspace, logspace
// ----------------------------------------------------------------

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
  TAEDA_SHAPE(logspace_rule);
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

namespace {
const Scalar& number_of(std::string_view, const Scalar& s) { return s; }
Scalar number_of(std::string_view op, const Tensor& t) {
  check_bound(op, Spec<int64_t>(t));
  return ops::item(t);
}
}  // namespace

#define TAEDA_SPACES_OUT(A, B)                                                 \
  void linspace_out(                                                           \
      const A& start, const B& end, int64_t steps, const Tensor& out) {        \
    ops::linspace(                                                             \
        number_of("linspace", start), number_of("linspace", end), steps, out); \
  }                                                                            \
  void logspace_out(const A& start,                                            \
                    const B& end,                                              \
                    int64_t steps,                                             \
                    double base,                                               \
                    const Tensor& out) {                                       \
    ops::logspace(number_of("logspace", start),                                \
                  number_of("logspace", end),                                  \
                  steps,                                                       \
                  base,                                                        \
                  out);                                                        \
  }
TAEDA_SPACES_OUT(Tensor, Tensor)
TAEDA_SPACES_OUT(Tensor, Scalar)
TAEDA_SPACES_OUT(Scalar, Tensor)
#undef TAEDA_SPACES_OUT

// Triangles ------------------------------------------------------------------

namespace {

// Elements with column - row >= offset (upper) or <= offset: of the lower ones
// there are rows whose number grows by one, between those with none and with
// all columns.
int64_t triangle_count(std::string_view op,
                       bool upper,
                       int64_t rows,
                       int64_t cols,
                       int64_t offset) {
  using Wide = __int128;
  int64_t last = upper ? offset - 1 : offset;
  int64_t none = std::clamp<int64_t>(-last, 0, rows);
  int64_t all = std::clamp<int64_t>(cols - 1 - last, none, rows);
  Wide growing = Wide(all - none) * (Wide(none) + all + 1 + 2 * Wide(last)) / 2;
  Wide count = growing + Wide(rows - all) * cols;
  if (upper) count = Wide(rows) * cols - count;
  TAEDA_CHECK(count <= std::numeric_limits<int64_t>::max(),
              op,
              ": the number of elements overflows int64");
  return static_cast<int64_t>(count);
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
  constexpr int64_t kMost = int64_t{1} << 61;
  TAEDA_CHECK(
      rows <= kMost && cols <= kMost, plan.op(), ": sizes overflow int64");
  offset = clamped_offset(offset, rows, cols);
  int64_t count = triangle_count(plan.op(), upper, rows, cols, offset);
  plan_size<I>(plan, {I(2), I(count)}, dtype.value_or(kLong), layout);
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

}  // namespace taeda::native
