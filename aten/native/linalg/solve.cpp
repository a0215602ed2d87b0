// Systems of linear equations by LU decomposition.
#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/aten/native/linalg/report.h>
#include <taeda/gen/native/linalg_inv.h>
#include <taeda/gen/native/linalg_inv_ex.h>
#include <taeda/gen/native/linalg_solve.h>
#include <taeda/gen/native/linalg_solve_ex.h>
#include <taeda/gen/ops/expand.h>
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

// X, column-major, with A X = B; all have the same batch, A is square, B
// undefined for the identity. `info` gets LAPACK's report on each matrix.
void solve_into(const Tensor& a,
                const Tensor& b,
                const Tensor& x,
                const Tensor& info) {
  fill_with(info, Scalar(0));
  if (a.numel() == 0) return;
  Tensor from = readable(a), right = b.defined() ? readable(b) : b;
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    auto reader = right.defined() ? MatrixReader<T>(right) : MatrixReader<T>();
    solve_all<T>(from, reader, x, info);
  });
}

template <class T>
bool is_vector(const T& a, const T& b) {
  auto rows = a.sizes().slice(0, static_cast<size_t>(a.dim() - 1));
  return b.dim() == 1 || (b.dim() == a.dim() - 1 && b.sizes() == rows);
}

// Plans X as result 0: column-major, or the transpose of what is where A stands
// at the right. Gives the batch.
template <class I>
Dims<I> plan_solution(std::string_view op,
                      const Spec<I>& a,
                      const Spec<I>& b,
                      bool left,
                      Plan<I>& plan) {
  check_square(op, a);
  TAEDA_CHECK(a.dtype() == b.dtype(),
              op,
              ": Expected A and B to have the same dtype, but found A of type ",
              a.dtype(),
              " and B of type ",
              b.dtype(),
              " instead");
  bool vector = is_vector(a, b);
  TAEDA_CHECK(left || !vector,
              op,
              ": Vector broadcasting of the left hand side is not supported "
              "for left=False. In this case linalg.solve is equivalent to B / "
              "A.squeeze(-1)");
  TAEDA_CHECK(b.dim() >= 1, op, ": B must have at least 1 dimension");
  TAEDA_CHECK(b.size(vector || !left ? -1 : -2) == a.size(-1),
              op,
              ": Incompatible shapes of A and B for the equation ",
              left ? "AX = B" : "XA = B",
              " (",
              a.sizes(),
              " and ",
              b.sizes(),
              ")");
  size_t own = static_cast<size_t>(vector ? 1 : 2);
  Dims<I> batch = broadcast_shapes<I>(
      op, batch_sizes(a), b.sizes().slice(0, b.sizes().size() - own));
  Dims<I> sizes(batch);
  for (size_t d = b.sizes().size() - own; d < b.sizes().size(); ++d) {
    sizes.push_back(b.sizes()[d]);
  }
  // Of a batch of vectors too the last two dims are laid out as a matrix.
  if (!left || sizes.size() < 2) {
    plan.set(0, sizes, a.dtype());
  } else {
    size_t outer = sizes.size() - 2;
    plan_matrices<I>(plan,
                     0,
                     ArrayRef<I>(sizes).slice(0, outer),
                     sizes[outer],
                     sizes[outer + 1],
                     a.dtype());
  }
  return batch;
}

void solve_system(const Tensor& a,
                  const Tensor& b,
                  bool left,
                  const Tensor& x,
                  const Tensor& info) {
  bool vector = is_vector(a, b);
  if (vector && !x.is_contiguous()) {
    Tensor rows = make_tensor("linalg.solve", x.sizes(), x.dtype(), x.device());
    solve_system(a, b, left, rows, info);
    copy_into(x, rows);
    return;
  }
  auto columns = [&](const Tensor& t) {
    Tensor matrix = vector ? ops::unsqueeze(t, -1) : t;
    return left ? matrix : ops::transpose(matrix, -2, -1);
  };
  Tensor result = columns(x);
  IntArrayRef batch = batch_sizes(result);
  Tensor matrix = left ? a : ops::transpose(a, -2, -1);
  solve_into(
      expanded(matrix, batch), expanded(columns(b), batch), result, info);
}

}  // namespace

// Where a matrix is singular.
void check_solved(std::string_view op, const Tensor& given) {
  Tensor info = report_of(given);
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
  Tensor info = report_of(given);
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

template <class I>
void linalg_solve_shape(const Spec<I>& a,
                        const Spec<I>& b,
                        bool left,
                        Plan<I>& plan) {
  plan_solution("linalg.solve", a, b, left, plan);
}
TAEDA_SHAPE(linalg_solve_shape);

void linalg_solve_cpu(const Tensor& a,
                      const Tensor& b,
                      bool left,
                      const Tensor& x) {
  size_t own = is_vector(a, b) ? 1 : 2;
  IntArrayRef batch = x.sizes().slice(0, x.sizes().size() - own);
  Tensor info = make_tensor("linalg.solve", batch, kInt, a.device());
  solve_system(a, b, left, x, info);
  check_solved("linalg.solve", info);
}

template <class I>
void linalg_solve_ex_shape(
    const Spec<I>& a, const Spec<I>& b, bool left, bool, Plan<I>& plan) {
  plan.set(1, plan_solution("linalg.solve_ex", a, b, left, plan), kInt);
}
TAEDA_SHAPE(linalg_solve_ex_shape);

void linalg_solve_ex_cpu(const Tensor& a,
                         const Tensor& b,
                         bool left,
                         bool check_errors,
                         const Tensor& x,
                         const Tensor& info) {
  solve_system(a, b, left, x, info);
  if (check_errors) check_solved("linalg.solve_ex", info);
}

template <class I>
void linalg_inv_ex_shape(const Spec<I>& a, bool, Plan<I>& plan) {
  check_square("linalg.inv_ex", a);
  plan_matrices(plan, 0, batch_sizes(a), a.size(-1), a.size(-1), a.dtype());
  plan.set(1, batch_sizes(a), kInt);
}
TAEDA_SHAPE(linalg_inv_ex_shape);

void linalg_inv_ex_cpu(const Tensor& a,
                       bool check_errors,
                       const Tensor& x,
                       const Tensor& info) {
  solve_into(a, Tensor(), x, info);
  if (check_errors) check_inverted("linalg.inv_ex", info);
}

template <class I>
void linalg_inv_shape(const Spec<I>& a, Plan<I>& plan) {
  check_square("linalg.inv", a);
  plan_matrices(plan, 0, batch_sizes(a), a.size(-1), a.size(-1), a.dtype());
}
TAEDA_SHAPE(linalg_inv_shape);

void linalg_inv_cpu(const Tensor& a, const Tensor& x) {
  Tensor info = make_tensor("linalg.inv", batch_sizes(a), kInt, a.device());
  solve_into(a, Tensor(), x, info);
  check_inverted("linalg.inv", info);
}

}  // namespace taeda::native
