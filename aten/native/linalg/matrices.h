// Batches of matrices as LAPACK takes them: column-major, one behind another.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/blas/lapack.h>
#include <taeda/c10/core/strides.h>
#include <taeda/c10/util/check.h>
#include <taeda/c10/util/macros.h>

#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace taeda::native {

// Refuses what is no batch of float, double or complex matrices, or, where
// LAPACK is not asked alone, of 16-bit ones. T is a tensor or what a shape rule
// sees of one.
template <class T>
void check_matrices(std::string_view op,
                    const T& t,
                    bool small_floats = false) {
  TAEDA_CHECK(t.dim() >= 2,
              op,
              ": The input tensor A must have at least 2 dimensions, got ",
              t.sizes());
  ScalarType d = t.dtype();
  TAEDA_CHECK(d == kFloat || d == kDouble || d == kComplexFloat ||
                  d == kComplexDouble ||
                  (small_floats && (d == kHalf || d == kBFloat16)),
              op,
              ": Expected a floating point or complex tensor as input. Got ",
              d);
  constexpr int64_t kMost = std::numeric_limits<blas::Int>::max();
  TAEDA_CHECK(t.size(-2) <= kMost && t.size(-1) <= kMost,
              op,
              ": LAPACK takes matrices of at most 2^31 - 1 rows, got ",
              t.sizes());
}
template <class T>
void check_square(std::string_view op, const T& t, bool small_floats = false) {
  check_matrices(op, t, small_floats);
  TAEDA_CHECK(t.size(-2) == t.size(-1),
              op,
              ": A must be batches of square matrices, but they are ",
              t.size(-2),
              " by ",
              t.size(-1),
              " matrices");
}
// Strides of matrices rows x columns for each element of `batch`, column by
// column, and their sizes.
template <class I>
struct ColumnMajor {
  Dims<I> sizes, strides;
  ColumnMajor(ArrayRef<I> batch, const I& rows, const I& columns)
      : sizes(batch) {
    sizes.push_back(columns);
    sizes.push_back(rows);
    strides = ::taeda::strides::contiguous<I>(sizes);
    size_t last = sizes.size() - 1;
    std::swap(sizes[last], sizes[last - 1]);
    std::swap(strides[last], strides[last - 1]);
  }
};
// Uninitialised matrices rows x columns for each element of `batch`.
TAEDA_API Tensor new_matrices(std::string_view op,
                              IntArrayRef batch,
                              int64_t rows,
                              int64_t columns,
                              const Tensor& like);
// Plans such matrices as result `index`.
template <class I>
void plan_matrices(Plan<I>& plan,
                   size_t index,
                   ArrayRef<I> batch,
                   const std::type_identity_t<I>& rows,
                   const std::type_identity_t<I>& columns,
                   ScalarType dtype) {
  ColumnMajor<I> g(batch, rows, columns);
  plan.set(index, g.sizes, g.strides, dtype);
}
// Column-major as a new tensor; an out= tensor with elements that takes another
// shape becomes row-major.
template <class I>
void plan_matrices_row_major_out(Plan<I>& plan,
                                 size_t index,
                                 ArrayRef<I> batch,
                                 const std::type_identity_t<I>& rows,
                                 const std::type_identity_t<I>& columns,
                                 ScalarType dtype) {
  plan_matrices(plan, index, batch, rows, columns, dtype);
  plan.made_as(index, ColumnMajor<I>(batch, rows, columns).sizes);
}
// A copy of `t` in this form.
TAEDA_API Tensor column_major(std::string_view op, const Tensor& t);

// Zeros, one int32 for each matrix: what LAPACK reports.
TAEDA_API Tensor new_infos(std::string_view op, const Tensor& a);
// The first matrix whose info is not 0, or -1; also where there is no data.
int64_t first_failure(const Tensor& info);

template <class T>
auto batch_sizes(const T& t) {
  return t.sizes().slice(0, static_cast<size_t>(t.dim() - 2));
}
// The batch of `t` and a vector of `length`.
inline DimVector vectors_of(const Tensor& t, int64_t length) {
  DimVector sizes(batch_sizes(t));
  sizes.push_back(length);
  return sizes;
}
template <class I>
Dims<I> vectors_of(const Spec<I>& t, const std::type_identity_t<I>& length) {
  Dims<I> sizes(batch_sizes(t));
  sizes.push_back(length);
  return sizes;
}
inline int64_t batch_count(const Tensor& t) {
  int64_t count = 1;
  for (int64_t s : batch_sizes(t)) count *= s;
  return count;
}
inline blas::Int rows_of(const Tensor& t) {
  return static_cast<blas::Int>(t.sizes()[t.dim() - 2]);
}
inline blas::Int columns_of(const Tensor& t) {
  return static_cast<blas::Int>(t.sizes()[t.dim() - 1]);
}
// LAPACK wants leading dimensions of at least 1.
inline blas::Int leading(blas::Int rows) { return rows > 1 ? rows : 1; }

// The matrix or vector `i` of a batch of things of `each` elements.
template <typename T>
T* item(const Tensor& t, int64_t i, int64_t each) {
  return t.mutable_data<T>() + i * each;
}

template <typename F>
void visit_lapack(ScalarType t, F&& f) {
  if (t == kFloat) return f(float{});
  if (t == kDouble) return f(double{});
  if (t == kComplexFloat) return f(complex<float>{});
  f(complex<double>{});
}

// Asks a routine for the size of its workspace, then calls it with one.
template <typename T, typename F>
void with_workspace(F&& call) {
  T size{};
  call(&size, -1);
  // LAPACK reports the count as a number of the matrix's own type.
  auto count = static_cast<blas::Int>(reinterpret_cast<blas::real_t<T>&>(size));
  ++count;  // float rounds large counts down
  std::vector<T> work(static_cast<size_t>(count));
  call(work.data(), count);
}

}  // namespace taeda::native
