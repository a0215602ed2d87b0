// How long sequences are, and which part of a matrix a triangle is.
#pragma once

#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/spec.h>
#include <taeda/aten/native/creation.h>
#include <taeda/aten/parallel/parallel.h>

#include <cstdint>
#include <string_view>

namespace taeda::native {

// Truth values have no sequence of more than one element.
inline void refuse_bool(std::string_view op, ScalarType dtype) {
  if (dtype == kBool) not_implemented_for(op, dtype);
}

// The planned sequence goes into `out` as that is shaped if it has as many
// elements.
template <class I>
void keep_shape(Plan<I>& plan, const Spec<I>& out) {
  if (out.numel() == plan[0].sizes[0]) plan.set(0, out.sizes(), out.dtype());
}

inline void check_bound(std::string_view, const Scalar&) {}

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

// Calls visit(row, first_col, end_col) for rows with columns in the triangle.
template <class F>
void each_triangle_row(
    bool upper, int64_t rows, int64_t cols, int64_t offset, F&& f) {
  int64_t first = upper ? 0 : std::clamp<int64_t>(-offset, 0, rows);
  int64_t last = upper ? std::clamp<int64_t>(cols - offset, 0, rows) : rows;
  for (int64_t r = first; r < last; ++r) {
    int64_t edge = std::clamp<int64_t>(r + offset + (upper ? 0 : 1), 0, cols);
    if (upper) {
      f(r, edge, cols);
    } else {
      f(r, int64_t{0}, edge);
    }
  }
}

// Further away than the matrix is wide or high changes nothing more.
inline int64_t clamped_offset(int64_t offset, int64_t rows, int64_t cols) {
  return std::clamp(offset, -rows - 1, cols + 1);
}

}  // namespace taeda::native
