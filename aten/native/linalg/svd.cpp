// The singular value decomposition.
#include <taeda/aten/core/stand_in.h>
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/aten/native/linalg/report.h>
#include <taeda/gen/native/linalg_svd.h>
#include <taeda/gen/native/linalg_svdvals.h>
#include <taeda/gen/ops/eye.h>

#include <algorithm>
#include <type_traits>

namespace taeda::native {

using blas::Int;
using blas::lapack;
using blas::real_t;

namespace {

// U and Vh are undefined where nobody wants them.
struct Parts {
  Tensor a, u, s, vh;
  bool full;
};

int64_t numel_of_one(const Tensor& t) { return t.size(-2) * t.size(-1); }

template <typename T>
int decompose(const Parts& p, int64_t i, T* work, Int size) {
  using R = real_t<T>;
  Int m = rows_of(p.a), n = columns_of(p.a), k = std::min(m, n), info = 0;
  const bool vectors = p.u.defined();
  Int lda = leading(m), ldu = vectors ? leading(rows_of(p.u)) : 1;
  Int ldvt = vectors ? leading(rows_of(p.vh)) : 1;
  std::vector<Int> integers(static_cast<size_t>(8 * k));
  T* a = item<T>(p.a, i, int64_t{m} * n);
  R* s = item<R>(p.s, i, k);
  T* u = vectors ? item<T>(p.u, i, numel_of_one(p.u)) : nullptr;
  T* vh = vectors ? item<T>(p.vh, i, numel_of_one(p.vh)) : nullptr;
  blas::CStr job = !vectors ? "N" : p.full ? "A" : "S";
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

// Every matrix by LAPACK.
template <class T>
void decompose_all(const Parts& p, const Tensor& info) {
  Int rows = rows_of(p.a), columns = columns_of(p.a);
  parallel_for(0,
               batch_count(p.a),
               matrices_per_thread(rows, columns),
               [&](int64_t begin, int64_t end) {
                 with_workspace<T>([&](T* work, Int size) {
                   int64_t stop = size < 0 ? begin + 1 : end;
                   for (int64_t i = begin; i < stop; ++i) {
                     *item<int>(info, i, 1) = decompose<T>(p, i, work, size);
                   }
                 });
               });
}

template <class T>
void decompose_in_lanes(const Parts& p, const Tensor& a, const Tensor& info) {
  MatrixReader<T> reader(a);
  int64_t m = a.size(-2), n = a.size(-1);
  SmallBatch<T> job;
  job.count = batch_count(a);
  job.numbers = p.s.mutable_data<real_t<T>>();
  job.report = info.mutable_data<int>();
  MatrixResults<T> u = column_major_results<T>(p.u);
  MatrixResults<T> vh = column_major_results<T>(p.vh);
  // The adjoint of a wide matrix is V S U^H.
  bool wide = m < n;
  job.rows = static_cast<int>(wide ? n : m);
  job.columns = static_cast<int>(wide ? m : n);
  job.right = wide ? rows_of(p.vh) : columns_of(p.u);
  (wide ? job.first : job.second) = vh;
  (wide ? job.second : job.first) = u;
  MatrixResults<T>& adjoint = wide ? job.first : job.second;
  std::swap(adjoint.row, adjoint.column);
  adjoint.conj = true;
  auto again = [&](int64_t i) {
    reader.copy(i, item<T>(p.a, i, m * n), m, n);
    with_workspace<T>([&](T* work, Int size) {
      *item<int>(info, i, 1) = decompose<T>(p, i, work, size);
    });
  };
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSpectra).of<T>();
  MatrixReader<T> tall = wide ? reader.adjoint() : reader;
  int64_t k = std::min(m, n);
  run_in_lanes<T>(kernels.svd, job, tall, {}, k, 0, again);
}

}  // namespace

void check_singular_values(std::string_view op, const Tensor& given) {
  Tensor info = report_of(given);
  int64_t i = first_failure(info);
  if (i < 0) return;
  int code = info.const_data<int>()[i];
  std::string element = batch_element(info, i, 0);
  // LAPACK's word for a NaN in its fourth argument.
  TAEDA_CHECK_AS(LinAlg,
                 code != -4,
                 op,
                 ": ",
                 element,
                 "The algorithm failed to converge because the input matrix "
                 "contained non-finite values.");
  TAEDA_CHECK_AS(LinAlg,
                 false,
                 op,
                 ": ",
                 element,
                 "The algorithm failed to converge because the input matrix is "
                 "ill-conditioned or has too many repeated singular values "
                 "(error code: ",
                 code,
                 ").");
}

namespace {

template <class I>
void check_svd(std::string_view op,
               const Spec<I>& a,
               std::optional<std::string_view> driver) {
  check_matrices(op, a);
  if (!driver) return;
  TAEDA_CHECK(device_meant_by(a.device()).is_cuda(),
              op,
              ": keyword argument `driver=` is only supported on CUDA inputs");
  TAEDA_CHECK(*driver == "gesvd" || *driver == "gesvdj" || *driver == "gesvda",
              op,
              ": unknown svd driver ",
              *driver,
              ", expected gesvd, gesvdj or gesvda");
}

}  // namespace

template <class I>
void linalg_svd_shape(const Spec<I>& a,
                      bool full_matrices,
                      std::optional<std::string_view> driver,
                      Plan<I>& plan) {
  check_svd("linalg.svd", a, driver);
  I m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  ArrayRef<I> batch = batch_sizes(a);
  plan_matrices(plan, 0, batch, m, full_matrices ? m : k, a.dtype());
  plan.set(1, vectors_of(a, k), real_type_of(a.dtype()));
  plan_matrices(plan, 2, batch, full_matrices ? n : k, n, a.dtype());
}
TAEDA_SHAPE(linalg_svd_shape);

namespace {

void svd_cpu(Parts p, const Tensor& a) {
  constexpr std::string_view op = "linalg.svd";
  int64_t m = a.size(-2), n = a.size(-1);
  p.a = new_matrices(op, batch_sizes(a), m, n, a);
  Tensor info = new_infos(op, a), from = readable(a);
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    int lanes = TAEDA_ISA_TABLE(kSmallSpectra).of<T>().lanes;
    if (!in_lanes(batch_count(a), m, n, lanes)) {
      copy_into(p.a, a);
      decompose_all<T>(p, info);
      return;
    }
    if (!p.u.defined()) {
      p.u = new_matrices(op, batch_sizes(a), m, std::min(m, n), a);
      p.vh = new_matrices(op, batch_sizes(a), std::min(m, n), n, a);
    }
    decompose_in_lanes<T>(p, from, info);
  });
  check_singular_values(op, info);
}

}  // namespace

void linalg_svd_cpu(const Tensor& a,
                    bool full_matrices,
                    std::optional<std::string_view>,
                    const Tensor& u,
                    const Tensor& s,
                    const Tensor& vh) {
  if (a.numel() > 0) return svd_cpu({{}, u, s, vh, full_matrices}, a);
  if (full_matrices) {
    copy_into(u, ops::eye(a.size(-2), a.dtype()));
    copy_into(vh, ops::eye(a.size(-1), a.dtype()));
  }
}

template <class I>
void linalg_svdvals_shape(const Spec<I>& a,
                          std::optional<std::string_view> driver,
                          Plan<I>& plan) {
  check_svd("linalg.svdvals", a, driver);
  I m = a.size(-2), n = a.size(-1);
  plan.set(0, vectors_of(a, std::min(m, n)), real_type_of(a.dtype()));
}
TAEDA_SHAPE(linalg_svdvals_shape);

void linalg_svdvals_cpu(const Tensor& a,
                        std::optional<std::string_view>,
                        const Tensor& s) {
  if (a.numel() > 0) svd_cpu({{}, {}, s, {}, false}, a);
}

}  // namespace taeda::native
