// cuSOLVER's factors under their names: Cholesky, LU, reflections.
#include "solver_calls.h"

using namespace emulator;

EXPORT cusolverDnCreate(cusolver::Handle* out) {
  std::lock_guard guard(Machine::get().mutex);
  *out = new cusolver::HandleObject;
  return 0;
}
EXPORT cusolverDnSetStream(cusolver::Handle handle, void* stream) {
  std::lock_guard guard(Machine::get().mutex);
  handle->stream = stream;
  return 0;
}
EXPORT cusolverDnCreateParams(cusolver::Params* out) {
  std::lock_guard guard(Machine::get().mutex);
  *out = new cusolver::ParamsObject;
  return 0;
}

// Cholesky -------------------------------------------------------------------

EXPORT cusolverDnXpotrf_bufferSize(cusolver::Handle,
                                   cusolver::Params,
                                   int triangle,
                                   int64_t n,
                                   int type,
                                   const void*,
                                   int64_t lda,
                                   int computes,
                                   size_t* on_device,
                                   size_t* on_host) {
  bool ok = is_one_of_two(triangle) && is_type(type) && computes == type &&
            n >= 0 && lda >= std::max<int64_t>(n, 1);
  if (!ok) return kInvalidValue;
  *on_device = device_bytes(n, n);
  *on_host = host_bytes(n);
  return 0;
}
EXPORT cusolverDnXpotrf(cusolver::Handle handle,
                        cusolver::Params,
                        int triangle,
                        int64_t n,
                        int type,
                        void* a,
                        int64_t lda,
                        int computes,
                        void* on_device,
                        size_t device_size,
                        void* on_host,
                        size_t host_size,
                        int* info) {
  std::lock_guard guard(Machine::get().mutex);
  Workspace has{on_device, device_size, on_host, host_size};
  bool ok = is_one_of_two(triangle) && is_type(type) && computes == type &&
            n >= 0 && lda == std::max<int64_t>(n, 1) && has.covers(n, n);
  if (!ok) return kInvalidValue;
  Part whole{a, n * n, type};
  return enqueue(
      handle->stream, "cusolverDnXpotrf", has, {whole}, {whole}, info, [=] {
        Int said = 0, rows = static_cast<Int>(n);
        Int stride = static_cast<Int>(lda);
        by_type(type, [&](auto t) {
          using T = decltype(t);
          lapack<T>().potrf(
              letter(triangle), &rows, static_cast<T*>(a), &stride, &said, 1);
        });
        return said;
      });
}

// LU -------------------------------------------------------------------------

EXPORT cusolverDnXgetrf_bufferSize(cusolver::Handle,
                                   cusolver::Params,
                                   int64_t m,
                                   int64_t n,
                                   int type,
                                   const void*,
                                   int64_t lda,
                                   int computes,
                                   size_t* on_device,
                                   size_t* on_host) {
  bool ok = is_type(type) && computes == type && m >= 0 && n >= 0 &&
            lda >= std::max<int64_t>(m, 1);
  if (!ok) return kInvalidValue;
  *on_device = device_bytes(m, n);
  *on_host = host_bytes(n);
  return 0;
}
EXPORT cusolverDnXgetrf(cusolver::Handle handle,
                        cusolver::Params,
                        int64_t m,
                        int64_t n,
                        int type,
                        void* a,
                        int64_t lda,
                        int64_t* pivots,
                        int computes,
                        void* on_device,
                        size_t device_size,
                        void* on_host,
                        size_t host_size,
                        int* info) {
  std::lock_guard guard(Machine::get().mutex);
  Workspace has{on_device, device_size, on_host, host_size};
  bool ok = is_type(type) && computes == type && m >= 0 && n >= 0 &&
            lda == std::max<int64_t>(m, 1) && has.covers(m, n) &&
            pivots != nullptr;
  if (!ok) return kInvalidValue;
  Part whole{a, m * n, type};
  int64_t k = std::min(m, n);
  Part places{pivots, k, cusolver::kReal64};
  return enqueue(handle->stream,
                 "cusolverDnXgetrf",
                 has,
                 {whole},
                 {whole, places},
                 info,
                 [=] {
                   Int said = 0, rows = static_cast<Int>(m);
                   Int columns = static_cast<Int>(n);
                   Int stride = static_cast<Int>(lda);
                   std::vector<Int> found(static_cast<size_t>(k + 1));
                   by_type(type, [&](auto t) {
                     using T = decltype(t);
                     lapack<T>().getrf(&rows,
                                       &columns,
                                       static_cast<T*>(a),
                                       &stride,
                                       found.data(),
                                       &said);
                   });
                   std::copy_n(found.begin(), k, pivots);
                   return said;
                 });
}
EXPORT cusolverDnXgetrs(cusolver::Handle handle,
                        cusolver::Params,
                        int turn,
                        int64_t n,
                        int64_t right,
                        int type,
                        const void* a,
                        int64_t lda,
                        const int64_t* pivots,
                        int b_type,
                        void* b,
                        int64_t ldb,
                        int* info) {
  std::lock_guard guard(Machine::get().mutex);
  bool ok = turn >= 0 && turn <= 2 && is_type(type) && b_type == type &&
            lda == std::max<int64_t>(n, 1) && ldb == lda && right >= 0;
  if (!ok) return kInvalidValue;
  Part whole{a, n * n, type}, places{pivots, n, cusolver::kReal64};
  Part sides{b, n * right, type};
  return enqueue(handle->stream,
                 "cusolverDnXgetrs",
                 {},
                 {whole, places, sides},
                 {sides},
                 info,
                 [=] {
                   Int said = 0, rows = static_cast<Int>(n);
                   Int columns = static_cast<Int>(right);
                   Int stride = static_cast<Int>(lda);
                   std::vector<Int> found(pivots, pivots + n);
                   by_type(type, [&](auto t) {
                     using T = decltype(t);
                     lapack<T>().getrs(&"NTC"[turn],
                                       &rows,
                                       &columns,
                                       static_cast<const T*>(a),
                                       &stride,
                                       found.data(),
                                       static_cast<T*>(b),
                                       &stride,
                                       &said,
                                       1);
                   });
                   return said;
                 });
}

// Reflections ----------------------------------------------------------------

EXPORT cusolverDnXgeqrf_bufferSize(cusolver::Handle,
                                   cusolver::Params,
                                   int64_t m,
                                   int64_t n,
                                   int type,
                                   const void*,
                                   int64_t lda,
                                   int tau_type,
                                   const void*,
                                   int computes,
                                   size_t* on_device,
                                   size_t* on_host) {
  bool ok = is_type(type) && tau_type == type && computes == type &&
            lda >= std::max<int64_t>(m, 1);
  if (!ok) return kInvalidValue;
  *on_device = device_bytes(m, n);
  *on_host = host_bytes(n);
  return 0;
}
EXPORT cusolverDnXgeqrf(cusolver::Handle handle,
                        cusolver::Params,
                        int64_t m,
                        int64_t n,
                        int type,
                        void* a,
                        int64_t lda,
                        int tau_type,
                        void* tau,
                        int computes,
                        void* on_device,
                        size_t device_size,
                        void* on_host,
                        size_t host_size,
                        int* info) {
  std::lock_guard guard(Machine::get().mutex);
  Workspace has{on_device, device_size, on_host, host_size};
  bool ok = is_type(type) && tau_type == type && computes == type &&
            lda == std::max<int64_t>(m, 1) && has.covers(m, n);
  if (!ok) return kInvalidValue;
  Part whole{a, m * n, type}, factors{tau, std::min(m, n), type};
  return enqueue(handle->stream,
                 "cusolverDnXgeqrf",
                 has,
                 {whole},
                 {whole, factors},
                 info,
                 [=] {
                   Int said = 0, rows = static_cast<Int>(m);
                   Int columns = static_cast<Int>(n);
                   Int stride = static_cast<Int>(lda);
                   by_type(type, [&](auto t) {
                     using T = decltype(t);
                     with_workspace<T>([&](T* work, Int* count) {
                       lapack<T>().geqrf(&rows,
                                         &columns,
                                         static_cast<T*>(a),
                                         &stride,
                                         static_cast<T*>(tau),
                                         work,
                                         count,
                                         &said);
                     });
                   });
                   return said;
                 });
}

namespace {

int elements_for(int m, int n) { return 16 + m + n; }

int orthogonal(cusolver::Handle handle,
               int type,
               int m,
               int n,
               int k,
               void* a,
               int lda,
               const void* tau,
               void* work,
               int elements,
               int* info) {
  std::lock_guard guard(Machine::get().mutex);
  Workspace has{
      work, static_cast<size_t>(elements) * size_of(type), nullptr, 0};
  bool ok = m >= n && n >= k && k >= 0 && lda == std::max(m, 1) &&
            work != nullptr && elements >= elements_for(m, n);
  if (!ok) return kInvalidValue;
  Part columns{a, int64_t{m} * k, type}, factors{tau, k, type};
  Part whole{a, int64_t{m} * n, type};
  return enqueue(handle->stream,
                 "cusolverDn<t>orgqr",
                 has,
                 {columns, factors},
                 {whole},
                 info,
                 [=] {
                   Int said = 0;
                   by_type(type, [&](auto t) {
                     using T = decltype(t);
                     with_workspace<T>([&](T* memory, Int* count) {
                       lapack<T>().orgqr(&m,
                                         &n,
                                         &k,
                                         static_cast<T*>(a),
                                         &lda,
                                         static_cast<const T*>(tau),
                                         memory,
                                         count,
                                         &said);
                     });
                   });
                   return said;
                 });
}

int multiply(cusolver::Handle handle,
             int type,
             int side,
             int turn,
             int m,
             int n,
             int k,
             const void* a,
             int lda,
             const void* tau,
             void* c,
             int ldc,
             void* work,
             int elements,
             int* info) {
  std::lock_guard guard(Machine::get().mutex);
  Workspace has{
      work, static_cast<size_t>(elements) * size_of(type), nullptr, 0};
  int rows = side == cusolver::kLeft ? m : n;
  bool turns =
      turn == cusolver::kAsIs ||
      turn == (is_real(type) ? cusolver::kTransposed : cusolver::kAdjoint);
  bool ok = is_one_of_two(side) && turns && rows >= k &&
            lda == std::max(rows, 1) && ldc == std::max(m, 1) &&
            work != nullptr && elements >= elements_for(m, n);
  if (!ok) return kInvalidValue;
  Part columns{a, int64_t{rows} * k, type}, factors{tau, k, type};
  Part whole{c, int64_t{m} * n, type};
  return enqueue(handle->stream,
                 "cusolverDn<t>ormqr",
                 has,
                 {columns, factors, whole},
                 {whole},
                 info,
                 [=] {
                   Int said = 0;
                   by_type(type, [&](auto t) {
                     using T = decltype(t);
                     with_workspace<T>([&](T* memory, Int* count) {
                       lapack<T>().ormqr(&"LR"[side],
                                         &"NTC"[turn],
                                         &m,
                                         &n,
                                         &k,
                                         static_cast<const T*>(a),
                                         &lda,
                                         static_cast<const T*>(tau),
                                         static_cast<T*>(c),
                                         &ldc,
                                         memory,
                                         count,
                                         &said,
                                         1,
                                         1);
                     });
                   });
                   return said;
                 });
}

}  // namespace

#define TAEDA_TYPED(letter, group, type)                                     \
  EXPORT cusolverDn##letter##group##gqr_bufferSize(cusolver::Handle,         \
                                                   int m,                    \
                                                   int n,                    \
                                                   int k,                    \
                                                   const void*,              \
                                                   int lda,                  \
                                                   const void*,              \
                                                   int* elements) {          \
    if (m < n || n < k || lda < std::max(m, 1)) return kInvalidValue;        \
    *elements = elements_for(m, n);                                          \
    return 0;                                                                \
  }                                                                          \
  EXPORT cusolverDn##letter##group##gqr(cusolver::Handle handle,             \
                                        int m,                               \
                                        int n,                               \
                                        int k,                               \
                                        void* a,                             \
                                        int lda,                             \
                                        const void* tau,                     \
                                        void* work,                          \
                                        int elements,                        \
                                        int* info) {                         \
    return orthogonal(                                                       \
        handle, cusolver::type, m, n, k, a, lda, tau, work, elements, info); \
  }                                                                          \
  EXPORT cusolverDn##letter##group##mqr_bufferSize(cusolver::Handle,         \
                                                   int,                      \
                                                   int,                      \
                                                   int m,                    \
                                                   int n,                    \
                                                   int,                      \
                                                   const void*,              \
                                                   int,                      \
                                                   const void*,              \
                                                   const void*,              \
                                                   int,                      \
                                                   int* elements) {          \
    *elements = elements_for(m, n);                                          \
    return 0;                                                                \
  }                                                                          \
  EXPORT cusolverDn##letter##group##mqr(cusolver::Handle handle,             \
                                        int side,                            \
                                        int turn,                            \
                                        int m,                               \
                                        int n,                               \
                                        int k,                               \
                                        const void* a,                       \
                                        int lda,                             \
                                        const void* tau,                     \
                                        void* c,                             \
                                        int ldc,                             \
                                        void* work,                          \
                                        int elements,                        \
                                        int* info) {                         \
    return multiply(handle,                                                  \
                    cusolver::type,                                          \
                    side,                                                    \
                    turn,                                                    \
                    m,                                                       \
                    n,                                                       \
                    k,                                                       \
                    a,                                                       \
                    lda,                                                     \
                    tau,                                                     \
                    c,                                                       \
                    ldc,                                                     \
                    work,                                                    \
                    elements,                                                \
                    info);                                                   \
  }
TAEDA_TYPED(S, or, kReal32)
TAEDA_TYPED(D, or, kReal64)
TAEDA_TYPED(C, un, kComplex32)
TAEDA_TYPED(Z, un, kComplex64)
#undef TAEDA_TYPED
