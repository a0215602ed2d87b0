// See Note [Factors by cuSOLVER].
#include <taeda/aten/native/cuda/solver.h>

#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/cuda/program.h>
#include <taeda/aten/settings.h>
#include <taeda/c10/cuda/cublas.h>
#include <taeda/c10/cuda/cusolver.h>
#include <taeda/c10/cuda/stream.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace taeda::cuda {

namespace {

void check_call(int status,
                const char* op,
                const char* library,
                const char* call) {
  TAEDA_CHECK(status == 0,
              op,
              ": CUDA error: ",
              library,
              " status ",
              status,
              " when calling ",
              call);
}

// Of cusolver::kTypes.
size_t type_index(ScalarType t) {
  switch (t) {
    case kFloat:
      return 0;
    case kDouble:
      return 1;
    case kComplexFloat:
      return 2;
    default:
      TAEDA_INTERNAL_ASSERT(t == kComplexDouble, "no factors of ", t);
      return 3;
  }
}
cusolver::Type type_of(const Tensor& t) {
  return cusolver::kTypes[type_index(t.dtype())];
}

int narrow(const char* op, int64_t n) {
  TAEDA_CHECK(n <= std::numeric_limits<int>::max(),
              op,
              ": cuSOLVER and cuBLAS take matrices of at most 2^31 - 1 rows, "
              "got ",
              n);
  return static_cast<int>(n);
}
int64_t leading(int64_t rows) { return std::max<int64_t>(rows, 1); }
int64_t leading_of(const Tensor& t) { return leading(t.size(-2)); }

int64_t matrices_of(const Tensor& t) {
  int64_t count = 1;
  for (size_t d = 0; d + 2 < t.sizes().size(); ++d) count *= t.sizes()[d];
  return count;
}

// Item `i` of things of `each` elements.
void* item(const Tensor& t, int64_t i, int64_t each) {
  return static_cast<char*>(t.mutable_raw_data()) + i * each * t.itemsize();
}
void* matrix(const Tensor& t, int64_t i) {
  return item(t, i, t.size(-2) * t.size(-1));
}
void* vector(const Tensor& t, int64_t i) { return item(t, i, t.size(-1)); }
int* report(const Tensor& info, int64_t i) {
  return info.mutable_data<int>() + i;
}

// A library's handle in a stream. Never destroyed.
template <class Handle>
struct Entry {
  std::mutex mutex;
  Handle handle = nullptr;
  cusolver::Params params = nullptr;
};
template <class Handle>
struct Entries {
  std::mutex mutex;
  std::map<std::pair<int, StreamHandle>, std::unique_ptr<Entry<Handle>>> all;

  Entry<Handle>& of(int device, StreamHandle stream) {
    std::lock_guard guard(mutex);
    auto& found = all[{device, stream}];
    if (found == nullptr) found = std::make_unique<Entry<Handle>>();
    return *found;
  }
};
using Solver = Entry<cusolver::Handle>;
using Triangles = Entry<cublas::Handle>;

// Under the entry's lock.
void open(const char* op, Solver& solver, StreamHandle stream) {
  if (solver.handle != nullptr) return;
  const Cusolver& library = cusolver_library();
  cusolver::Handle made = nullptr;
  check_call(library.create(&made), op, "cuSOLVER", "cusolverDnCreate");
  check_call(
      library.set_stream(made, stream), op, "cuSOLVER", "cusolverDnSetStream");
  check_call(library.create_params(&solver.params),
             op,
             "cuSOLVER",
             "cusolverDnCreateParams");
  solver.handle = made;
}

struct Scratch {
  size_t device_bytes = 0, host_bytes = 0;
  void* device = nullptr;
  void* host = nullptr;
};

// `size` asks for what a call needs, then `call(solver, i, scratch)` is made
// for each i. `name` is the function's.
template <class Size, class Call>
void run(const char* op,
         const char* name,
         const Tensor& a,
         int64_t count,
         Size size,
         Call call) {
  static auto& entries = *new Entries<cusolver::Handle>;
  int device = a.device().index;
  DeviceGuard guard(device);
  use_context();
  StreamHandle stream = handle_of(current_stream());
  Solver& solver = entries.of(device, stream);
  Scratch scratch;
  {
    std::lock_guard lock(solver.mutex);
    open(op, solver, stream);
    check_call(size(solver, scratch), op, "cuSOLVER", name);
  }
  // No lock is held: taking memory may need the interpreter's.
  TensorBase workspace;
  std::vector<char> on_host(scratch.host_bytes);
  scratch.host = on_host.data();
  if (scratch.device_bytes > 0) {
    auto bytes = static_cast<int64_t>(scratch.device_bytes);
    workspace = make_tensor(op, {&bytes, 1}, kByte, a.device());
    scratch.device = workspace.mutable_raw_data();
  }
  {
    std::lock_guard lock(solver.mutex);
    for (int64_t i = 0; i < count; ++i) {
      check_call(call(solver, i, scratch), op, "cuSOLVER", name);
    }
  }
  finish_launch();
}

// A generic function: `arguments(i)` is what its call for matrix i has in
// common with the one that asks for workspace, `more` what both have at their
// ends.
template <class Size, class Call, class Arguments, class... More>
void run_generic(const char* op,
                 const char* name,
                 const Tensor& a,
                 int64_t count,
                 const Tensor& info,
                 Size size,
                 Call call,
                 Arguments arguments,
                 More... more) {
  run(
      op,
      name,
      a,
      count,
      [&](Solver& s, Scratch& needs) {
        auto ask = [&](auto... given) {
          return size(s.handle,
                      s.params,
                      given...,
                      &needs.device_bytes,
                      &needs.host_bytes,
                      more...);
        };
        return std::apply(ask, arguments(0));
      },
      [&](Solver& s, int64_t i, const Scratch& has) {
        auto make = [&](auto... given) {
          return call(s.handle,
                      s.params,
                      given...,
                      has.device,
                      has.device_bytes,
                      has.host,
                      has.host_bytes,
                      report(info, i),
                      more...);
        };
        return std::apply(make, arguments(i));
      });
}

bool warned_of(const std::string& error,
               const char* what,
               std::atomic<bool>& warned) {
  if (TAEDA_LIKELY(error.empty())) return true;
  if (!warned.exchange(true)) {
    warn(str_cat(
        "CUDA: ", what, " run Taeda's own kernels, which are slower: ", error));
  }
  return false;
}

// What a factor says of each matrix where nobody asks.
Tensor unread_reports(const char* op, const Tensor& a) {
  int64_t count = matrices_of(a);
  return make_tensor(op, {&count, 1}, kInt, a.device());
}

// A size in elements, as the functions of one type tell it.
int told(Scratch& scratch, int elements, const Tensor& a) {
  scratch.device_bytes =
      static_cast<size_t>(elements) * static_cast<size_t>(a.itemsize());
  return elements;
}

}  // namespace

bool has_cusolver() {
  static std::atomic<bool> warned{false};
  return warned_of(cusolver_library().error, "factors of matrices", warned);
}

bool has_triangles() {
  static std::atomic<bool> warned{false};
  return warned_of(
      cublas_library().error, "systems of triangular matrices", warned);
}

bool has_general_eigenvalues() {
  return has_cusolver() && cusolver_library().eig != nullptr;
}

LinalgLibrary preferred_linalg() {
  return static_cast<LinalgLibrary>(
      settings::linalg_library.load(std::memory_order_relaxed));
}

void cholesky_by_library(const char* op,
                         const Tensor& a,
                         bool upper,
                         const Tensor& info) {
  const Cusolver& library = cusolver_library();
  int64_t n = a.size(-1), lda = leading(n);
  int type = type_of(a), triangle = upper ? cusolver::kUpper : cusolver::kLower;
  run_generic(op,
              "cusolverDnXpotrf",
              a,
              matrices_of(a),
              info,
              library.cholesky_size,
              library.cholesky,
              [&](int64_t i) {
                return std::tuple(triangle, n, type, matrix(a, i), lda, type);
              });
}

void lu_by_library(const char* op,
                   const Tensor& a,
                   const Tensor& pivots,
                   const Tensor& info) {
  const Cusolver& library = cusolver_library();
  int64_t m = a.size(-2), n = a.size(-1), lda = leading(m);
  int type = type_of(a);
  run(
      op,
      "cusolverDnXgetrf",
      a,
      matrices_of(a),
      [&](Solver& s, Scratch& needs) {
        return library.lu_size(s.handle,
                               s.params,
                               m,
                               n,
                               type,
                               matrix(a, 0),
                               lda,
                               type,
                               &needs.device_bytes,
                               &needs.host_bytes);
      },
      [&](Solver& s, int64_t i, const Scratch& has) {
        return library.lu(s.handle,
                          s.params,
                          m,
                          n,
                          type,
                          matrix(a, i),
                          lda,
                          static_cast<int64_t*>(vector(pivots, i)),
                          type,
                          has.device,
                          has.device_bytes,
                          has.host,
                          has.host_bytes,
                          report(info, i));
      });
}

void lu_solve_by_library(const char* op,
                         const Tensor& lu,
                         const Tensor& pivots,
                         const Tensor& x) {
  const Cusolver& library = cusolver_library();
  int64_t n = lu.size(-1), lda = leading(n), right = x.size(-1);
  int type = type_of(lu);
  Tensor unread = unread_reports(op, lu);
  run(
      op,
      "cusolverDnXgetrs",
      lu,
      matrices_of(lu),
      [](Solver&, Scratch&) { return 0; },
      [&](Solver& s, int64_t i, const Scratch&) {
        return library.lu_solve(s.handle,
                                s.params,
                                cusolver::kAsIs,
                                n,
                                right,
                                type,
                                matrix(lu, i),
                                lda,
                                static_cast<int64_t*>(vector(pivots, i)),
                                type,
                                matrix(x, i),
                                lda,
                                report(unread, i));
      });
}

void qr_by_library(const char* op, const Tensor& a, const Tensor& tau) {
  const Cusolver& library = cusolver_library();
  int64_t m = a.size(-2), n = a.size(-1), lda = leading(m);
  int type = type_of(a);
  run_generic(op,
              "cusolverDnXgeqrf",
              a,
              matrices_of(a),
              unread_reports(op, a),
              library.qr_size,
              library.qr,
              [&](int64_t i) {
                return std::tuple(
                    m, n, type, matrix(a, i), lda, type, vector(tau, i), type);
              });
}

void orthogonal_by_library(const char* op, const Tensor& q, const Tensor& tau) {
  const Cusolver& library = cusolver_library();
  int m = narrow(op, q.size(-2)), n = narrow(op, q.size(-1));
  int k = narrow(op, tau.size(-1)), lda = narrow(op, leading_of(q));
  size_t type = type_index(q.dtype());
  Tensor unread = unread_reports(op, q);
  int elements = 0;
  run(
      op,
      "cusolverDn<t>orgqr",
      q,
      matrices_of(q),
      [&](Solver& s, Scratch& needs) {
        int status = library.orthogonal_size[type](
            s.handle, m, n, k, matrix(q, 0), lda, vector(tau, 0), &elements);
        told(needs, elements, q);
        return status;
      },
      [&](Solver& s, int64_t i, const Scratch& has) {
        return library.orthogonal[type](s.handle,
                                        m,
                                        n,
                                        k,
                                        matrix(q, i),
                                        lda,
                                        vector(tau, i),
                                        has.device,
                                        elements,
                                        report(unread, i));
      });
}

void multiply_by_library(const char* op,
                         const Tensor& from,
                         const Tensor& tau,
                         const Tensor& c,
                         bool left,
                         bool adjoint) {
  const Cusolver& library = cusolver_library();
  int m = narrow(op, c.size(-2)), n = narrow(op, c.size(-1));
  int k = narrow(op, tau.size(-1)), lda = narrow(op, leading_of(from));
  int side = left ? cusolver::kLeft : cusolver::kRight;
  int turned = c.is_complex() ? cusolver::kAdjoint : cusolver::kTransposed;
  int turn = adjoint ? turned : cusolver::kAsIs;
  size_t type = type_index(c.dtype());
  Tensor unread = unread_reports(op, c);
  int elements = 0;
  run(
      op,
      "cusolverDn<t>ormqr",
      c,
      matrices_of(c),
      [&](Solver& s, Scratch& needs) {
        int status = library.multiply_size[type](s.handle,
                                                 side,
                                                 turn,
                                                 m,
                                                 n,
                                                 k,
                                                 matrix(from, 0),
                                                 lda,
                                                 vector(tau, 0),
                                                 matrix(c, 0),
                                                 m,
                                                 &elements);
        told(needs, elements, c);
        return status;
      },
      [&](Solver& s, int64_t i, const Scratch& has) {
        return library.multiply[type](s.handle,
                                      side,
                                      turn,
                                      m,
                                      n,
                                      k,
                                      matrix(from, i),
                                      lda,
                                      vector(tau, i),
                                      matrix(c, i),
                                      m,
                                      has.device,
                                      elements,
                                      report(unread, i));
      });
}

void eigh_by_library(const char* op,
                     const Tensor& a,
                     bool upper,
                     bool vectors,
                     const Tensor& w,
                     const Tensor& info) {
  const Cusolver& library = cusolver_library();
  int64_t n = a.size(-1), count = matrices_of(a), lda = leading(n);
  int type = type_of(a), w_type = type_of(w);
  int triangle = upper ? cusolver::kUpper : cusolver::kLower;
  int wanted = vectors ? cusolver::kVectors : cusolver::kNone;
  auto arguments = [&](int64_t i) {
    return std::tuple(wanted,
                      triangle,
                      n,
                      type,
                      matrix(a, i),
                      lda,
                      w_type,
                      vector(w, i),
                      type);
  };
  // One call for all of a batch, where there is one.
  if (count > 1 && library.eigh_batch != nullptr) {
    run_generic(op,
                "cusolverDnXsyevBatched",
                a,
                1,
                info,
                library.eigh_batch_size,
                library.eigh_batch,
                arguments,
                count);
  } else {
    run_generic(op,
                "cusolverDnXsyevd",
                a,
                count,
                info,
                library.eigh_size,
                library.eigh,
                arguments);
  }
}

void svd_by_library(const char* op,
                    const Tensor& a,
                    const Tensor& u,
                    const Tensor& s_values,
                    const Tensor& vh,
                    const Tensor& info) {
  const Cusolver& library = cusolver_library();
  int64_t m = a.size(-2), n = a.size(-1);
  int type = type_of(a), s_type = type_of(s_values);
  bool vectors = u.defined();
  auto job = static_cast<signed char>(!vectors          ? 'N'
                                      : u.size(-1) == m ? 'A'
                                                        : 'S');
  auto side = [&](const Tensor& t, int64_t i) {
    return vectors ? matrix(t, i) : nullptr;
  };
  run_generic(op,
              "cusolverDnXgesvd",
              a,
              matrices_of(a),
              info,
              library.svd_size,
              library.svd,
              [&](int64_t i) {
                return std::tuple(job,
                                  job,
                                  m,
                                  n,
                                  type,
                                  matrix(a, i),
                                  leading(m),
                                  s_type,
                                  vector(s_values, i),
                                  type,
                                  side(u, i),
                                  leading(m),
                                  type,
                                  side(vh, i),
                                  leading(n),
                                  type);
              });
}

void eig_by_library(const char* op,
                    const Tensor& a,
                    const Tensor& w,
                    const Tensor& v,
                    const Tensor& info) {
  const Cusolver& library = cusolver_library();
  int64_t n = a.size(-1), lda = leading(n);
  int type = type_of(a), w_type = type_of(w);
  int right = v.defined() ? cusolver::kVectors : cusolver::kNone;
  auto vectors = [&](int64_t i) {
    return v.defined() ? matrix(v, i) : nullptr;
  };
  run_generic(op,
              "cusolverDnXgeev",
              a,
              matrices_of(a),
              info,
              library.eig_size,
              library.eig,
              [&](int64_t i) {
                return std::tuple(cusolver::kNone,
                                  right,
                                  n,
                                  type,
                                  matrix(a, i),
                                  lda,
                                  w_type,
                                  vector(w, i),
                                  type,
                                  nullptr,
                                  lda,
                                  type,
                                  vectors(i),
                                  lda,
                                  type);
              });
}

void triangles_by_library(const char* op,
                          const Tensor& a,
                          const Tensor& x,
                          bool upper,
                          bool left,
                          bool unit) {
  static auto& entries = *new Entries<cublas::Handle>;
  const Cublas& library = cublas_library();
  int device = a.device().index;
  DeviceGuard guard(device);
  use_context();
  StreamHandle stream = handle_of(current_stream());
  Triangles& entry = entries.of(device, stream);
  int m = narrow(op, x.size(-2)), n = narrow(op, x.size(-1));
  int lda = narrow(op, leading_of(a));
  size_t type = type_index(x.dtype());
  alignas(16) std::array<char, 16> one{};
  Scalar(1).store(x.dtype(), one.data());
  std::lock_guard lock(entry.mutex);
  if (entry.handle == nullptr) {
    cublas::Handle made = nullptr;
    check_call(library.create(&made), op, "cuBLAS", "cublasCreate");
    check_call(
        library.set_stream(made, stream), op, "cuBLAS", "cublasSetStream");
    entry.handle = made;
  }
  for (int64_t i = 0; i < matrices_of(x); ++i) {
    check_call(library.solve_triangle[type](
                   entry.handle,
                   left ? cusolver::kLeft : cusolver::kRight,
                   upper ? cusolver::kUpper : cusolver::kLower,
                   cusolver::kAsIs,
                   unit ? 1 : 0,
                   m,
                   n,
                   one.data(),
                   matrix(a, i),
                   lda,
                   matrix(x, i),
                   m),
               op,
               "cuBLAS",
               "cublas<t>trsm");
  }
  finish_launch();
}

}  // namespace taeda::cuda
