// Systems of linear equations by LU decomposition.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/gen/native/linalg_inv.h>
#include <taeda/gen/native/linalg_inv_ex.h>
#include <taeda/gen/native/linalg_solve.h>
#include <taeda/gen/native/linalg_solve_ex.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::native {

using blas::Int;
using blas::lapack;

namespace {

// X with A X = B; both have the same batch, A is square. With `infos` a
// singular matrix is reported there (its X is B), else it is an error.
Tensor solved(std::string_view op,
              const Tensor& a,
              const Tensor& b,
              int* infos = nullptr) {
  Tensor lu = column_major(op, a), x = column_major(op, b);
  Int n = rows_of(a), columns = columns_of(b), lda = leading(n);
  if (n == 0 || lu.numel() == 0) return x;
  std::vector<Int> pivots(static_cast<size_t>(n));
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    for (int64_t i = 0, all = batch_count(a); i < all; ++i) {
      T* matrix = item<T>(lu, i, int64_t{n} * n);
      Int info = 0;
      lapack<T>().getrf(&n, &n, matrix, &lda, pivots.data(), &info);
      if (infos != nullptr) infos[i] = info;
      if (infos != nullptr && info > 0) continue;
      TAEDA_CHECK_AS(LinAlg,
                     info <= 0,
                     op,
                     ": The solver failed because the input matrix is singular "
                     "(matrix ",
                     i,
                     " of the batch, diagonal element ",
                     info,
                     " of U is zero).");
      if (columns == 0) continue;
      lapack<T>().getrs("N",
                        &n,
                        &columns,
                        matrix,
                        &lda,
                        pivots.data(),
                        item<T>(x, i, int64_t{n} * columns),
                        &lda,
                        &info,
                        1);
    }
  });
  return x;
}

Tensor expanded(const Tensor& t, IntArrayRef batch) {
  DimVector sizes(batch);
  sizes.push_back(t.size(-2));
  sizes.push_back(t.size(-1));
  return t.sizes() == IntArrayRef(sizes) ? t : ops::expand(t, sizes, false);
}

Tensor solution(std::string_view op,
                const Tensor& a,
                const Tensor& b,
                bool left,
                Tensor* info) {
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
  if (info != nullptr) *info = new_infos(op, matrix);
  int* infos = info == nullptr ? nullptr : info->mutable_data<int>();
  Tensor x = solved(op, matrix, expanded(right, batch), infos);
  if (vector) return ops::squeeze(x, -1);
  return left ? x : ops::transpose(x, -2, -1);
}

}  // namespace

Tensor linalg_solve(const Tensor& a, const Tensor& b, bool left) {
  return solution("linalg.solve", a, b, left, nullptr);
}

std::tuple<Tensor, Tensor> linalg_solve_ex(const Tensor& a,
                                           const Tensor& b,
                                           bool left,
                                           bool check_errors) {
  Tensor info;
  Tensor* report = check_errors ? nullptr : &info;
  Tensor x = solution("linalg.solve_ex", a, b, left, report);
  if (check_errors) info = new_infos("linalg.solve_ex", a);
  return {x, info};
}

std::tuple<Tensor, Tensor> linalg_inv_ex(const Tensor& a, bool check_errors) {
  constexpr std::string_view op = "linalg.inv_ex";
  check_square(op, a);
  Tensor one =
      ops::eye(a.size(-1), a.dtype(), std::nullopt, a.device(), std::nullopt);
  Tensor info = new_infos(op, a);
  int* infos = check_errors ? nullptr : info.mutable_data<int>();
  return {solved(op, a, expanded(one, batch_sizes(a)), infos), info};
}

Tensor linalg_inv(const Tensor& a) {
  check_square("linalg.inv", a);
  Tensor one =
      ops::eye(a.size(-1), a.dtype(), std::nullopt, a.device(), std::nullopt);
  return solved("linalg.inv", a, expanded(one, batch_sizes(a)));
}

}  // namespace taeda::native
