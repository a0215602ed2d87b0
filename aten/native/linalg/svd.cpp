// The singular value decomposition.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/gen/native/linalg_svd.h>
#include <taeda/gen/native/linalg_svdvals.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/linalg_svd.h>

#include <algorithm>
#include <type_traits>

namespace taeda::native {

using blas::Int;
using blas::lapack;
using blas::real_t;

namespace {

struct Parts {
  Tensor a, u, s, vh;
  bool full;
};

template <typename T>
int decompose(const Parts& p, int64_t i, T* work, Int size) {
  using R = real_t<T>;
  Int m = rows_of(p.a), n = columns_of(p.a), k = std::min(m, n), info = 0;
  Int lda = leading(m), ldu = leading(rows_of(p.u));
  Int ldvt = leading(rows_of(p.vh));
  std::vector<Int> integers(static_cast<size_t>(8 * k));
  T* a = item<T>(p.a, i, int64_t{m} * n);
  R* s = item<R>(p.s, i, k);
  T* u = item<T>(p.u, i, p.u.size(-2) * p.u.size(-1));
  T* vh = item<T>(p.vh, i, p.vh.size(-2) * p.vh.size(-1));
  blas::CStr job = p.full ? "A" : "S";
  if constexpr (std::is_same_v<T, R>) {
    lapack<T>().gesdd(job,
                      &m,
                      &n,
                      a,
                      &lda,
                      s,
                      u,
                      &ldu,
                      vh,
                      &ldvt,
                      work,
                      &size,
                      integers.data(),
                      &info,
                      1);
  } else {
    // The bound that LAPACK 3.12 documents for jobz other than N.
    int64_t most = std::max(m, n), least = k;
    int64_t count = least * std::max(5 * least + 7, 2 * most + 2 * least + 1);
    std::vector<R> reals(static_cast<size_t>(count));
    lapack<T>().gesdd(job,
                      &m,
                      &n,
                      a,
                      &lda,
                      s,
                      u,
                      &ldu,
                      vh,
                      &ldvt,
                      work,
                      &size,
                      reals.data(),
                      integers.data(),
                      &info,
                      1);
  }
  return info;
}

void decompose_all(const Parts& p) {
  visit_lapack(p.a.dtype(), [&](auto t) {
    using T = decltype(t);
    with_workspace<T>([&](T* work, Int size) {
      for (int64_t i = 0, all = size < 0 ? 1 : batch_count(p.a); i < all; ++i) {
        int info = decompose<T>(p, i, work, size);
        TAEDA_CHECK_AS(LinAlg,
                       info == 0,
                       "linalg.svd: (Batch element ",
                       i,
                       "): The algorithm failed to converge because the input "
                       "matrix is ill-conditioned or has too many repeated "
                       "singular values (error code: ",
                       info,
                       ").");
      }
    });
  });
}

}  // namespace

std::tuple<Tensor, Tensor, Tensor> linalg_svd(
    const Tensor& a,
    bool full_matrices,
    std::optional<std::string_view> driver) {
  constexpr std::string_view op = "linalg.svd";
  check_matrices(op, a);
  TAEDA_CHECK(!driver,
              op,
              ": keyword argument `driver=` is only supported on CUDA inputs");
  int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  DimVector sizes(batch_sizes(a));
  sizes.push_back(k);
  Parts p{column_major(op, a),
          new_matrices(op, batch_sizes(a), m, full_matrices ? m : k, a),
          make_tensor(op, sizes, real_type_of(a.dtype()), a.device()),
          new_matrices(op, batch_sizes(a), full_matrices ? n : k, n, a),
          full_matrices};
  if (p.a.numel() > 0) {
    decompose_all(p);
  } else if (full_matrices) {
    copy_into(p.u, ops::eye(m, a.dtype()));
    copy_into(p.vh, ops::eye(n, a.dtype()));
  }
  return {p.u, p.s, p.vh};
}

Tensor linalg_svdvals(const Tensor& a, std::optional<std::string_view> driver) {
  return std::get<1>(ops::linalg_svd(a, /*full_matrices=*/false, driver));
}

}  // namespace taeda::native
