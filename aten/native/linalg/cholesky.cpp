// Cholesky factors and triangular systems.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/gen/native/cholesky_solve.h>
#include <taeda/gen/native/linalg_cholesky.h>
#include <taeda/gen/native/linalg_cholesky_ex.h>
#include <taeda/gen/native/linalg_solve_triangular.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/linalg_cholesky_ex.h>
#include <taeda/gen/ops/linalg_solve_triangular.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/tril.h>

namespace taeda::native {

using blas::Int;
using blas::lapack;

namespace {

void check_definite(const Tensor& info) {
  int64_t i = first_failure(info);
  if (i < 0) return;
  int order = info.const_data<int>()[i];
  std::string batch =
      info.dim() == 0 ? "" : "(Batch element " + std::to_string(i) + "): ";
  TAEDA_CHECK_AS(LinAlg,
                 false,
                 "linalg.cholesky: ",
                 batch,
                 "The factorization could not be completed because the input "
                 "is not positive-definite (the leading minor of order ",
                 order,
                 " is not positive-definite).");
}

Tensor adjoint(const Tensor& t) {
  Tensor flipped = ops::transpose(t, -2, -1);
  return t.is_complex() ? ops::conj(flipped) : flipped;
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_cholesky_ex(const Tensor& a,
                                              bool upper,
                                              bool check_errors) {
  constexpr std::string_view op = "linalg.cholesky";
  check_square(op, a);
  Tensor info = new_infos(op, a);
  // The lower factor's conjugate transpose is the upper one.
  Tensor l = column_major(op, ops::tril(upper ? adjoint(a) : a));
  Int n = rows_of(a), lda = leading(n);
  if (l.numel() > 0) {
    visit_lapack(a.dtype(), [&](auto t) {
      using T = decltype(t);
      for (int64_t i = 0, all = batch_count(a); i < all; ++i) {
        T* matrix = item<T>(l, i, int64_t{n} * n);
        lapack<T>().potrf("L", &n, matrix, &lda, item<int>(info, i, 1), 1);
      }
    });
  }
  if (check_errors) check_definite(info);
  return {upper ? adjoint(l) : l, info};
}

Tensor linalg_cholesky(const Tensor& self, bool upper) {
  auto [l, info] = ops::linalg_cholesky_ex(self, upper, /*check_errors=*/false);
  check_definite(info);
  return l;
}

namespace {

Tensor spread(const Tensor& t, IntArrayRef batch) {
  DimVector sizes(batch);
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return t.sizes() == IntArrayRef(sizes) ? t : ops::expand(t, sizes, false);
}

}  // namespace

Tensor linalg_solve_triangular(const Tensor& a,
                               const Tensor& b,
                               bool upper,
                               bool left,
                               bool unitriangular) {
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
  DimVector batch =
      broadcast_shapes<int64_t>(op, batch_sizes(a), batch_sizes(b));
  Tensor matrix = column_major(op, spread(a, batch));
  Tensor x = column_major(op, spread(b, batch));
  Int n = rows_of(matrix), lda = leading(n);
  Int rows = rows_of(x), columns = columns_of(x), ldx = leading(rows);
  if (x.numel() == 0) return x;
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    const T one(1);
    for (int64_t i = 0, all = batch_count(x); i < all; ++i) {
      lapack<T>().trsm(left ? "L" : "R",
                       upper ? "U" : "L",
                       "N",
                       unitriangular ? "U" : "N",
                       &rows,
                       &columns,
                       &one,
                       item<T>(matrix, i, int64_t{n} * n),
                       &lda,
                       item<T>(x, i, int64_t{rows} * columns),
                       &ldx,
                       1,
                       1,
                       1,
                       1);
    }
  });
  return x;
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

}  // namespace taeda::native
