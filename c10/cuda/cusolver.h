// cuSOLVER, which factors dense matrices, as a table of function pointers; the
// interface is that of NVIDIA's cuSOLVER documentation (11.x and 12.x): the
// generic one of 64 bits where there is one.
#pragma once

#include <taeda/c10/cuda/driver.h>
#include <taeda/c10/cuda/library.h>

#include <array>

namespace taeda::cuda {

namespace cusolver {

using Status = int;  // cusolverStatus_t
using Handle = struct HandleObject*;
using Params = struct ParamsObject*;

// cudaDataType_t
enum Type : int { kReal32 = 0, kReal64 = 1, kComplex32 = 4, kComplex64 = 5 };
enum Turn : int { kAsIs = 0, kTransposed = 1, kAdjoint = 2 };
enum Triangle : int { kLower = 0, kUpper = 1 };
enum Side : int { kLeft = 0, kRight = 1 };
enum Vectors : int { kNone = 0, kVectors = 1 };

// Functions of one type, in the order of kTypes.
inline constexpr std::array<Type, 4> kTypes{
    kReal32, kReal64, kComplex32, kComplex64};

}  // namespace cusolver

// clang-format off
#define TAEDA_CUSOLVER_FUNCTIONS(X)                                            \
  X(cusolverDnCreate, create, (cusolver::Handle*))                             \
  X(cusolverDnSetStream, set_stream, (cusolver::Handle, StreamHandle))         \
  X(cusolverDnCreateParams, create_params, (cusolver::Params*))                \
  X(cusolverDnXpotrf_bufferSize, cholesky_size,                                \
    (cusolver::Handle, cusolver::Params, int triangle, int64_t n,              \
     int type, const void* a, int64_t lda, int computes,                       \
     size_t* on_device, size_t* on_host))                                      \
  X(cusolverDnXpotrf, cholesky,                                                \
    (cusolver::Handle, cusolver::Params, int triangle, int64_t n,              \
     int type, void* a, int64_t lda, int computes,                             \
     void* on_device, size_t device_bytes,                                     \
     void* on_host, size_t host_bytes, int* info))                             \
  X(cusolverDnXgetrf_bufferSize, lu_size,                                      \
    (cusolver::Handle, cusolver::Params, int64_t m, int64_t n,                 \
     int type, const void* a, int64_t lda, int computes,                       \
     size_t* on_device, size_t* on_host))                                      \
  X(cusolverDnXgetrf, lu,                                                      \
    (cusolver::Handle, cusolver::Params, int64_t m, int64_t n,                 \
     int type, void* a, int64_t lda, int64_t* pivots, int computes,            \
     void* on_device, size_t device_bytes,                                     \
     void* on_host, size_t host_bytes, int* info))                             \
  X(cusolverDnXgetrs, lu_solve,                                                \
    (cusolver::Handle, cusolver::Params, int turn, int64_t n, int64_t right,   \
     int type, const void* a, int64_t lda, const int64_t* pivots,              \
     int b_type, void* b, int64_t ldb, int* info))                             \
  X(cusolverDnXgeqrf_bufferSize, qr_size,                                      \
    (cusolver::Handle, cusolver::Params, int64_t m, int64_t n,                 \
     int type, const void* a, int64_t lda, int tau_type, const void* tau,      \
     int computes, size_t* on_device, size_t* on_host))                        \
  X(cusolverDnXgeqrf, qr,                                                      \
    (cusolver::Handle, cusolver::Params, int64_t m, int64_t n,                 \
     int type, void* a, int64_t lda, int tau_type, void* tau, int computes,    \
     void* on_device, size_t device_bytes,                                     \
     void* on_host, size_t host_bytes, int* info))                             \
  X(cusolverDnXsyevd_bufferSize, eigh_size,                                    \
    (cusolver::Handle, cusolver::Params, int vectors, int triangle,            \
     int64_t n, int type, const void* a, int64_t lda,                          \
     int w_type, const void* w, int computes,                                  \
     size_t* on_device, size_t* on_host))                                      \
  X(cusolverDnXsyevd, eigh,                                                    \
    (cusolver::Handle, cusolver::Params, int vectors, int triangle,            \
     int64_t n, int type, void* a, int64_t lda, int w_type, void* w,           \
     int computes, void* on_device, size_t device_bytes,                       \
     void* on_host, size_t host_bytes, int* info))                             \
  X(cusolverDnXgesvd_bufferSize, svd_size,                                     \
    (cusolver::Handle, cusolver::Params, signed char u_job,                    \
     signed char vh_job, int64_t m, int64_t n,                                 \
     int type, const void* a, int64_t lda, int s_type, const void* s,          \
     int u_type, const void* u, int64_t ldu,                                   \
     int vh_type, const void* vh, int64_t ldvh, int computes,                  \
     size_t* on_device, size_t* on_host))                                      \
  X(cusolverDnXgesvd, svd,                                                     \
    (cusolver::Handle, cusolver::Params, signed char u_job,                    \
     signed char vh_job, int64_t m, int64_t n,                                 \
     int type, void* a, int64_t lda, int s_type, void* s,                      \
     int u_type, void* u, int64_t ldu,                                         \
     int vh_type, void* vh, int64_t ldvh, int computes,                        \
     void* on_device, size_t device_bytes,                                     \
     void* on_host, size_t host_bytes, int* info))

// Null where the library is older than they are.
#define TAEDA_CUSOLVER_NEWER_FUNCTIONS(X)                                      \
  X(cusolverDnXsyevBatched_bufferSize, eigh_batch_size,                        \
    (cusolver::Handle, cusolver::Params, int vectors, int triangle,            \
     int64_t n, int type, const void* a, int64_t lda,                          \
     int w_type, const void* w, int computes,                                  \
     size_t* on_device, size_t* on_host, int64_t count))                       \
  X(cusolverDnXsyevBatched, eigh_batch,                                        \
    (cusolver::Handle, cusolver::Params, int vectors, int triangle,            \
     int64_t n, int type, void* a, int64_t lda, int w_type, void* w,           \
     int computes, void* on_device, size_t device_bytes,                       \
     void* on_host, size_t host_bytes, int* info, int64_t count))              \
  X(cusolverDnXgeev_bufferSize, eig_size,                                      \
    (cusolver::Handle, cusolver::Params, int left, int right, int64_t n,       \
     int type, const void* a, int64_t lda, int w_type, const void* w,          \
     int vl_type, const void* vl, int64_t ldvl,                                \
     int vr_type, const void* vr, int64_t ldvr, int computes,                  \
     size_t* on_device, size_t* on_host))                                      \
  X(cusolverDnXgeev, eig,                                                      \
    (cusolver::Handle, cusolver::Params, int left, int right, int64_t n,       \
     int type, void* a, int64_t lda, int w_type, void* w,                      \
     int vl_type, void* vl, int64_t ldvl,                                      \
     int vr_type, void* vr, int64_t ldvr, int computes,                        \
     void* on_device, size_t device_bytes,                                     \
     void* on_host, size_t host_bytes, int* info))

// Functions that there is one of for each type: their names, of real and of
// complex numbers, behind the letter.
#define TAEDA_CUSOLVER_TYPED_FUNCTIONS(X)                                      \
  X(orgqr_bufferSize, ungqr_bufferSize, orthogonal_size,                       \
    (cusolver::Handle, int m, int n, int k, const void* a, int lda,            \
     const void* tau, int* elements))                                          \
  X(orgqr, ungqr, orthogonal,                                                  \
    (cusolver::Handle, int m, int n, int k, void* a, int lda,                  \
     const void* tau, void* work, int elements, int* info))                    \
  X(ormqr_bufferSize, unmqr_bufferSize, multiply_size,                         \
    (cusolver::Handle, int side, int turn, int m, int n, int k,                \
     const void* a, int lda, const void* tau, const void* c, int ldc,          \
     int* elements))                                                           \
  X(ormqr, unmqr, multiply,                                                    \
    (cusolver::Handle, int side, int turn, int m, int n, int k,                \
     const void* a, int lda, const void* tau, void* c, int ldc,                \
     void* work, int elements, int* info))
// clang-format on

struct Cusolver {
#define TAEDA_MEMBER(symbol, name, parameters) \
  cusolver::Status(*name) parameters;
  TAEDA_CUSOLVER_FUNCTIONS(TAEDA_MEMBER)
  TAEDA_CUSOLVER_NEWER_FUNCTIONS(TAEDA_MEMBER)
#undef TAEDA_MEMBER
#define TAEDA_MEMBER(real, complex, name, parameters) \
  std::array<cusolver::Status(*) parameters, 4> name;
  TAEDA_CUSOLVER_TYPED_FUNCTIONS(TAEDA_MEMBER)
#undef TAEDA_MEMBER
  std::string error;  // why it cannot be used; empty where it can
};

// Loaded at the first call, of which the answer is kept.
const Cusolver& cusolver_library();

}  // namespace taeda::cuda
