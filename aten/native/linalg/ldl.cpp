// Symmetric and Hermitian matrices as L D L^H, by J. Bunch and L. Kaufman
// (1977).
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/aten/native/linalg/report.h>
#include <taeda/gen/native/linalg_ldl_factor.h>
#include <taeda/gen/native/linalg_ldl_factor_ex.h>
#include <taeda/gen/native/linalg_ldl_solve.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/linalg_ldl_factor_ex.h>
#include <taeda/gen/ops/tril.h>

namespace taeda::native {

using blas::Int;
using blas::lapack;

namespace {

template <class T>
constexpr bool kIsComplex = !std::is_same_v<T, blas::real_t<T>>;

void check_factored(std::string_view op, const Tensor& info) {
  int64_t bad = first_failure(report_of(info));
  if (bad < 0) return;
  TAEDA_CHECK_AS(LinAlg,
                 false,
                 op,
                 ": (Batch element ",
                 bad,
                 "): The diagonal matrix D has a zero, it is singular.");
}

template <class T>
void factor(const Tensor& ld,
            const Tensor& pivots,
            const Tensor& info,
            bool hermitian) {
  Int n = rows_of(ld), lda = leading(n);
  with_workspace<T>([&](T* work, Int size) {
    for (int64_t i = 0, all = size < 0 ? 1 : batch_count(ld); i < all; ++i) {
      auto routine = lapack<T>().sytrf;
      if constexpr (kIsComplex<T>) {
        if (hermitian) routine = lapack<T>().hetrf;
      }
      routine("L",
              &n,
              item<T>(ld, i, int64_t{n} * n),
              &lda,
              item<int>(pivots, i, n),
              work,
              &size,
              item<int>(info, i, 1),
              1);
    }
  });
}

template <class T>
void solve_ldl(const Tensor& ld,
               const Tensor& pivots,
               const Tensor& x,
               bool hermitian) {
  Int n = rows_of(ld), count = columns_of(x), lda = leading(n);
  each_matrix(batch_count(x), n, count, [&](int64_t i) {
    auto routine = lapack<T>().sytrs;
    if constexpr (kIsComplex<T>) {
      if (hermitian) routine = lapack<T>().hetrs;
    }
    Int info = 0;
    routine("L",
            &n,
            &count,
            item<T>(ld, i, int64_t{n} * n),
            &lda,
            item<int>(pivots, i, n),
            item<T>(x, i, int64_t{n} * count),
            &lda,
            &info,
            1);
  });
}

}  // namespace

template <class I>
void linalg_ldl_factor_ex_shape(const Spec<I>& self,
                                bool,
                                bool,
                                Plan<I>& plan) {
  check_square("torch.linalg.ldl_factor_ex", self);
  const I& n = self.size(-1);
  plan_matrices(plan, 0, batch_sizes(self), n, n, self.dtype());
  plan.set(1, vectors_of(self, n), kInt);
  plan.set(2, batch_sizes(self), kInt);
}
TAEDA_SHAPE(linalg_ldl_factor_ex_shape);

void linalg_ldl_factor_ex_cpu(const Tensor& self,
                              bool hermitian,
                              bool check_errors,
                              const Tensor& ld,
                              const Tensor& pivots,
                              const Tensor& info) {
  fill_with(info, Scalar(0));
  if (ld.numel() > 0) {
    copy_into(ld, ops::tril(self));
    visit_lapack(ld.dtype(), [&](auto t) {
      factor<decltype(t)>(ld, pivots, info, hermitian);
    });
  }
  if (check_errors) check_factored("torch.linalg.ldl_factor_ex", info);
}

std::tuple<Tensor, Tensor> linalg_ldl_factor(const Tensor& self,
                                             bool hermitian) {
  auto [ld, pivots, info] =
      ops::linalg_ldl_factor_ex(self, hermitian, /*check_errors=*/false);
  check_factored("torch.linalg.ldl_factor", info);
  return {ld, pivots};
}

template <class I>
void linalg_ldl_solve_shape(const Spec<I>& ld,
                            const Spec<I>& pivots,
                            const Spec<I>& b,
                            bool,
                            Plan<I>& plan) {
  constexpr std::string_view op = "torch.linalg.ldl_solve";
  check_square(op, ld);
  TAEDA_CHECK(b.dim() >= 2,
              op,
              ": Expected B to have at least 2 dimensions, but it has ",
              b.dim(),
              " dimensions instead");
  TAEDA_CHECK(pivots.dtype() == kInt || pivots.dtype() == kLong,
              op,
              ": Expected pivots to be integers. Got ",
              pivots.dtype());
  TAEDA_CHECK(pivots.sizes() == ld.sizes().slice(0, ld.sizes().size() - 1),
              op,
              ": Expected LD.shape[:-1] and pivots.shape to be the same, but "
              "got pivots with shape ",
              pivots.sizes(),
              " instead");
  TAEDA_CHECK(ld.dtype() == b.dtype(),
              op,
              ": Expected LD and B to have the same dtype, but found LD of ",
              ld.dtype(),
              " and B of ",
              b.dtype());
  TAEDA_CHECK(b.size(-2) == ld.size(-1),
              op,
              ": Incompatible matrix sizes: LD is ",
              ld.sizes(),
              " and B ",
              b.sizes());
  Dims<I> batch = broadcast_shapes<I>(op, batch_sizes(ld), batch_sizes(b));
  plan_matrices<I>(plan, 0, batch, b.size(-2), b.size(-1), b.dtype());
}
TAEDA_SHAPE(linalg_ldl_solve_shape);

void linalg_ldl_solve_cpu(const Tensor& ld,
                          const Tensor& pivots,
                          const Tensor& b,
                          bool hermitian,
                          const Tensor& x) {
  if (x.numel() == 0) return;
  copy_into(x, b);
  DimVector matrices(batch_sizes(x)), vectors(batch_sizes(x));
  matrices.push_back(ld.size(-2));
  matrices.push_back(ld.size(-1));
  vectors.push_back(pivots.size(-1));
  constexpr std::string_view op = "linalg.ldl_solve";
  Tensor factors = column_major(op, ops::expand(ld, matrices));
  Tensor places = contiguous_as(ops::expand(pivots, vectors), kInt);
  visit_lapack(x.dtype(), [&](auto t) {
    solve_ldl<decltype(t)>(factors, places, x, hermitian);
  });
}

}  // namespace taeda::native
