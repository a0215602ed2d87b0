// Systems of linear equations by LU decomposition.
#include <taeda/aten/core/level.h>
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/gen/native/linalg_inv.h>
#include <taeda/gen/native/linalg_inv_ex.h>
#include <taeda/gen/native/linalg_solve.h>
#include <taeda/gen/native/linalg_solve_ex.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::native {

using blas::Int;
using blas::lapack;

namespace {

Tensor expanded(const Tensor& t, IntArrayRef batch) {
  DimVector sizes(batch);
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return t.sizes() == IntArrayRef(sizes) ? t : ops::expand(t, sizes, false);
}

// X with A X = B, column-major, by LAPACK; B where A is singular.
template <class T>
void solve_one(const MatrixReader<T>& a,
               const MatrixReader<T>& b,
               int64_t i,
               Int n,
               Int columns,
               T* x,
               int* info) {
  std::vector<T> matrix(static_cast<size_t>(n) * static_cast<size_t>(n));
  std::vector<Int> pivots(static_cast<size_t>(n));
  Int lda = leading(n), done = 0;
  a.copy(i, matrix.data(), n, n);
  b.copy(i, x, n, columns);
  lapack<T>().getrf(&n, &n, matrix.data(), &lda, pivots.data(), info);
  if (*info > 0 || columns == 0) return;
  lapack<T>().getrs(
      "N", &n, &columns, matrix.data(), &lda, pivots.data(), x, &lda, &done, 1);
}

template <class T>
void solve_all(const Tensor& a,
               const MatrixReader<T>& b,
               const Tensor& x,
               const Tensor& info) {
  MatrixReader<T> reader(a);
  Int n = rows_of(x), columns = columns_of(x);
  SmallBatch<T> job;
  job.count = batch_count(a);
  job.rows = job.columns = n;
  job.right = columns;
  job.first = column_major_results<T>(x);
  job.report = info.mutable_data<int>();
  auto one = [&](int64_t i) {
    T* result = item<T>(x, i, int64_t{n} * columns);
    solve_one(reader, b, i, n, columns, result, item<int>(info, i, 1));
  };
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSystems).of<T>();
  if (!in_lanes(job.count, n, std::max(n, columns), kernels.lanes)) {
    return each_matrix(job.count, n, std::max(n, columns), one);
  }
  run_in_lanes<T>(kernels.solve, job, reader, b, 0, 0, one);
  // LAPACK's numbers where there is no solution, in lanes or not.
  for (int64_t i = 0; i < job.count; ++i) {
    if (*item<int>(info, i, 1) > 0) one(i);
  }
}

// X with A X = B; both have the same batch, A is square, B undefined for the
// identity. `info` gets LAPACK's report on each matrix.
Tensor solved(std::string_view op,
              const Tensor& a,
              const Tensor& b,
              const Tensor& info) {
  int64_t columns = b.defined() ? b.size(-1) : a.size(-1);
  Tensor x = new_matrices(op, batch_sizes(a), a.size(-1), columns, a);
  if (a.numel() == 0) return x;
  Tensor from = readable(a), right = b.defined() ? readable(b) : b;
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    auto reader = right.defined() ? MatrixReader<T>(right) : MatrixReader<T>();
    solve_all<T>(from, reader, x, info);
  });
  return x;
}

// Where a matrix is singular.
void check_solved(std::string_view op, const Tensor& given) {
  Tensor info = innermost_value(given);
  int64_t i = first_failure(info);
  TAEDA_CHECK_AS(LinAlg,
                 i < 0,
                 "torch.",
                 op,
                 ": ",
                 batch_element(info, i, 0),
                 "The solver failed because the input matrix is singular.");
}

void check_inverted(std::string_view op, const Tensor& given) {
  Tensor info = innermost_value(given);
  int64_t i = first_failure(info);
  if (i < 0) return;
  TAEDA_CHECK_AS(LinAlg,
                 false,
                 op,
                 ": ",
                 batch_element(info, i, 0),
                 "The diagonal element ",
                 info.const_data<int>()[i],
                 " is zero, the inversion could not be completed because the "
                 "input matrix is singular.");
}

Tensor solution(std::string_view op,
                const Tensor& a,
                const Tensor& b,
                bool left,
                Tensor& info) {
  check_square(op, a);
  TAEDA_CHECK(a.dtype() == b.dtype(),
              op,
              ": Expected A and B to have the same dtype, but found A of type ",
              a.dtype(),
              " and B of type ",
              b.dtype(),
              " instead");
  IntArrayRef rows = a.sizes().slice(0, static_cast<size_t>(a.dim() - 1));
  bool vector = b.dim() == 1 || (b.dim() == a.dim() - 1 && b.sizes() == rows);
  TAEDA_CHECK(left || !vector,
              op,
              ": Vector broadcasting of the left hand side is not supported "
              "for left=False. In this case linalg.solve is equivalent to B / "
              "A.squeeze(-1)");
  TAEDA_CHECK(b.dim() >= 1, op, ": B must have at least 1 dimension");
  Tensor right = vector ? ops::unsqueeze(b, -1) : b;
  if (!left) right = ops::transpose(right, -2, -1);
  TAEDA_CHECK(right.size(-2) == a.size(-1),
              op,
              ": Incompatible shapes of A and B for the equation ",
              left ? "AX = B" : "XA = B",
              " (",
              a.sizes(),
              " and ",
              b.sizes(),
              ")");
  DimVector batch =
      broadcast_shapes<int64_t>(op, batch_sizes(a), batch_sizes(right));
  Tensor matrix = left ? a : ops::transpose(a, -2, -1);
  matrix = expanded(matrix, batch);
  info = new_infos(op, matrix);
  Tensor x = solved(op, matrix, expanded(right, batch), info);
  if (vector) return ops::squeeze(x, -1);
  return left ? x : ops::transpose(x, -2, -1);
}

}  // namespace

Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  Tensor info;
  Tensor x = solution("linalg.solve", a, b, left, info);
  check_solved("linalg.solve", info);
  return x;
}

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& a,
                                           const Tensor& b,
                                           bool left,
                                           bool check_errors) {
  Tensor info;
  Tensor x = solution("linalg.solve_ex", a, b, left, info);
  if (check_errors) check_solved("linalg.solve_ex", info);
  return {x, info};
}

std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& a, bool check_errors) {
  constexpr std::string_view op = "linalg.inv_ex";
  check_square(op, a);
  Tensor info = new_infos(op, a);
  Tensor x = solved(op, a, Tensor(), info);
  if (check_errors) check_inverted(op, info);
  return {x, info};
}

Tensor linalg_inv(const Tensor& a) {
  constexpr std::string_view op = "linalg.inv";
  check_square(op, a);
  Tensor info = new_infos(op, a);
  Tensor x = solved(op, a, Tensor(), info);
  check_inverted(op, info);
  return x;
}

}  // namespace taeda::native
