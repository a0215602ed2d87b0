// See Note [Factors in blocks].
#include <taeda/aten/native/cuda/factors.h>

#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/blocks.h>
#include <taeda/aten/native/cuda/solver.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/aten/native/cuda/factor_calls.cuh>

#include <algorithm>
#include <array>

namespace taeda::cuda {

namespace {

// What a kernel may hold in shared memory, besides some 2 KiB.
constexpr int64_t kMostShared = 46 * 1024;
// Elements that a block holds: the least of these that is enough, or all that
// there is, so that blocks of small matrices leave room for each other.
constexpr std::array<int64_t, 3> kHeld{320, 1088, 2176};
constexpr int64_t kWarpRows = 32;

// A kernel's work, and what it holds of a matrix, in which type.
struct Work {
  const char* op;
  const char* header;
  const char* function;
  Tensor a;
  int64_t elements;
  ScalarType held;
  // Whether it needs memory of its own where shared memory is too small, rather
  // than that of the matrix.
  bool apart = false;
};

int64_t held_size(ScalarType t) {
  return static_cast<int64_t>(element_size(t));
}
bool fits(int64_t elements, ScalarType held) {
  return elements * held_size(held) <= kMostShared;
}
// Columns begin at odd places there.
int64_t columns_held(int64_t rows, int64_t columns) {
  return (rows | 1) * columns;
}
ScalarType wide_of(const Tensor& t) {
  return t.is_complex() ? kComplexDouble : kDouble;
}

bool prefers_library(int64_t elements, ScalarType held) {
  return (preferred_linalg() == LinalgLibrary::Cusolver ||
          !fits(elements, held)) &&
         has_cusolver();
}

FactorCall call_of(const Tensor& a) {
  FactorCall call{};
  call.count = native::batch_count(a);
  call.rows = a.size(-2);
  call.columns = a.size(-1);
  call.a = a.mutable_raw_data();
  return call;
}

void run(const Work& work, FactorCall& call) {
  int64_t capacity = 0;
  if (fits(work.elements, work.held)) {
    capacity = kMostShared / held_size(work.held);
    for (auto i = kHeld.rbegin(); i != kHeld.rend(); ++i) {
      if (work.elements <= *i && *i < capacity) capacity = *i;
    }
  }
  bool small = capacity > 0 && std::max(call.rows, call.columns) <= kWarpRows;
  Device device = work.a.device();
  DeviceGuard guard(device.index);
  Grid grid;
  grid.threads = small ? 32 : 128;
  // Each block has scratch.
  int64_t most = capacity == 0 && work.apart ? 64 : int64_t{1} << 30;
  grid.x = static_cast<unsigned>(std::min<int64_t>(call.count, most));
  grid.y =
      call.width > 0
          ? static_cast<unsigned>((call.right + call.width - 1) / call.width)
          : 1;
  Tensor scratch;
  if (capacity == 0 && work.apart) {
    int64_t elements = grid.x * work.elements;
    scratch = make_tensor(work.op, {&elements, 1}, work.held, device);
    call.scratch = scratch.mutable_raw_data();
  }
  TemplateArgument arguments[] = {work.a.dtype(),
                                  static_cast<int>(grid.threads),
                                  static_cast<int>(capacity)};
  BlockKernel kernel{work.op, work.header, work.function, "FactorCall"};
  run_blocks(kernel, arguments, grid, &call);
}

}  // namespace

void factor_cholesky(const char* op,
                     const Tensor& a,
                     bool upper,
                     const Tensor& info) {
  int64_t n = a.size(-1), elements = columns_held(n, n);
  if (prefers_library(elements, a.dtype())) {
    return cholesky_by_library(op, a, upper, info);
  }
  FactorCall call = call_of(a);
  call.upper = upper ? 1 : 0;
  call.info = info.mutable_data<int>();
  run({op, "factors", "cholesky_kernel", a, elements, a.dtype()}, call);
}

void factor_lu(const char* op,
               const Tensor& a,
               const Tensor& pivots,
               const Tensor& info) {
  int64_t elements = columns_held(a.size(-2), a.size(-1));
  if (prefers_library(elements, a.dtype())) {
    Tensor wide = make_tensor(op, pivots.sizes(), kLong, a.device());
    lu_by_library(op, a, wide, info);
    copy_into(pivots, wide);
    return;
  }
  FactorCall call = call_of(a);
  call.pivots = pivots.mutable_data<int>();
  call.info = info.mutable_data<int>();
  run({op, "factors", "lu_kernel", a, elements, a.dtype()}, call);
}

void solve_by_elimination(const char* op,
                          const Tensor& a,
                          const Tensor& x,
                          const Tensor& info) {
  int64_t n = a.size(-1), right = x.size(-1);
  int64_t elements = columns_held(n, n + right);
  if (prefers_library(elements, a.dtype())) {
    Tensor pivots =
        make_tensor(op, native::vectors_of(a, n), kLong, a.device());
    lu_by_library(op, a, pivots, info);
    if (right > 0) lu_solve_by_library(op, a, pivots, x);
    return;
  }
  FactorCall call = call_of(a);
  call.other = x.mutable_raw_data();
  call.right = right;
  call.info = info.mutable_data<int>();
  run({op, "factors", "solve_kernel", a, elements, a.dtype()}, call);
}

void solve_triangles(
    const char* op, const Tensor& a, const Tensor& x, bool upper, bool unit) {
  int64_t n = a.size(-1), right = x.size(-1), whole = columns_held(n, n);
  bool library = preferred_linalg() == LinalgLibrary::Cusolver ||
                 !fits(whole + columns_held(n, 1), a.dtype());
  if (library && has_triangles()) {
    return triangles_by_library(op, a, x, upper, /*left=*/true, unit);
  }
  FactorCall call = call_of(a);
  call.other = x.mutable_raw_data();
  call.right = right;
  call.upper = upper ? 1 : 0;
  call.unit = unit ? 1 : 0;
  // As many columns as fit beside the triangle, and at most as many as rows, so
  // that a matrix with many right sides is several blocks'.
  int64_t most = kMostShared / held_size(a.dtype()) - whole;
  call.width = std::clamp<int64_t>(most / (n | 1), 1, std::max<int64_t>(n, 32));
  // Without a library, and too large.
  bool fits_at_all = fits(whole + columns_held(n, 1), a.dtype());
  call.width = fits_at_all ? std::min<int64_t>(call.width, right) : right;
  int64_t elements = whole + columns_held(n, call.width);
  run({op, "factors", "triangles_kernel", a, elements, a.dtype()}, call);
}

void factor_qr(const char* op, const Tensor& a, const Tensor& tau) {
  int64_t elements = columns_held(a.size(-2), a.size(-1));
  if (prefers_library(elements, a.dtype())) return qr_by_library(op, a, tau);
  FactorCall call = call_of(a);
  call.numbers = tau.mutable_raw_data();
  run({op, "factors", "reflections_kernel", a, elements, a.dtype()}, call);
}

void make_orthogonal(const char* op, const Tensor& q, const Tensor& tau) {
  int64_t elements = columns_held(q.size(-2), q.size(-1));
  if (prefers_library(elements, q.dtype())) {
    return orthogonal_by_library(op, q, tau);
  }
  FactorCall call = call_of(q);
  call.numbers = tau.mutable_raw_data();
  call.right = tau.size(-1);
  run({op, "factors", "orthogonal_kernel", q, elements, q.dtype()}, call);
}

bool multiplies_by_library(const Tensor& reflections) {
  int64_t rows = reflections.size(-2);
  return prefers_library(columns_held(rows, rows), reflections.dtype());
}

void factor_hermitian(const char* op,
                      const Tensor& a,
                      bool upper,
                      bool vectors,
                      const Tensor& w,
                      const Tensor& info) {
  int64_t n = a.size(-1), elements = 2 * columns_held(n, n);
  if (prefers_library(elements, wide_of(a))) {
    return eigh_by_library(op, a, upper, vectors, w, info);
  }
  FactorCall call = call_of(a);
  call.numbers = w.mutable_raw_data();
  call.info = info.mutable_data<int>();
  call.upper = upper ? 1 : 0;
  call.vectors = vectors ? 1 : 0;
  run({op, "spectra", "eigen_kernel", a, elements, wide_of(a), true}, call);
}

void factor_singular(const char* op,
                     const Tensor& a,
                     const Tensor& u,
                     const Tensor& s,
                     const Tensor& vh,
                     const Tensor& info,
                     SvdDriver driver) {
  int64_t m = a.size(-2), n = a.size(-1);
  int64_t wide = u.defined() ? u.size(-1) : n;
  int64_t elements = columns_held(m, wide) + columns_held(n, n) + n;
  bool library = driver == SvdDriver::Library && has_cusolver();
  bool any = driver == SvdDriver::AsItSuits;
  if (library || (any && prefers_library(elements, wide_of(a)))) {
    return svd_by_library(op, a, u, s, vh, info);
  }
  FactorCall call = call_of(a);
  call.right = wide;
  call.numbers = s.mutable_raw_data();
  call.info = info.mutable_data<int>();
  if (u.defined()) {
    call.other = u.mutable_raw_data();
    call.third = vh.mutable_raw_data();
    call.vectors = 1;
  }
  run({op, "spectra", "singular_kernel", a, elements, wide_of(a), true}, call);
}

}  // namespace taeda::cuda
