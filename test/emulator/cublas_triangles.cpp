// cuBLAS' systems of triangles under their names.
#include "solver_calls.h"

using namespace emulator;

EXPORT cublasCreate_v2(cublas::Handle* out) {
  std::lock_guard guard(Machine::get().mutex);
  *out = new cublas::HandleObject;
  return 0;
}
EXPORT cublasSetStream_v2(cublas::Handle handle, void* stream) {
  std::lock_guard guard(Machine::get().mutex);
  handle->stream = stream;
  return 0;
}

namespace {

template <class T>
int solve(cublas::Handle handle,
          int type,
          int side,
          int triangle,
          int turn,
          int unit,
          int m,
          int n,
          const void* alpha,
          const void* a,
          int lda,
          void* b,
          int ldb) {
  std::lock_guard guard(Machine::get().mutex);
  int order = side == cusolver::kLeft ? m : n;
  bool ok = is_one_of_two(side) && is_one_of_two(triangle) && turn >= 0 &&
            turn <= 2 && is_one_of_two(unit) && m >= 0 && n >= 0 &&
            lda == std::max(order, 1) && ldb == std::max(m, 1);
  if (!ok) return kInvalidInCublas;
  T factor;
  std::memcpy(&factor, alpha, sizeof(T));
  Part whole{a, int64_t{order} * order, type}, x{b, int64_t{m} * n, type};
  return enqueue(
      handle->stream, "cublas<t>trsm", {}, {whole, x}, {x}, nullptr, [=] {
        lapack<T>().trsm(&"LR"[side],
                         letter(triangle),
                         &"NTC"[turn],
                         &"NU"[unit],
                         &m,
                         &n,
                         &factor,
                         static_cast<const T*>(a),
                         &lda,
                         static_cast<T*>(b),
                         &ldb,
                         1,
                         1,
                         1,
                         1);
        return 0;
      });
}

}  // namespace

#define TAEDA_TRIANGLES(letter, T, type)                \
  EXPORT cublas##letter##trsm_v2(cublas::Handle handle, \
                                 int side,              \
                                 int triangle,          \
                                 int turn,              \
                                 int unit,              \
                                 int m,                 \
                                 int n,                 \
                                 const void* alpha,     \
                                 const void* a,         \
                                 int lda,               \
                                 void* b,               \
                                 int ldb) {             \
    return solve<T>(handle,                             \
                    cusolver::type,                     \
                    side,                               \
                    triangle,                           \
                    turn,                               \
                    unit,                               \
                    m,                                  \
                    n,                                  \
                    alpha,                              \
                    a,                                  \
                    lda,                                \
                    b,                                  \
                    ldb);                               \
  }
TAEDA_TRIANGLES(S, float, kReal32)
TAEDA_TRIANGLES(D, double, kReal64)
TAEDA_TRIANGLES(C, taeda::complex<float>, kComplex32)
TAEDA_TRIANGLES(Z, taeda::complex<double>, kComplex64)
#undef TAEDA_TRIANGLES
