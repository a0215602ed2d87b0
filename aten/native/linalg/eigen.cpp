// Eigenvalues and eigenvectors.
#include <taeda/aten/native/linalg/batches.h>
#include <taeda/aten/native/linalg/refined.h>
#include <taeda/aten/native/linalg/report.h>
#include <taeda/aten/native/linalg/sweeps.h>
#include <taeda/aten/native/linalg/two_by_two.h>
#include <taeda/gen/native/linalg_eig.h>
#include <taeda/gen/native/linalg_eigh.h>
#include <taeda/gen/native/linalg_eigvals.h>
#include <taeda/gen/native/linalg_eigvalsh.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/isfinite.h>
#include <taeda/gen/ops/item.h>

#include <algorithm>
#include <type_traits>
#include <vector>

namespace taeda::native {

using blas::Int;
using blas::lapack;
using blas::real_t;

void check_eigenvalues(std::string_view op, const Tensor& given) {
  Tensor info = report_of(given);
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

void check_finite(std::string_view op, const Tensor& self) {
  // LAPACK's answer to these is a message on the terminal, or no end.
  TAEDA_CHECK(ops::item(ops::all(ops::isfinite(self))).to_bool(),
              op,
              ": input tensor should not contain infs or NaNs");
}

namespace {

// One Hermitian matrix: its eigenvalues go to w, and over it go its
// eigenvectors (job V) or anything (job N).
template <typename T>
int hermitian_by_lapack(
    blas::CStr job, blas::CStr uplo, Int n, T* matrix, real_t<T>* w) {
  using R = real_t<T>;
  Int info = 0, lda = leading(n), query = -1, size = 0, integers = 0;
  T work_size{};
  if constexpr (std::is_same_v<T, R>) {
    lapack<T>().syevd(job,
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
    lapack<T>().syevd(job,
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
    lapack<T>().syevd(job,
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
    lapack<T>().syevd(job,
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

// Up to here double precision costs about as much as single precision. The
// signs of vectors are then LAPACK's, too, of which programs may show some.
constexpr Int kSmall = 16;

template <typename T>
int hermitian_in(
    blas::CStr job, blas::CStr uplo, Int n, T* matrix, real_t<T>* w) {
  if constexpr (std::is_same_v<T, real_t<T>>) {
    bool lower = *uplo == 'L', vectors = *job == 'V';
    if (n > kSmall && n <= kMostSwept &&
        eigh_by_sweeps(n, matrix, w, lower, vectors)) {
      return 0;
    }
  }
  return hermitian_by_lapack(job, uplo, n, matrix, w);
}

template <typename T>
struct Wider {};
template <>
struct Wider<float> {
  using type = double;
};
template <>
struct Wider<complex<float>> {
  using type = complex<double>;
};

// Derivatives divide by differences of eigenvalues, which brings out each
// rounding of the vectors: those of small matrices have one.
template <typename T>
int hermitian(blas::CStr job, blas::CStr uplo, Int n, T* matrix, real_t<T>* w) {
  if constexpr (requires { typename Wider<T>::type; }) {
    if (n <= kSmall) {
      using W = typename Wider<T>::type;
      std::vector<W> wide(matrix, matrix + n * n);
      std::vector<real_t<W>> values(static_cast<size_t>(n));
      int info = hermitian_by_lapack(job, uplo, n, wide.data(), values.data());
      auto narrow = [](auto v) { return static_cast<T>(v); };
      std::transform(wide.begin(), wide.end(), matrix, narrow);
      std::copy(values.begin(), values.end(), w);
      return info;
    }
  }
  return hermitian_in(job, uplo, n, matrix, w);
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

// As above, where vectors are wanted.
template <typename T>
int general_rounded(Int n,
                    T* matrix,
                    complex<real_t<T>>* w,
                    complex<real_t<T>>* vectors) {
  if constexpr (std::is_same_v<real_t<T>, float>) {
    if (n <= kSmall && vectors != nullptr) {
      std::vector<T> given(matrix, matrix + n * n);
      int info = general(n, matrix, w, vectors);
      if (info == 0) refine_pairs(n, given.data(), w, vectors);
      return info;
    }
  }
  return general(n, matrix, w, vectors);
}

template <class T>
void hermitian_all(const Tensor& a,
                   const Tensor& v,
                   const Tensor& w,
                   const Tensor& info,
                   bool lower,
                   bool vectors) {
  MatrixReader<T> reader(a);
  Int n = rows_of(a);
  blas::CStr job = vectors ? "V" : "N", uplo = lower ? "L" : "U";
  auto one = [&](int64_t i) {
    T* matrix = item<T>(v, i, int64_t{n} * n);
    reader.copy(i, matrix, n, n);
    real_t<T>* values = item<real_t<T>>(w, i, n);
    *item<int>(info, i, 1) = hermitian<T>(job, uplo, n, matrix, values);
  };
  int64_t count = batch_count(a);
  const auto& kernels = TAEDA_ISA_TABLE(kSmallSpectra).of<T>();
  if (!in_lanes(count, n, n, kernels.lanes)) {
    return each_matrix(count, n, n, one);
  }
  SmallBatch<T> batch;
  batch.count = count;
  batch.rows = batch.columns = n;
  batch.first = column_major_results<T>(v);
  batch.numbers = w.mutable_data<real_t<T>>();
  batch.report = info.mutable_data<int>();
  // The upper triangle is the lower one of the adjoint.
  run_in_lanes<T>(
      kernels.eigh, batch, lower ? reader : reader.adjoint(), {}, n, 0, one);
}

ScalarType complex_of(ScalarType t) {
  return t == kFloat || t == kComplexFloat ? kComplexFloat : kComplexDouble;
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
      *item<int>(info, i, 1) = general_rounded(n, matrix, values, vectors);
    });
  });
  check_eigenvalues(op, info);
}

}  // namespace

namespace {

template <class I>
void check_hermitian(std::string_view op,
                     const Spec<I>& a,
                     std::string_view uplo) {
  check_square(op, a);
  TAEDA_CHECK(uplo == "L" || uplo == "l" || uplo == "U" || uplo == "u",
              "Expected UPLO argument to be 'L' or 'U', but got ",
              uplo);
}

// `v` has room for the matrices; its values are theirs without `vectors`.
void hermitian_cpu(std::string_view op,
                   const Tensor& a,
                   std::string_view uplo,
                   const Tensor& w,
                   const Tensor& v,
                   bool vectors) {
  bool lower = uplo == "L" || uplo == "l";
  if (v.numel() == 0) return;
  Tensor info = new_infos(op, a), from = readable(a);
  visit_lapack(a.dtype(), [&](auto t) {
    hermitian_all<decltype(t)>(from, v, w, info, lower, vectors);
  });
  check_eigenvalues(op, info);
}

}  // namespace

template <class I>
void linalg_eigh_shape(const Spec<I>& a, std::string_view uplo, Plan<I>& plan) {
  check_hermitian("linalg.eigh", a, uplo);
  I n = a.size(-1);
  plan.set(0, vectors_of(a, n), real_type_of(a.dtype()));
  plan_matrices(plan, 1, batch_sizes(a), n, n, a.dtype());
}
TAEDA_SHAPE(linalg_eigh_shape);

void linalg_eigh_cpu(const Tensor& a,
                     std::string_view uplo,
                     const Tensor& w,
                     const Tensor& v) {
  hermitian_cpu("linalg.eigh", a, uplo, w, v, /*vectors=*/true);
}

template <class I>
void linalg_eigvalsh_shape(const Spec<I>& a,
                           std::string_view uplo,
                           Plan<I>& plan) {
  check_hermitian("linalg.eigvalsh", a, uplo);
  plan.set(0, vectors_of(a, a.size(-1)), real_type_of(a.dtype()));
}
TAEDA_SHAPE(linalg_eigvalsh_shape);

void linalg_eigvalsh_cpu(const Tensor& a,
                         std::string_view uplo,
                         const Tensor& w) {
  constexpr std::string_view op = "linalg.eigvalsh";
  int64_t n = a.size(-1);
  Tensor room = new_matrices(op, batch_sizes(a), n, n, a);
  hermitian_cpu(op, a, uplo, w, room, /*vectors=*/false);
}

template <class I>
void linalg_eig_shape(const Spec<I>& self, Plan<I>& plan) {
  check_square("torch.linalg.eig", self);
  I n = self.size(-1);
  ScalarType type = complex_of(self.dtype());
  plan.set(0, vectors_of(self, n), type);
  plan_matrices(plan, 1, batch_sizes(self), n, n, type);
}
TAEDA_SHAPE(linalg_eig_shape);

void linalg_eig_cpu(const Tensor& self, const Tensor& w, const Tensor& v) {
  constexpr std::string_view op = "torch.linalg.eig";
  check_finite(op, self);
  general_all(op, column_major(op, self), w, v);
}

template <class I>
void linalg_eigvals_shape(const Spec<I>& self, Plan<I>& plan) {
  check_square("torch.linalg.eigvals", self);
  plan.set(0, vectors_of(self, self.size(-1)), complex_of(self.dtype()));
}
TAEDA_SHAPE(linalg_eigvals_shape);

void linalg_eigvals_cpu(const Tensor& self, const Tensor& w) {
  constexpr std::string_view op = "torch.linalg.eigvals";
  check_finite(op, self);
  general_all(op, column_major(op, self), w, {});
}

}  // namespace taeda::native
