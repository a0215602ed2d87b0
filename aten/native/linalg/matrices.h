// Batches of matrices as LAPACK takes them: column-major, one behind another.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/blas/lapack.h>
#include <taeda/c10/util/check.h>

#include <limits>
#include <string_view>
#include <vector>

namespace taeda::native {

// Refuses what is no batch of float, double or complex matrices.
void check_matrices(std::string_view op, const Tensor& t);
void check_square(std::string_view op, const Tensor& t);
// Uninitialised matrices rows x columns for each element of `batch`.
Tensor new_matrices(std::string_view op,
                    IntArrayRef batch,
                    int64_t rows,
                    int64_t columns,
                    const Tensor& like);
// Plans such matrices as result `index`.
void plan_matrices(OutputPlan& plan,
                   size_t index,
                   IntArrayRef batch,
                   int64_t rows,
                   int64_t columns,
                   ScalarType dtype);
// A copy of `t` in this form.
Tensor column_major(std::string_view op, const Tensor& t);

// Zeros, one int32 for each matrix: what LAPACK reports.
Tensor new_infos(std::string_view op, const Tensor& a);
// The first matrix whose info is not 0, or -1; also where there is no data.
int64_t first_failure(const Tensor& info);

inline IntArrayRef batch_sizes(const Tensor& t) {
  return t.sizes().slice(0, static_cast<size_t>(t.dim() - 2));
}
// The batch of `t` and a vector of `length`.
inline DimVector vectors_of(const Tensor& t, int64_t length) {
  DimVector sizes(batch_sizes(t));
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
