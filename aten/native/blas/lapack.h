// The Fortran routines of OpenBLAS, loaded on first use. Column-major, 32-bit
// integers, all arguments by pointer, the lengths of the character arguments
// at the end (gfortran relies on them). The names and argument lists are those
// of the LAPACK 3.12 reference, without the type's letter; where real and
// complex differ in name (orgqr/ungqr, syevd/heevd, sytrf/hetrf) both are given
// under the real name unless both exist for complex types.
#pragma once

#include <cstddef>
#include <type_traits>

#include <taeda/c10/util/complex.h>
#include <taeda/c10/util/macros.h>

namespace taeda::blas {

using Int = int;
using CInt = const int*;
using Len = std::size_t;
using CStr = const char*;

template <typename T>
struct RealOf {
  using type = T;
};
template <typename T>
struct RealOf<complex<T>> {
  using type = T;
};
template <typename T>
using real_t = typename RealOf<T>::type;

// clang-format off
template <typename T>
struct CommonRoutines {
  using C = const T*;
  void (*gemm)(CStr ta, CStr tb, CInt m, CInt n, CInt k, C alpha, C a, CInt lda,
               C b, CInt ldb, C beta, T* c, CInt ldc, Len, Len);
  void (*gemv)(CStr ta, CInt m, CInt n, C alpha, C a, CInt lda, C x, CInt inc_x,
               C beta, T* y, CInt inc_y, Len);
  void (*trsm)(CStr side, CStr uplo, CStr ta, CStr diag, CInt m, CInt n, C alpha,
               C a, CInt lda, T* b, CInt ldb, Len, Len, Len, Len);
  void (*getrf)(CInt m, CInt n, T* a, CInt lda, Int* pivots, Int* info);
  void (*getrs)(CStr ta, CInt n, CInt nrhs, C a, CInt lda, CInt pivots, T* b,
                CInt ldb, Int* info, Len);
  void (*getri)(CInt n, T* a, CInt lda, CInt pivots, T* work, CInt lwork,
                Int* info);
  void (*potrf)(CStr uplo, CInt n, T* a, CInt lda, Int* info, Len);
  void (*potrs)(CStr uplo, CInt n, CInt nrhs, C a, CInt lda, T* b, CInt ldb,
                Int* info, Len);
  void (*potri)(CStr uplo, CInt n, T* a, CInt lda, Int* info, Len);
  void (*trtrs)(CStr uplo, CStr ta, CStr diag, CInt n, CInt nrhs, C a, CInt lda,
                T* b, CInt ldb, Int* info, Len, Len, Len);
  void (*geqrf)(CInt m, CInt n, T* a, CInt lda, T* tau, T* work, CInt lwork,
                Int* info);
  void (*orgqr)(CInt m, CInt n, CInt k, T* a, CInt lda, C tau, T* work,
                CInt lwork, Int* info);
  void (*ormqr)(CStr side, CStr ta, CInt m, CInt n, CInt k, C a, CInt lda,
                C tau, T* c, CInt ldc, T* work, CInt lwork, Int* info, Len,
                Len);
  void (*gels)(CStr ta, CInt m, CInt n, CInt nrhs, T* a, CInt lda, T* b,
               CInt ldb, T* work, CInt lwork, Int* info, Len);
  void (*sytrf)(CStr uplo, CInt n, T* a, CInt lda, Int* pivots, T* work,
                CInt lwork, Int* info, Len);
  void (*sytrs)(CStr uplo, CInt n, CInt nrhs, C a, CInt lda, CInt pivots, T* b,
                CInt ldb, Int* info, Len);
};

template <typename T>
struct RealRoutines : CommonRoutines<T> {
  void (*syevd)(CStr jobz, CStr uplo, CInt n, T* a, CInt lda, T* w, T* work,
                CInt lwork, Int* iwork, CInt liwork, Int* info, Len, Len);
  void (*geev)(CStr jobvl, CStr jobvr, CInt n, T* a, CInt lda, T* wr, T* wi,
               T* vl, CInt ldvl, T* vr, CInt ldvr, T* work, CInt lwork,
               Int* info, Len, Len);
  void (*gesdd)(CStr jobz, CInt m, CInt n, T* a, CInt lda, T* s, T* u, CInt ldu,
                T* vt, CInt ldvt, T* work, CInt lwork, Int* iwork, Int* info,
                Len);
  void (*gesvd)(CStr jobu, CStr jobvt, CInt m, CInt n, T* a, CInt lda, T* s,
                T* u, CInt ldu, T* vt, CInt ldvt, T* work, CInt lwork,
                Int* info, Len, Len);
  void (*gelsy)(CInt m, CInt n, CInt nrhs, T* a, CInt lda, T* b, CInt ldb,
                Int* jpvt, const T* rcond, Int* rank, T* work, CInt lwork,
                Int* info);
  void (*gelsd)(CInt m, CInt n, CInt nrhs, T* a, CInt lda, T* b, CInt ldb, T* s,
                const T* rcond, Int* rank, T* work, CInt lwork, Int* iwork,
                Int* info);
  void (*gelss)(CInt m, CInt n, CInt nrhs, T* a, CInt lda, T* b, CInt ldb, T* s,
                const T* rcond, Int* rank, T* work, CInt lwork, Int* info);
};

template <typename T>
struct ComplexRoutines : CommonRoutines<T> {
  using R = real_t<T>;
  using C = const T*;
  void (*syevd)(CStr jobz, CStr uplo, CInt n, T* a, CInt lda, R* w, T* work,
                CInt lwork, R* rwork, CInt lrwork, Int* iwork, CInt liwork,
                Int* info, Len, Len);
  void (*geev)(CStr jobvl, CStr jobvr, CInt n, T* a, CInt lda, T* w, T* vl,
               CInt ldvl, T* vr, CInt ldvr, T* work, CInt lwork, R* rwork,
               Int* info, Len, Len);
  void (*gesdd)(CStr jobz, CInt m, CInt n, T* a, CInt lda, R* s, T* u, CInt ldu,
                T* vt, CInt ldvt, T* work, CInt lwork, R* rwork, Int* iwork,
                Int* info, Len);
  void (*gesvd)(CStr jobu, CStr jobvt, CInt m, CInt n, T* a, CInt lda, R* s,
                T* u, CInt ldu, T* vt, CInt ldvt, T* work, CInt lwork, R* rwork,
                Int* info, Len, Len);
  void (*gelsy)(CInt m, CInt n, CInt nrhs, T* a, CInt lda, T* b, CInt ldb,
                Int* jpvt, const R* rcond, Int* rank, T* work, CInt lwork,
                R* rwork, Int* info);
  void (*gelsd)(CInt m, CInt n, CInt nrhs, T* a, CInt lda, T* b, CInt ldb, R* s,
                const R* rcond, Int* rank, T* work, CInt lwork, R* rwork,
                Int* iwork, Int* info);
  void (*gelss)(CInt m, CInt n, CInt nrhs, T* a, CInt lda, T* b, CInt ldb, R* s,
                const R* rcond, Int* rank, T* work, CInt lwork, R* rwork,
                Int* info);
  void (*hetrf)(CStr uplo, CInt n, T* a, CInt lda, Int* pivots, T* work,
                CInt lwork, Int* info, Len);
  void (*hetrs)(CStr uplo, CInt n, CInt nrhs, C a, CInt lda, CInt pivots, T* b,
                CInt ldb, Int* info, Len);
};
// clang-format on

template <typename T>
using Routines = std::conditional_t<std::is_same_v<T, real_t<T>>,
                                    RealRoutines<T>,
                                    ComplexRoutines<T>>;

// The table for float, double, complex<float> or complex<double>. Loads the
// library on first use (RuntimeError where it is missing). Every routine runs
// on the calling thread alone and may be called from several at once, inside
// of parallel_for too: a loop over a batch belongs in parallel_for.
template <typename T>
TAEDA_API const Routines<T>& lapack();

}  // namespace taeda::blas
