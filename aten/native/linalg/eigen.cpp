// Eigenvalues and eigenvectors.
#include <taeda/aten/core/level.h>
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/aten/native/linalg/two_by_two.h>
#include <taeda/gen/native/_linalg_eigvals.h>
#include <taeda/gen/native/linalg_eig.h>
#include <taeda/gen/native/linalg_eigh.h>
#include <taeda/gen/native/linalg_eigvals.h>
#include <taeda/gen/native/linalg_eigvalsh.h>
#include <taeda/gen/ops/_linalg_eigvals.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/isfinite.h>
#include <taeda/gen/ops/linalg_eig.h>
#include <taeda/gen/ops/linalg_eigh.h>

#include <type_traits>

namespace taeda::native {

using blas::Int;
using blas::lapack;
using blas::real_t;

namespace {

void check_converged(std::string_view op, const Tensor& given) {
  Tensor info = innermost_value(given);
  int64_t i = first_failure(info);
  if (i < 0) return;
  TAEDA_CHECK_AS(LinAlg,
                 false,
                 op,
                 ": ",
                 batch_element(info, i, 0),
                 "The algorithm failed to converge because the input matrix "
                 "is ill-conditioned or has too many repeated eigenvalues "
                 "(error code: ",
                 info.const_data<int>()[i],
                 ").");
}

DimVector vector_sizes(const Tensor& a) {
  DimVector sizes(batch_sizes(a));
  sizes.push_back(a.size(-1));
  return sizes;
}

// One Hermitian matrix: its eigenvalues go to w, its eigenvectors over it.
template <typename T>
int hermitian(blas::CStr uplo, Int n, T* matrix, real_t<T>* w) {
  using R = real_t<T>;
  Int info = 0, lda = leading(n), query = -1, size = 0, integers = 0;
  T work_size{};
  if constexpr (std::is_same_v<T, R>) {
    lapack<T>().syevd("V",
                      uplo,
                      &n,
                      matrix,
                      &lda,
                      w,
                      &work_size,
                      &query,
                      &integers,
                      &query,
                      &info,
                      1,
                      1);
    size = static_cast<Int>(work_size) + 1;
    std::vector<T> work(static_cast<size_t>(size));
    std::vector<Int> whole(static_cast<size_t>(integers));
    lapack<T>().syevd("V",
                      uplo,
                      &n,
                      matrix,
                      &lda,
                      w,
                      work.data(),
                      &size,
                      whole.data(),
                      &integers,
                      &info,
                      1,
                      1);
  } else {
    R real_size{};
    lapack<T>().syevd("V",
                      uplo,
                      &n,
                      matrix,
                      &lda,
                      w,
                      &work_size,
                      &query,
                      &real_size,
                      &query,
                      &integers,
                      &query,
                      &info,
                      1,
                      1);
    size = static_cast<Int>(work_size.real()) + 1;
    Int reals = static_cast<Int>(real_size) + 1;
    std::vector<T> work(static_cast<size_t>(size));
    std::vector<R> real_work(static_cast<size_t>(reals));
    std::vector<Int> whole(static_cast<size_t>(integers));
    lapack<T>().syevd("V",
                      uplo,
                      &n,
                      matrix,
                      &lda,
                      w,
                      work.data(),
                      &size,
                      real_work.data(),
                      &reals,
                      whole.data(),
                      &integers,
                      &info,
                      1,
                      1);
  }
  return info;
}

// One matrix of real numbers; no vectors where that is null. LAPACK gives pairs
// of conjugate eigenvectors as one column of real and one of imaginary parts.
template <typename T>
int general(Int n, T* matrix, complex<T>* w, complex<T>* vectors) {
  Int info = 0, lda = leading(n), query = -1, one = 1;
  std::vector<T> re(static_cast<size_t>(n)), im(static_cast<size_t>(n));
  std::vector<T> v(
      vectors != nullptr ? static_cast<size_t>(n) * static_cast<size_t>(n) : 0);
  T size{};
  auto call = [&](T* work, Int* count) {
    lapack<T>().geev("N",
                     vectors != nullptr ? "V" : "N",
                     &n,
                     matrix,
                     &lda,
                     re.data(),
                     im.data(),
                     nullptr,
                     &one,
                     v.data(),
                     &lda,
                     work,
                     count,
                     &info,
                     1,
                     1);
  };
  call(&size, &query);
  Int count = static_cast<Int>(size) + 1;
  std::vector<T> work(static_cast<size_t>(count));
  call(work.data(), &count);
  for (Int j = 0; j < n; ++j) {
    w[j] = complex<T>(re[j], im[j]);
    if (vectors == nullptr) continue;
    // Of a pair the one with the positive imaginary part comes first.
    Int first = im[j] < 0 ? j - 1 : j;
    for (Int i = 0; i < n; ++i) {
      T imaginary = im[j] == 0 ? T(0) : v[i + (first + 1) * n];
      if (im[j] < 0) imaginary = -imaginary;
      vectors[i + j * n] = complex<T>(v[i + first * n], imaginary);
    }
  }
  return info;
}

template <typename T>
int general(Int n, complex<T>* matrix, complex<T>* w, complex<T>* vectors) {
  using C = complex<T>;
  Int info = 0, lda = leading(n), query = -1, one = 1;
  std::vector<T> reals(static_cast<size_t>(2 * n));
  C size{};
  auto call = [&](C* work, Int* count) {
    lapack<C>().geev("N",
                     vectors != nullptr ? "V" : "N",
                     &n,
                     matrix,
                     &lda,
                     w,
                     nullptr,
                     &one,
                     vectors,
                     &lda,
                     work,
                     count,
                     reals.data(),
                     &info,
                     1,
                     1);
  };
  call(&size, &query);
  Int count = static_cast<Int>(size.real()) + 1;
  std::vector<C> work(static_cast<size_t>(count));
  call(work.data(), &count);
  return info;
}

template <class T>
void hermitian_all(const Tensor& a,
                   const Tensor& v,
                   const Tensor& w,
                   const Tensor& info,
                   bool lower) {
  MatrixReader<T> reader(a);
  Int n = rows_of(a);
  auto one = [&](int64_t i) {
    T* matrix = item<T>(v, i, int64_t{n} * n);
    reader.copy(i, matrix, n, n);
    real_t<T>* values = item<real_t<T>>(w, i, n);
    *item<int>(info, i, 1) = hermitian<T>(lower ? "L" : "U", n, matrix, values);
  };
  int64_t count = batch_count(a);
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSpectra).of<T>();
  if (!in_lanes(count, n, n, kernels.lanes)) {
    return each_matrix(count, n, n, one);
  }
  SmallBatch<T> job;
  job.count = count;
  job.rows = job.columns = n;
  job.first = column_major_results<T>(v);
  job.numbers = w.mutable_data<real_t<T>>();
  job.report = info.mutable_data<int>();
  // The upper triangle is the lower one of the adjoint.
  run_in_lanes<T>(
      kernels.eigh, job, lower ? reader : reader.adjoint(), {}, n, 0, one);
}

void check_general(std::string_view op, const Tensor& self) {
  // LAPACK's answer to these is a message on the terminal, or no end.
  TAEDA_CHECK(
      self.is_meta() || *ops::all(ops::isfinite(self)).const_data<bool>(),
      op,
      ": input tensor should not contain infs or NaNs");
  check_square(op, self);
}

Tensor new_eigenvalues(std::string_view op, const Tensor& a) {
  bool single = a.dtype() == kFloat || a.dtype() == kComplexFloat;
  return make_tensor(
      op, vector_sizes(a), single ? kComplexFloat : kComplexDouble, a.device());
}

// Eigenvalues of the column-major matrices `a`, which are overwritten, to `w`;
// eigenvectors to `v` where that is defined.
void general_all(std::string_view op,
                 const Tensor& a,
                 const Tensor& w,
                 const Tensor& v) {
  if (a.numel() == 0) return;
  Tensor info = new_infos(op, a);
  Int n = rows_of(a);
  visit_lapack(a.dtype(), [&](auto t) {
    using T = decltype(t);
    using C = complex<real_t<T>>;
    each_matrix(batch_count(a), n, n, [&](int64_t i) {
      T* matrix = item<T>(a, i, int64_t{n} * n);
      C* values = item<C>(w, i, n);
      C* vectors = v.defined() ? item<C>(v, i, int64_t{n} * n) : nullptr;
      if constexpr (std::is_same_v<T, real_t<T>>) {
        if (n == 2 && eig_two_by_two(matrix, values, vectors)) return;
      }
      *item<int>(info, i, 1) = general(n, matrix, values, vectors);
    });
  });
  check_converged(op, info);
}

}  // namespace

std::tuple<Tensor, Tensor> linalg_eigh(const Tensor& a, std::string_view uplo) {
  constexpr std::string_view op = "linalg.eigh";
  check_square(op, a);
  bool lower = uplo == "L" || uplo == "l";
  TAEDA_CHECK(lower || uplo == "U" || uplo == "u",
              "Expected UPLO argument to be 'L' or 'U', but got ",
              uplo);
  int64_t n = a.size(-1);
  Tensor v = new_matrices(op, batch_sizes(a), n, n, a);
  Tensor w =
      make_tensor(op, vector_sizes(a), real_type_of(a.dtype()), a.device());
  if (v.numel() == 0) return {w, v};
  Tensor info = new_infos(op, a), from = readable(a);
  visit_lapack(a.dtype(), [&](auto t) {
    hermitian_all<decltype(t)>(from, v, w, info, lower);
  });
  check_converged(op, info);
  return {w, v};
}

Tensor linalg_eigvalsh(const Tensor& self, std::string_view uplo) {
  return std::get<0>(ops::linalg_eigh(self, uplo));
}

std::tuple<Tensor, Tensor> linalg_eig(const Tensor& self) {
  constexpr std::string_view op = "linalg.eig";
  check_general(op, self);
  Tensor a = column_major(op, self), w = new_eigenvalues(op, a);
  Tensor v = new_matrices(op, batch_sizes(a), a.size(-1), a.size(-1), w);
  general_all(op, a, w, v);
  return {w, v};
}

Tensor _linalg_eigvals(const Tensor& self) {
  constexpr std::string_view op = "linalg.eigvals";
  check_general(op, self);
  Tensor a = column_major(op, self), w = new_eigenvalues(op, a);
  general_all(op, a, w, {});
  return w;
}

Tensor linalg_eigvals(const Tensor& self) {
  // The derivative needs eigenvectors that belong to these very values.
  return grad_enabled() && self.requires_grad()
             ? std::get<0>(ops::linalg_eig(self))
             : ops::_linalg_eigvals(self);
}

}  // namespace taeda::native
