// LU decompositions, determinants, and what they solve.
#include <taeda/aten/core/level.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/aten/native/linalg/report.h>
#include <taeda/gen/native/_lu_with_info.h>
#include <taeda/gen/native/linalg_det.h>
#include <taeda/gen/native/linalg_lu_factor.h>
#include <taeda/gen/native/linalg_lu_factor_ex.h>
#include <taeda/gen/native/linalg_lu_solve.h>
#include <taeda/gen/native/linalg_slogdet.h>
#include <taeda/gen/native/lu_unpack.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/diagonal.h>
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

void check_no_zero(std::string_view op, const Tensor& given) {
  Tensor info = report_of(given);
  int64_t i = first_failure(info);
  if (i < 0) return;
  int order = info.const_data<int>()[i];
  TAEDA_CHECK(false,
              "torch.",
              op,
              ": ",
              batch_element(info, i, 0),
              "U[",
              order,
              ",",
              order,
              "] is zero and using it on lu_solve would result in a "
              "division by zero. If you still want to perform the "
              "factorization, consider calling linalg.lu(A, pivot) or "
              "linalg.lu_factor_ex(A, pivot)");
}

namespace {

// Column-major matrices m x n become L and U.
template <class T>
void factor_one(T* matrix, Int m, Int n, int* pivots, int* info) {
  Int lda = leading(m);
  lapack<T>().getrf(&m, &n, matrix, &lda, pivots, info);
}

template <class T>
void factor_all(const Tensor& a,
                const Tensor& lu,
                const Tensor& pivots,
                const Tensor& info) {
  Int m = rows_of(a), n = columns_of(a), k = std::min(m, n);
  int64_t count = batch_count(a);
  auto one = [&](int64_t i) {
    factor_one(item<T>(lu, i, int64_t{m} * n),
               m,
               n,
               item<int>(pivots, i, k),
               item<int>(info, i, 1));
  };
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSystems).of<T>();
  if (!in_lanes(count, m, n, kernels.lanes)) {
    copy_into(lu, a);
    return each_matrix(count, m, n, one);
  }
  MatrixReader<T> reader(a);
  SmallBatch<T> job;
  job.count = count;
  job.rows = m;
  job.columns = n;
  job.first = column_major_results<T>(lu);
  job.pivots = pivots.mutable_data<int>();
  job.report = info.mutable_data<int>();
  run_in_lanes<T>(kernels.lu, job, reader, {}, 0, k, [&](int64_t i) {
    reader.copy(i, item<T>(lu, i, int64_t{m} * n), m, n);
    one(i);
  });
}

}  // namespace

template <class I>
void linalg_lu_factor_ex_shape(const Spec<I>& a,
                               bool pivot,
                               bool,
                               Plan<I>& plan) {
  check_matrices("linalg.lu_factor_ex", a);
  TAEDA_CHECK(pivot,
              "linalg.lu_factor: LU without pivoting is not implemented on the "
              "CPU");
  I m = a.size(-2), n = a.size(-1);
  plan_matrices(plan, 0, batch_sizes(a), m, n, a.dtype());
  plan.set(1, vectors_of(a, std::min(m, n)), kInt);
  plan.set(2, batch_sizes(a), kInt);
}
TAEDA_SHAPE(linalg_lu_factor_ex_shape);

void linalg_lu_factor_ex_cpu(const Tensor& a,
                             bool,
                             bool check_errors,
                             const Tensor& lu,
                             const Tensor& pivots,
                             const Tensor& info) {
  fill_with(info, Scalar(0));
  if (lu.numel() > 0) {
    Tensor from = readable(a);
    visit_lapack(a.dtype(), [&](auto t) {
      factor_all<decltype(t)>(from, lu, pivots, info);
    });
  }
  if (check_errors) check_no_zero("linalg.lu_factor_ex", info);
}

std::tuple<Tensor, Tensor> linalg_lu_factor(const Tensor& a, bool pivot) {
  auto [lu, pivots, info] =
      ops::linalg_lu_factor_ex(a, pivot, /*check_errors=*/false);
  check_no_zero("linalg.lu_factor", info);
  return {lu, pivots};
}

template <class I>
void lu_unpack_shape(const Spec<I>& lu,
                     const Spec<I>& pivots,
                     bool unpack_data,
                     bool unpack_pivots,
                     Plan<I>& plan) {
  check_matrices("lu_unpack", lu);
  TAEDA_CHECK(
      !unpack_pivots || pivots.dtype() == kInt,
      "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor "
      "of torch.int32 dtype.\nNote: this function is intended to be "
      "used with the output produced by torch.linalg.lu_factor");
  I m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  Dims<I> wanted = vectors_of(lu, k);
  TAEDA_CHECK(!unpack_pivots || pivots.sizes() == ArrayRef<I>(wanted),
              "torch.lu_unpack: expected pivots of shape ",
              wanted,
              ", got ",
              pivots.sizes());
  auto matrices = [&](size_t index, bool wanted, I rows, I columns) {
    Dims<I> sizes = vectors_of(lu, rows);
    sizes.push_back(columns);
    plan.set(index, wanted ? sizes : Dims<I>{0}, lu.dtype());
  };
  matrices(0, unpack_pivots, m, m);
  matrices(1, unpack_data, m, k);
  matrices(2, unpack_data, k, n);
}
TAEDA_SHAPE(lu_unpack_shape);

namespace {

// P with A = P L U: the rows of the identity exchanged, the last pivot first.
void write_permutations(const Tensor& pivots, const Tensor& p) {
  int64_t m = p.size(-2), k = pivots.size(-1);
  fill_with(p, Scalar(0));
  Tensor plain = contiguous(pivots);
  visit_lapack(p.dtype(), [&](auto t) {
    using T = decltype(t);
    std::vector<int64_t> order(static_cast<size_t>(m));
    for (int64_t b = 0, all = batch_count(p); b < all; ++b) {
      for (int64_t i = 0; i < m; ++i) order[i] = i;
      const int* swaps = plain.const_data<int>() + b * k;
      for (int64_t i = 0; i < k; ++i) {
        TAEDA_CHECK(swaps[i] >= 1 && swaps[i] <= m,
                    "pivots passed to lu_unpack must be between 1 and "
                    "LU.size(-2) inclusive.");
        std::swap(order[i], order[swaps[i] - 1]);
      }
      T* matrix = item<T>(p, b, m * m);
      for (int64_t i = 0; i < m; ++i) matrix[order[i] * m + i] = T(1);
    }
  });
}

}  // namespace

void lu_unpack_cpu(const Tensor& lu,
                   const Tensor& pivots,
                   bool unpack_data,
                   bool unpack_pivots,
                   const Tensor& p,
                   const Tensor& l,
                   const Tensor& u) {
  if (unpack_pivots) write_permutations(pivots, p);
  if (!unpack_data) return;
  int64_t k = std::min(lu.size(-2), lu.size(-1));
  copy_into(l, ops::tril(ops::narrow(lu, -1, 0, k), -1));
  fill_with(ops::diagonal(l, 0, -2, -1), Scalar(1));
  copy_into(u, ops::triu(ops::narrow(lu, -2, 0, k), 0));
}

// P L U X = B; the adjoint and X A = B lead to the same triangles.
Tensor linalg_lu_solve(const Tensor& lu,
                       const Tensor& pivots,
                       const Tensor& b,
                       bool left,
                       bool adjoint) {
  check_square("linalg.lu_solve", lu);
  // As for a kernel: the products below are not autocast's business.
  ExcludeKeysGuard as_given(DispatchKey::Autocast);
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
  // Column-major, as the other solutions are.
  auto turned = [](const Tensor& t) { return ops::transpose(t, -2, -1); };
  return turned(ops::matmul(turned(y), turned(p)));
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

// The determinants of all matrices by `kernel`; of one, by from_diagonal(i,
// diagonal of U, whether rows were exchanged an odd number of times).
template <class T, class F>
void each_determinant(SmallKernel<T> SmallSystems<T>::*kernel,
                      const Tensor& a,
                      SmallBatch<T> job,
                      F&& from_diagonal) {
  MatrixReader<T> reader(a);
  Int n = rows_of(a);
  auto one = [&](int64_t i) {
    std::vector<T> lu(static_cast<size_t>(n) * static_cast<size_t>(n));
    std::vector<int> pivots(static_cast<size_t>(n));
    int info = 0;
    reader.copy(i, lu.data(), n, n);
    factor_one(lu.data(), n, n, pivots.data(), &info);
    bool odd = false;
    for (Int k = 0; k < n; ++k) {
      odd = odd != (pivots[k] != k + 1);
      lu[k] = lu[static_cast<size_t>(k) * (static_cast<size_t>(n) + 1)];
    }
    lu.resize(static_cast<size_t>(n));
    from_diagonal(i, lu, odd);
  };
  job.count = batch_count(a);
  job.rows = job.columns = n;
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSystems).of<T>();
  if (n > 0 && in_lanes(job.count, n, n, kernels.lanes)) {
    run_in_lanes<T>(kernels.*kernel, job, reader, {}, 1, 0, one);
  } else {
    each_matrix(job.count, n, n, one);
  }
}

}  // namespace

template <class I>
void linalg_det_shape(const Spec<I>& a, Plan<I>& plan) {
  check_square("linalg.det", a);
  plan.set(0, batch_sizes(a), a.dtype());
}
TAEDA_SHAPE(linalg_det_shape);

void linalg_det_cpu(const Tensor& a, const Tensor& out) {
  if (out.numel() == 0) return;
  Tensor from = readable(a);
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    SmallBatch<T> job;
    job.first = {out.mutable_data<T>(), 0, 0, 1, false};
    each_determinant<T>(
        &SmallSystems<T>::det,
        from,
        job,
        [&](int64_t i, const std::vector<T>& diagonal, bool odd) {
          T product = odd ? T(-1) : T(1);
          for (const T& factor : diagonal) product = product * factor;
          *item<T>(out, i, 1) = product;
        });
  });
}

template <class I>
void linalg_slogdet_shape(const Spec<I>& a, Plan<I>& plan) {
  check_square("linalg.slogdet", a);
  plan.set(0, batch_sizes(a), a.dtype());
  plan.set(1, batch_sizes(a), real_type_of(a.dtype()));
}
TAEDA_SHAPE(linalg_slogdet_shape);

void linalg_slogdet_cpu(const Tensor& a,
                        const Tensor& sign,
                        const Tensor& logs) {
  if (sign.numel() == 0) return;
  Tensor from = readable(a);
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    using R = real_t<T>;
    SmallBatch<T> job;
    job.first = {sign.mutable_data<T>(), 0, 0, 1, false};
    job.numbers = logs.mutable_data<R>();
    each_determinant<T>(
        &SmallSystems<T>::slogdet,
        from,
        job,
        [&](int64_t i, const std::vector<T>& diagonal, bool odd) {
          T product = odd ? T(-1) : T(1);
          R sum = 0;
          for (const T& factor : diagonal) {
            R size = magnitude(factor);
            product = product * (size == 0 ? T(0) : factor / T(size));
            sum += std::log(size);
          }
          *item<T>(sign, i, 1) = product;
          *item<R>(logs, i, 1) = sum;
        });
  });
}

std::tuple<Tensor, Tensor, Tensor> _lu_with_info(const Tensor& self,
                                                 bool pivot,
                                                 bool) {
  return ops::linalg_lu_factor_ex(self, pivot, /*check_errors=*/false);
}

}  // namespace taeda::native
