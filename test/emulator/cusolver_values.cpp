// cuSOLVER's eigenvalues and singular values under their names.
#include "solver_calls.h"

#include <type_traits>

using namespace emulator;

namespace {

template <class T>
int hermitian(const char* job, const char* uplo, Int n, T* a, real_t<T>* w) {
  Int info = 0, lda = std::max(n, 1), query = -1, wholes = 0;
  T size{};
  if constexpr (std::is_same_v<T, real_t<T>>) {
    auto call = [&](T* work, Int* count, Int* whole, Int* whole_count) {
      lapack<T>().syevd(job,
                        uplo,
                        &n,
                        a,
                        &lda,
                        w,
                        work,
                        count,
                        whole,
                        whole_count,
                        &info,
                        1,
                        1);
    };
    call(&size, &query, &wholes, &query);
    Int count = static_cast<Int>(size) + 1;
    std::vector<T> work(static_cast<size_t>(count));
    std::vector<Int> whole(static_cast<size_t>(wholes));
    call(work.data(), &count, whole.data(), &wholes);
  } else {
    real_t<T> real_size{};
    auto call = [&](T* work,
                    Int* count,
                    real_t<T>* real,
                    Int* real_count,
                    Int* whole,
                    Int* whole_count) {
      lapack<T>().syevd(job,
                        uplo,
                        &n,
                        a,
                        &lda,
                        w,
                        work,
                        count,
                        real,
                        real_count,
                        whole,
                        whole_count,
                        &info,
                        1,
                        1);
    };
    call(&size, &query, &real_size, &query, &wholes, &query);
    Int count = static_cast<Int>(size.real()) + 1;
    Int reals = static_cast<Int>(real_size) + 1;
    std::vector<T> work(static_cast<size_t>(count));
    std::vector<real_t<T>> real(static_cast<size_t>(reals));
    std::vector<Int> whole(static_cast<size_t>(wholes));
    call(work.data(), &count, real.data(), &reals, whole.data(), &wholes);
  }
  return info;
}

template <class T>
int singular(char job, Int m, Int n, T* a, real_t<T>* s, T* u, T* vh) {
  Int info = 0, lda = std::max(m, 1), ldvh = std::max(n, 1);
  std::vector<real_t<T>> reals(static_cast<size_t>(5 * std::max(n, 1)));
  with_workspace<T>([&](T* work, Int* count) {
    if constexpr (std::is_same_v<T, real_t<T>>) {
      lapack<T>().gesvd(&job,
                        &job,
                        &m,
                        &n,
                        a,
                        &lda,
                        s,
                        u,
                        &lda,
                        vh,
                        &ldvh,
                        work,
                        count,
                        &info,
                        1,
                        1);
    } else {
      lapack<T>().gesvd(&job,
                        &job,
                        &m,
                        &n,
                        a,
                        &lda,
                        s,
                        u,
                        &lda,
                        vh,
                        &ldvh,
                        work,
                        count,
                        reals.data(),
                        &info,
                        1,
                        1);
    }
  });
  return info;
}

// Eigenvalues are complex, vectors as LAPACK gives them.
template <class T>
int general(bool vectors, Int n, T* a, taeda::complex<real_t<T>>* w, T* v) {
  Int info = 0, lda = std::max(n, 1), one = 1;
  std::vector<real_t<T>> re(static_cast<size_t>(2 * n + 1)), im(re);
  const char* job = vectors ? "V" : "N";
  with_workspace<T>([&](T* work, Int* count) {
    if constexpr (std::is_same_v<T, real_t<T>>) {
      lapack<T>().geev("N",
                       job,
                       &n,
                       a,
                       &lda,
                       re.data(),
                       im.data(),
                       nullptr,
                       &one,
                       v,
                       &lda,
                       work,
                       count,
                       &info,
                       1,
                       1);
    } else {
      lapack<T>().geev("N",
                       job,
                       &n,
                       a,
                       &lda,
                       w,
                       nullptr,
                       &one,
                       v,
                       &lda,
                       work,
                       count,
                       re.data(),
                       &info,
                       1,
                       1);
    }
  });
  for (Int i = 0; i < n && std::is_same_v<T, real_t<T>>; ++i) {
    w[i] = {re[static_cast<size_t>(i)], im[static_cast<size_t>(i)]};
  }
  return info;
}

}  // namespace

// Hermitian matrices ---------------------------------------------------------

EXPORT cusolverDnXsyevd_bufferSize(cusolver::Handle,
                                   cusolver::Params,
                                   int vectors,
                                   int triangle,
                                   int64_t n,
                                   int type,
                                   const void*,
                                   int64_t lda,
                                   int w_type,
                                   const void*,
                                   int computes,
                                   size_t* on_device,
                                   size_t* on_host) {
  bool ok = is_one_of_two(vectors) && is_one_of_two(triangle) &&
            is_type(type) && w_type == real_type(type) && computes == type &&
            lda >= std::max<int64_t>(n, 1);
  if (!ok) return kInvalidValue;
  *on_device = device_bytes(n, n);
  *on_host = host_bytes(n);
  return 0;
}
EXPORT cusolverDnXsyevBatched_bufferSize(cusolver::Handle handle,
                                         cusolver::Params params,
                                         int vectors,
                                         int triangle,
                                         int64_t n,
                                         int type,
                                         const void* a,
                                         int64_t lda,
                                         int w_type,
                                         const void* w,
                                         int computes,
                                         size_t* on_device,
                                         size_t* on_host,
                                         int64_t count) {
  if (count < 1) return kInvalidValue;
  return cusolverDnXsyevd_bufferSize(handle,
                                     params,
                                     vectors,
                                     triangle,
                                     n,
                                     type,
                                     a,
                                     lda,
                                     w_type,
                                     w,
                                     computes,
                                     on_device,
                                     on_host);
}
EXPORT cusolverDnXsyevBatched(cusolver::Handle handle,
                              cusolver::Params,
                              int vectors,
                              int triangle,
                              int64_t n,
                              int type,
                              void* a,
                              int64_t lda,
                              int w_type,
                              void* w,
                              int computes,
                              void* on_device,
                              size_t device_size,
                              void* on_host,
                              size_t host_size,
                              int* info,
                              int64_t count) {
  std::lock_guard guard(Machine::get().mutex);
  Workspace has{on_device, device_size, on_host, host_size};
  bool ok = is_one_of_two(vectors) && is_one_of_two(triangle) &&
            is_type(type) && w_type == real_type(type) && computes == type &&
            lda == std::max<int64_t>(n, 1) && has.covers(n, n);
  if (!ok) return kInvalidValue;
  Part whole{a, n * n * count, type}, values{w, n * count, w_type};
  return enqueue(handle->stream,
                 "cusolverDnXsyevd",
                 has,
                 {whole},
                 {whole, values},
                 nullptr,
                 [=] {
                   by_type(type, [&](auto t) {
                     using T = decltype(t);
                     for (int64_t i = 0; i < count; ++i) {
                       put_info(
                           info + i,
                           hermitian<T>(vectors ? "V" : "N",
                                        letter(triangle),
                                        static_cast<Int>(n),
                                        static_cast<T*>(a) + i * n * n,
                                        static_cast<real_t<T>*>(w) + i * n));
                     }
                   });
                   return 0;
                 });
}
EXPORT cusolverDnXsyevd(cusolver::Handle handle,
                        cusolver::Params params,
                        int vectors,
                        int triangle,
                        int64_t n,
                        int type,
                        void* a,
                        int64_t lda,
                        int w_type,
                        void* w,
                        int computes,
                        void* on_device,
                        size_t device_size,
                        void* on_host,
                        size_t host_size,
                        int* info) {
  return cusolverDnXsyevBatched(handle,
                                params,
                                vectors,
                                triangle,
                                n,
                                type,
                                a,
                                lda,
                                w_type,
                                w,
                                computes,
                                on_device,
                                device_size,
                                on_host,
                                host_size,
                                info,
                                1);
}

// Singular values ------------------------------------------------------------

EXPORT cusolverDnXgesvd_bufferSize(cusolver::Handle,
                                   cusolver::Params,
                                   signed char u_job,
                                   signed char vh_job,
                                   int64_t m,
                                   int64_t n,
                                   int type,
                                   const void*,
                                   int64_t lda,
                                   int s_type,
                                   const void*,
                                   int u_type,
                                   const void*,
                                   int64_t ldu,
                                   int vh_type,
                                   const void*,
                                   int64_t ldvh,
                                   int computes,
                                   size_t* on_device,
                                   size_t* on_host) {
  bool job = u_job == vh_job && (u_job == 'N' || u_job == 'S' || u_job == 'A');
  bool types = is_type(type) && s_type == real_type(type) && u_type == type &&
               vh_type == type && computes == type;
  bool ok = job && types && m >= n && lda >= std::max<int64_t>(m, 1) &&
            ldu >= std::max<int64_t>(m, 1) && ldvh >= std::max<int64_t>(n, 1);
  if (!ok) return kInvalidValue;
  *on_device = device_bytes(m, n);
  *on_host = host_bytes(n);
  return 0;
}
EXPORT cusolverDnXgesvd(cusolver::Handle handle,
                        cusolver::Params params,
                        signed char u_job,
                        signed char vh_job,
                        int64_t m,
                        int64_t n,
                        int type,
                        void* a,
                        int64_t lda,
                        int s_type,
                        void* s,
                        int u_type,
                        void* u,
                        int64_t ldu,
                        int vh_type,
                        void* vh,
                        int64_t ldvh,
                        int computes,
                        void* on_device,
                        size_t device_size,
                        void* on_host,
                        size_t host_size,
                        int* info) {
  std::lock_guard guard(Machine::get().mutex);
  Workspace has{on_device, device_size, on_host, host_size};
  size_t unused[2];
  int status = cusolverDnXgesvd_bufferSize(handle,
                                           params,
                                           u_job,
                                           vh_job,
                                           m,
                                           n,
                                           type,
                                           a,
                                           lda,
                                           s_type,
                                           s,
                                           u_type,
                                           u,
                                           ldu,
                                           vh_type,
                                           vh,
                                           ldvh,
                                           computes,
                                           &unused[0],
                                           &unused[1]);
  bool vectors = u_job != 'N';
  if (status != 0 || !has.covers(m, n)) return kInvalidValue;
  if (vectors && (u == nullptr || vh == nullptr)) return kInvalidValue;
  Part whole{a, m * n, type}, values{s, n, s_type};
  std::vector<Part> results{whole, values};
  if (vectors) results.push_back({u, m * (u_job == 'A' ? m : n), type});
  if (vectors) results.push_back({vh, n * n, type});
  return enqueue(
      handle->stream, "cusolverDnXgesvd", has, {whole}, results, info, [=] {
        int said = 0;
        by_type(type, [&](auto t) {
          using T = decltype(t);
          said = singular<T>(static_cast<char>(u_job),
                             static_cast<Int>(m),
                             static_cast<Int>(n),
                             static_cast<T*>(a),
                             static_cast<real_t<T>*>(s),
                             static_cast<T*>(u),
                             static_cast<T*>(vh));
        });
        return said;
      });
}

// General matrices -----------------------------------------------------------

EXPORT cusolverDnXgeev_bufferSize(cusolver::Handle,
                                  cusolver::Params,
                                  int left,
                                  int right,
                                  int64_t n,
                                  int type,
                                  const void*,
                                  int64_t lda,
                                  int w_type,
                                  const void*,
                                  int vl_type,
                                  const void*,
                                  int64_t,
                                  int vr_type,
                                  const void*,
                                  int64_t ldvr,
                                  int computes,
                                  size_t* on_device,
                                  size_t* on_host) {
  // Of the ways that there are, the one with complex values; left vectors are
  // not there.
  bool ok = left == 0 && is_one_of_two(right) && is_type(type) &&
            w_type == real_type(type) + 4 && vl_type == type &&
            vr_type == type && computes == type &&
            lda >= std::max<int64_t>(n, 1) && ldvr >= (right ? n : 1);
  if (!ok) return kInvalidValue;
  *on_device = device_bytes(n, n);
  *on_host = host_bytes(n);
  return 0;
}
EXPORT cusolverDnXgeev(cusolver::Handle handle,
                       cusolver::Params params,
                       int left,
                       int right,
                       int64_t n,
                       int type,
                       void* a,
                       int64_t lda,
                       int w_type,
                       void* w,
                       int vl_type,
                       void* vl,
                       int64_t ldvl,
                       int vr_type,
                       void* vr,
                       int64_t ldvr,
                       int computes,
                       void* on_device,
                       size_t device_size,
                       void* on_host,
                       size_t host_size,
                       int* info) {
  std::lock_guard guard(Machine::get().mutex);
  Workspace has{on_device, device_size, on_host, host_size};
  size_t unused[2];
  int status = cusolverDnXgeev_bufferSize(handle,
                                          params,
                                          left,
                                          right,
                                          n,
                                          type,
                                          a,
                                          lda,
                                          w_type,
                                          w,
                                          vl_type,
                                          vl,
                                          ldvl,
                                          vr_type,
                                          vr,
                                          ldvr,
                                          computes,
                                          &unused[0],
                                          &unused[1]);
  if (status != 0 || !has.covers(n, n)) return kInvalidValue;
  if (right != 0 && vr == nullptr) return kInvalidValue;
  Part whole{a, n * n, type}, values{w, n, w_type};
  std::vector<Part> results{whole, values};
  if (right != 0) results.push_back({vr, n * n, type});
  return enqueue(
      handle->stream, "cusolverDnXgeev", has, {whole}, results, info, [=] {
        int said = 0;
        by_type(type, [&](auto t) {
          using T = decltype(t);
          said = general<T>(right != 0,
                            static_cast<Int>(n),
                            static_cast<T*>(a),
                            static_cast<taeda::complex<real_t<T>>*>(w),
                            static_cast<T*>(vr));
        });
        return said;
      });
}
