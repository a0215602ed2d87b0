// Cholesky factors and triangular systems.
#include <taeda/aten/core/level.h>
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/aten/native/linalg/report.h>
#include <taeda/gen/native/cholesky_inverse.h>
#include <taeda/gen/native/cholesky_solve.h>
#include <taeda/gen/native/linalg_cholesky.h>
#include <taeda/gen/native/linalg_cholesky_ex.h>
#include <taeda/gen/native/linalg_solve_triangular.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/argmax.h>
#include <taeda/gen/ops/cholesky_solve.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/linalg_cholesky_ex.h>
#include <taeda/gen/ops/linalg_solve_triangular.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/transpose.h>

#include <functional>

namespace taeda::native {

using blas::Int;
using blas::lapack;

void check_definite(std::string_view op, const Tensor& given) {
  Tensor info = report_of(given);
  int64_t i = first_failure(info);
  if (i < 0) return;
  TAEDA_CHECK_AS(LinAlg,
                 false,
                 op,
                 ": ",
                 batch_element(info, i, 0),
                 "The factorization could not be completed because the input "
                 "is not positive-definite (the leading minor of order ",
                 info.const_data<int>()[i],
                 " is not positive-definite).");
}

namespace {

Tensor adjoint(const Tensor& t) {
  Tensor flipped = ops::transpose(t, -2, -1);
  return t.is_complex() ? ops::conj(flipped) : flipped;
}

// Which leading minor has a NaN as its last pivot, counted from 1; 0 if none.
// A NaN is no number that LAPACK reports.
template <class T>
int first_nan_pivot(const T* factor, Int n) {
  for (Int k = 0; k < n; ++k) {
    const T& pivot = factor[int64_t{k} * n + k];
    if (pivot != pivot) return static_cast<int>(k) + 1;
  }
  return 0;
}

// L of each matrix in `l`, or its adjoint, which is read and written where
// `upper`.
template <class T>
void factor_all(const Tensor& a,
                const Tensor& l,
                const Tensor& info,
                bool upper) {
  Int n = rows_of(a), lda = leading(n);
  int64_t count = batch_count(a), each = int64_t{n} * n;
  MatrixReader<T> reader(a);
  auto one = [&](int64_t i) {
    T* matrix = item<T>(l, i, each);
    reader.copy(i, matrix, n, n);
    int* report = item<int>(info, i, 1);
    lapack<T>().potrf(upper ? "U" : "L", &n, matrix, &lda, report, 1);
    if (*report == 0) *report = first_nan_pivot(matrix, n);
    for (Int c = 0; c < n; ++c) {
      T* column = matrix + int64_t{c} * n;
      std::fill(upper ? column + c + 1 : column,
                upper ? column + n : column + c,
                T(0));
    }
  };
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSystems).of<T>();
  if (!in_lanes(count, n, n, kernels.lanes)) {
    return each_matrix(count, n, n, one);
  }
  SmallBatch<T> job;
  job.count = count;
  job.rows = job.columns = n;
  job.first = column_major_results<T>(l);
  if (upper) {
    std::swap(job.first.row, job.first.column);
    job.first.conj = true;
  }
  job.report = info.mutable_data<int>();
  run_in_lanes<T>(
      kernels.cholesky, job, upper ? reader.adjoint() : reader, {}, 0, 0, one);
}

}  // namespace

template <class I>
void linalg_cholesky_ex_shape(const Spec<I>& a, bool, bool, Plan<I>& plan) {
  check_square("linalg.cholesky", a);
  plan_matrices(plan, 0, batch_sizes(a), a.size(-1), a.size(-1), a.dtype());
  plan.set(1, batch_sizes(a), kInt);
}
TAEDA_SHAPE(linalg_cholesky_ex_shape);

void linalg_cholesky_ex_cpu(const Tensor& a,
                            bool upper,
                            bool check_errors,
                            const Tensor& l,
                            const Tensor& info) {
  fill_with(info, Scalar(0));
  if (l.numel() > 0) {
    Tensor from = readable(a);
    visit_lapack(a.dtype(), [&](auto t) {
      factor_all<decltype(t)>(from, l, info, upper);
    });
  }
  if (check_errors) check_definite("linalg.cholesky_ex", info);
}

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  auto [l, info] = ops::linalg_cholesky_ex(self, upper, /*check_errors=*/false);
  check_definite("linalg.cholesky", info);
  return l;
}

namespace {

Tensor spread(const Tensor& t, IntArrayRef batch) {
  DimVector sizes(batch);
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return t.sizes() == IntArrayRef(sizes) ? t : ops::expand(t, sizes, false);
}

struct Triangle {
  bool upper, left, unit;
};

// The system as lanes take it, L X = B: from the right it is the transposed
// one, and an upper triangle is a lower one upside down.
template <class T>
void solve_in_lanes(SmallKernel<T> kernel,
                    MatrixReader<T> a,
                    MatrixReader<T> b,
                    const Tensor& x,
                    Triangle kind,
                    const std::function<void(int64_t)>& one) {
  SmallBatch<T> job;
  job.count = batch_count(x);
  job.first = column_major_results<T>(x);
  job.unit = kind.unit;
  if (!kind.left) {
    a = a.transposed();
    b = b.transposed();
    std::swap(job.first.row, job.first.column);
    kind.upper = !kind.upper;
  }
  if (kind.upper) {
    a = a.upside_down(/*columns_too=*/true);
    b = b.upside_down(/*columns_too=*/false);
    job.first.data += (b.rows() - 1) * job.first.row;
    job.first.row = -job.first.row;
  }
  job.rows = job.columns = static_cast<int>(b.rows());
  job.right = static_cast<int>(b.columns());
  run_in_lanes<T>(kernel, job, a, b, 0, 0, one);
}

template <class T>
void solve_triangles(const Tensor& a,
                     const Tensor& b,
                     const Tensor& x,
                     Triangle kind) {
  MatrixReader<T> matrices(a), sides(b);
  Int n = rows_of(a), lda = leading(n);
  Int rows = rows_of(x), columns = columns_of(x), ldx = leading(rows);
  auto one = [&](int64_t i) {
    std::vector<T> matrix(static_cast<size_t>(n) * static_cast<size_t>(n));
    T* result = item<T>(x, i, int64_t{rows} * columns);
    matrices.copy(i, matrix.data(), n, n);
    sides.copy(i, result, rows, columns);
    const T factor(1);
    lapack<T>().trsm(kind.left ? "L" : "R",
                     kind.upper ? "U" : "L",
                     "N",
                     kind.unit ? "U" : "N",
                     &rows,
                     &columns,
                     &factor,
                     matrix.data(),
                     &lda,
                     result,
                     &ldx,
                     1,
                     1,
                     1,
                     1);
  };
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSystems).of<T>();
  int64_t count = batch_count(x), most = std::max(rows, columns);
  if (in_lanes(count, n, most, kernels.lanes)) {
    solve_in_lanes<T>(kernels.triangular, matrices, sides, x, kind, one);
  } else {
    each_matrix(count, n, most, one);
  }
}

}  // namespace

template <class I>
void linalg_solve_triangular_shape(
    const Spec<I>& a, const Spec<I>& b, bool, bool left, bool, Plan<I>& plan) {
  constexpr std::string_view op = "linalg.solve_triangular";
  check_square(op, a);
  check_matrices(op, b);
  TAEDA_CHECK(a.dtype() == b.dtype(),
              op,
              ": Expected A and B to have the same dtype, but found A of type ",
              a.dtype(),
              " and B of type ",
              b.dtype(),
              " instead");
  TAEDA_CHECK(b.size(left ? -2 : -1) == a.size(-1),
              op,
              ": Incompatible shapes of A and B for the equation ",
              left ? "AX = B" : "XA = B",
              " (",
              a.size(-2),
              "x",
              a.size(-1),
              " and ",
              b.size(-2),
              "x",
              b.size(-1),
              ")");
  Dims<I> batch = broadcast_shapes<I>(op, batch_sizes(a), batch_sizes(b));
  plan_matrices<I>(plan, 0, batch, b.size(-2), b.size(-1), b.dtype());
}
TAEDA_SHAPE(linalg_solve_triangular_shape);

void linalg_solve_triangular_cpu(const Tensor& a,
                                 const Tensor& b,
                                 bool upper,
                                 bool left,
                                 bool unitriangular,
                                 const Tensor& x) {
  if (x.numel() == 0) return;
  Tensor matrix = readable(spread(a, batch_sizes(x)));
  Tensor from = readable(spread(b, batch_sizes(x)));
  visit_lapack(a.dtype(), [&](auto t) {
    solve_triangles<decltype(t)>(matrix, from, x, {upper, left, unitriangular});
  });
}

Tensor cholesky_solve(const Tensor& b, const Tensor& factor, bool upper) {
  TAEDA_CHECK(b.dim() >= 2,
              "b should have at least 2 dimensions, but has ",
              b.dim(),
              " dimensions instead");
  TAEDA_CHECK(factor.dim() >= 2,
              "u should have at least 2 dimensions, but has ",
              factor.dim(),
              " dimensions instead");
  Tensor l = upper ? adjoint(factor) : factor;
  Tensor y = ops::linalg_solve_triangular(l, b, /*upper=*/false);
  return ops::linalg_solve_triangular(adjoint(l), y, /*upper=*/true);
}

namespace {

// Where the first zero of each diagonal stands, counted from 1; 0 if none.
Tensor first_zeros(const Tensor& factor) {
  Tensor zero = ops::eq(ops::diagonal(factor, 0, -2, -1), Scalar(0));
  Tensor place = ops::argmax(ops::to(zero, kInt), -1);
  Tensor there = ops::any(zero, int64_t{-1});
  return ops::to(ops::mul(ops::add(place, Scalar(1)), there), kInt);
}

}  // namespace

Tensor cholesky_inverse(const Tensor& factor, bool upper) {
  TAEDA_CHECK(factor.dim() >= 2,
              "cholesky_inverse: The input tensor A must have at least 2 "
              "dimensions, got ",
              factor.dim());
  int64_t n = factor.size(-1);
  TAEDA_CHECK(n == factor.size(-2),
              "cholesky_inverse: A must be batches of square matrices, but "
              "they are ",
              factor.size(-2),
              " by ",
              n,
              " matrices");
  if (n > 0) check_inverted("cholesky_inverse", first_zeros(factor));
  Tensor one =
      ops::eye(n, factor.dtype(), std::nullopt, factor.device(), std::nullopt);
  return ops::cholesky_solve(
      ops::expand(one, factor.sizes(), /*implicit=*/false), factor, upper);
}

}  // namespace taeda::native
