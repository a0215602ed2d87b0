// LU decompositions, determinants, and what they solve.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/gen/native/linalg_det.h>
#include <taeda/gen/native/linalg_lu_factor.h>
#include <taeda/gen/native/linalg_lu_factor_ex.h>
#include <taeda/gen/native/linalg_lu_solve.h>
#include <taeda/gen/native/linalg_slogdet.h>
#include <taeda/gen/native/lu_unpack.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/linalg_lu_factor_ex.h>
#include <taeda/gen/ops/linalg_lu_solve.h>
#include <taeda/gen/ops/linalg_solve_triangular.h>
#include <taeda/gen/ops/lu_unpack.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/tril.h>
#include <taeda/gen/ops/triu.h>

#include <algorithm>
#include <cmath>

namespace taeda::native {

using blas::Int;
using blas::lapack;
using blas::real_t;

namespace {

void check_no_zero(const Tensor& info) {
  int64_t i = first_failure(info);
  if (i < 0) return;
  int order = info.const_data<int>()[i];
  std::string batch =
      info.dim() == 0 ? "" : "(Batch element " + std::to_string(i) + "): ";
  TAEDA_CHECK(false,
              "linalg.lu_factor: ",
              batch,
              "U[",
              order,
              ",",
              order,
              "] is zero and using it on lu_solve would result in a "
              "division by zero. If you still want to perform the "
              "factorization, consider calling linalg.lu(A, pivot) or "
              "linalg.lu_factor_ex(A, pivot)");
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> linalg_lu_factor_ex(const Tensor& a,
                                                       bool pivot,
                                                       bool check_errors) {
  constexpr std::string_view op = "linalg.lu_factor_ex";
  check_matrices(op, a);
  TAEDA_CHECK(pivot,
              "linalg.lu_factor: LU without pivoting is not implemented on the "
              "CPU");
  Tensor lu = column_major(op, a), info = new_infos(op, a);
  Int m = rows_of(a), n = columns_of(a), k = std::min(m, n), lda = leading(m);
  DimVector sizes(batch_sizes(a));
  sizes.push_back(k);
  Tensor pivots = make_tensor(op, sizes, kInt, a.device());
  if (lu.numel() > 0) {
    visit_lapack(a.dtype(), [&](auto t) {
      using T = decltype(t);
      for (int64_t i = 0, all = batch_count(a); i < all; ++i) {
        lapack<T>().getrf(&m,
                          &n,
                          item<T>(lu, i, int64_t{m} * n),
                          &lda,
                          item<int>(pivots, i, k),
                          item<int>(info, i, 1));
      }
    });
  }
  if (check_errors) check_no_zero(info);
  return {lu, pivots, info};
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& a, bool pivot) {
  auto [lu, pivots, info] =
      ops::linalg_lu_factor_ex(a, pivot, /*check_errors=*/false);
  check_no_zero(info);
  return {lu, pivots};
}

namespace {

// P with A = P L U: the rows of the identity exchanged, the last pivot first.
Tensor permutation(const Tensor& lu, const Tensor& pivots) {
  int64_t m = lu.size(-2), k = pivots.size(-1);
  Tensor p = new_matrices("lu_unpack", batch_sizes(lu), m, m, lu);
  fill_with(p, Scalar(0));
  Tensor plain = make_tensor("lu_unpack", pivots.sizes(), kInt);
  copy_into(plain, pivots);
  visit_lapack(lu.dtype(), [&](auto t) {
    using T = decltype(t);
    std::vector<int64_t> order(static_cast<size_t>(m));
    for (int64_t b = 0, all = batch_count(lu); b < all; ++b) {
      for (int64_t i = 0; i < m; ++i) order[i] = i;
      const int* swaps = item<int>(plain, b, k);
      for (int64_t i = 0; i < k; ++i) {
        TAEDA_CHECK(swaps[i] >= 1 && swaps[i] <= m,
                    "pivots passed to lu_unpack must be between 1 and "
                    "LU.size(-2) inclusive.");
        std::swap(order[i], order[swaps[i] - 1]);
      }
      T* matrix = item<T>(p, b, m * m);
      for (int64_t i = 0; i < m; ++i) matrix[order[i] + i * m] = T(1);
    }
  });
  return p;
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> lu_unpack(const Tensor& lu,
                                             const Tensor& pivots,
                                             bool unpack_data,
                                             bool unpack_pivots) {
  check_matrices("lu_unpack", lu);
  TAEDA_CHECK(
      !unpack_pivots || pivots.dtype() == kInt,
      "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor "
      "of torch.int32 dtype.\nNote: this function is intended to be "
      "used with the output produced by torch.linalg.lu_factor");
  int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  Tensor none = make_tensor("lu_unpack", {0}, lu.dtype(), lu.device());
  Tensor p = unpack_pivots ? permutation(lu, pivots) : none;
  if (!unpack_data) return {p, none, none};
  Tensor one = ops::eye(m, k, lu.dtype());
  Tensor below = ops::tril(ops::narrow(lu, -1, 0, k), -1);
  return {p,
          ops::add(below, one, Scalar(1)),
          ops::triu(ops::narrow(lu, -2, 0, k), 0)};
}

// P L U X = B; the adjoint and X A = B lead to the same triangles.
Tensor linalg_lu_solve(const Tensor& lu,
                       const Tensor& pivots,
                       const Tensor& b,
                       bool left,
                       bool adjoint) {
  check_square("linalg.lu_solve", lu);
  auto flip = [](const Tensor& t) {
    Tensor turned = ops::transpose(t, -2, -1);
    return t.is_complex() ? ops::conj(turned) : turned;
  };
  if (!left) {
    return flip(ops::linalg_lu_solve(lu, pivots, flip(b), true, !adjoint));
  }
  auto [p, l, u] = ops::lu_unpack(lu, pivots, true, true);
  if (!adjoint) {
    Tensor y = ops::matmul(ops::transpose(p, -2, -1), b);
    y = ops::linalg_solve_triangular(l, y, false, true, /*unitriangular=*/true);
    return ops::linalg_solve_triangular(u, y, /*upper=*/true);
  }
  Tensor y = ops::linalg_solve_triangular(flip(u), b, /*upper=*/false);
  y = ops::linalg_solve_triangular(flip(l), y, true, true, true);
  return ops::matmul(p, y);
}

namespace {

template <typename T>
real_t<T> magnitude(T x) {
  if constexpr (std::is_same_v<T, real_t<T>>) {
    return std::abs(x);
  } else {
    return std::hypot(x.real(), x.imag());
  }
}

// Calls f(i, factors of det: diagonal of U, their count, whether rows were
// exchanged an odd number of times) for each matrix.
template <typename F>
void each_diagonal(const Tensor& a, F&& f) {
  auto [lu, pivots, info] = linalg_lu_factor_ex(a, true, false);
  int64_t n = a.size(-1);
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    std::vector<T> diagonal(static_cast<size_t>(n));
    for (int64_t b = 0, all = batch_count(a); b < all; ++b) {
      const T* matrix = item<T>(lu, b, n * n);
      const int* swaps = item<int>(pivots, b, n);
      bool odd = false;
      for (int64_t i = 0; i < n; ++i) {
        diagonal[static_cast<size_t>(i)] = matrix[i * n + i];
        odd = odd != (swaps[i] != i + 1);
      }
      f(b, diagonal, odd);
    }
  });
}

}  // namespace

Tensor linalg_det(const Tensor& a) {
  check_square("linalg.det", a);
  Tensor out = make_tensor("linalg.det", batch_sizes(a), a.dtype(), a.device());
  each_diagonal(a, [&](int64_t b, const auto& diagonal, bool odd) {
    using T = typename std::decay_t<decltype(diagonal)>::value_type;
    T product = odd ? T(-1) : T(1);
    for (const T& factor : diagonal) product = product * factor;
    *item<T>(out, b, 1) = product;
  });
  return out;
}

std::tuple<Tensor, Tensor> linalg_slogdet(const Tensor& a) {
  check_square("linalg.slogdet", a);
  Tensor sign =
      make_tensor("linalg.slogdet", batch_sizes(a), a.dtype(), a.device());
  Tensor logs = make_tensor(
      "linalg.slogdet", batch_sizes(a), real_type_of(a.dtype()), a.device());
  each_diagonal(a, [&](int64_t b, const auto& diagonal, bool odd) {
    using T = typename std::decay_t<decltype(diagonal)>::value_type;
    using R = real_t<T>;
    T product = odd ? T(-1) : T(1);
    R sum = 0;
    for (const T& factor : diagonal) {
      R size = magnitude(factor);
      product = product * (size == 0 ? T(0) : factor / T(size));
      sum += std::log(size);
    }
    *item<T>(sign, b, 1) = product;
    *item<R>(logs, b, 1) = sum;
  });
  return {sign, logs};
}

}  // namespace taeda::native
