// Eigenvalues and singular values: by a library or by our own rotations (Note
// [Factors in blocks]).
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/factors.h>
#include <taeda/aten/native/cuda/host.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/solver.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/aten/native/linalg/report.h>
#include <taeda/gen/ops/complex.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/imag.h>
#include <taeda/gen/ops/linalg_eig.h>
#include <taeda/gen/ops/linalg_eigvals.h>
#include <taeda/gen/ops/lt.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/resolve_conj.h>
#include <taeda/gen/ops/roll.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros_like.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

ScalarType real_of(ScalarType t) {
  if (t == kComplexFloat) return kFloat;
  return t == kComplexDouble ? kDouble : t;
}

ScalarType complex_of(ScalarType t) {
  return real_of(t) == kFloat ? kComplexFloat : kComplexDouble;
}

Tensor adjoint(const Tensor& t) {
  Tensor flipped = ops::transpose(t, -2, -1);
  return t.is_complex() ? ops::conj(flipped) : flipped;
}

void fill_identity(const Tensor& matrices) {
  fill_with(matrices, 0);
  fill_with(ops::diagonal(matrices, 0, -2, -1), 1);
}

Pair hermitian(const char* op,
               std::string_view name,
               const Tensor& self,
               std::string_view uplo,
               bool vectors) {
  bool upper = uplo == "U" || uplo == "u";
  Tensor a = native::column_major(op, self);
  Tensor info = native::new_infos(op, self);
  Tensor w = make_tensor(op,
                         native::vectors_of(self, self.size(-1)),
                         real_of(self.dtype()),
                         self.device());
  if (a.numel() > 0) factor_hermitian(op, a, upper, vectors, w, info);
  native::check_eigenvalues(name, info);
  return {w, a};
}

Pair eigh(const Tensor& self, std::string_view uplo) {
  return hermitian("linalg_eigh", "linalg.eigh", self, uplo, true);
}
Tensor eigvalsh(const Tensor& self, std::string_view uplo) {
  return std::get<0>(
      hermitian("linalg_eigvalsh", "linalg.eigvalsh", self, uplo, false));
}

// Eigenvectors of real matrices from LAPACK's columns: of a pair of conjugate
// values the first has a positive imaginary part, its vector's real part is the
// first column and the imaginary part the second.
Tensor joined_pairs(const Tensor& w, const Tensor& v) {
  Tensor imag = ops::unsqueeze(ops::imag(w), -2);
  Tensor second = ops::lt(imag, Scalar(0));
  int64_t one[] = {1}, back[] = {-1}, last[] = {-1};
  Tensor real = ops::where(second, ops::roll(v, one, last), v);
  Tensor zero = ops::zeros_like(v);
  Tensor other = ops::where(ops::gt(imag, Scalar(0)),
                            ops::roll(v, back, last),
                            ops::where(second, ops::neg(v), zero));
  return ops::complex(real, other);
}

// Null where the host computes it, which is quicker for small matrices; PyTorch
// does so for all where its library has no such function.
constexpr int64_t kLeastGeneral = 128;
bool general_by_library(const Tensor& self) {
  bool large = self.size(-1) >= kLeastGeneral ||
               preferred_linalg() == LinalgLibrary::Cusolver;
  return self.numel() > 0 && large && has_general_eigenvalues();
}

Pair general(const char* op, const Tensor& self, bool vectors) {
  std::string_view name = vectors ? "torch.linalg.eig" : "torch.linalg.eigvals";
  native::check_finite(name, self);
  Tensor a = native::column_major(op, self);
  Tensor info = native::new_infos(op, self);
  Tensor v = vectors ? native::column_major(op, self) : Tensor();
  Tensor w = make_tensor(op,
                         native::vectors_of(self, self.size(-1)),
                         complex_of(self.dtype()),
                         self.device());
  eig_by_library(op, a, w, v, info);
  native::check_eigenvalues(name, info);
  if (vectors && !self.is_complex()) v = joined_pairs(w, v);
  return {w, v};
}

Pair eig(const Tensor& self) {
  if (general_by_library(self)) return general("linalg_eig", self, true);
  auto [w, v] = ops::linalg_eig(Tensor(on_cpu(self)));
  Device device = self.device();
  return {Tensor(moved_to(w, device)), Tensor(moved_to(v, device))};
}
Tensor eigvals(const Tensor& self) {
  if (general_by_library(self)) {
    return std::get<0>(general("linalg_eigvals", self, false));
  }
  Tensor w = ops::linalg_eigvals(Tensor(on_cpu(self)));
  return Tensor(moved_to(w, self.device()));
}

// U, S, V^H of matrices with at least as many rows as columns, the first and
// the last undefined without `vectors`.
Three tall_svd(const char* op,
               std::string_view name,
               const Tensor& given,
               bool full,
               bool vectors,
               SvdDriver driver) {
  int64_t m = given.size(-2), n = given.size(-1);
  Tensor a = native::column_major(op, given), u, vh;
  IntArrayRef lead = native::batch_sizes(a);
  Tensor s =
      make_tensor(op, native::vectors_of(a, n), real_of(a.dtype()), a.device());
  Tensor info = native::new_infos(op, a);
  if (vectors) {
    u = native::new_matrices(op, lead, m, full ? m : n, a);
    vh = native::new_matrices(op, lead, n, n, a);
  }
  if (a.numel() > 0) {
    factor_singular(op, a, u, s, vh, info, driver);
  } else if (vectors) {
    fill_identity(u);
    fill_identity(vh);
  }
  native::check_singular_values(name, info);
  return {u, s, vh};
}

Tensor turned(const Tensor& t) {
  return t.defined() ? ops::resolve_conj(adjoint(t)) : t;
}

SvdDriver driver_of(std::optional<std::string_view> name) {
  TAEDA_CHECK_AS(NotImplemented,
                 name != "gesvda",
                 "linalg.svd: driver gesvda is not there");
  if (!name) return SvdDriver::AsItSuits;
  return *name == "gesvd" ? SvdDriver::Library : SvdDriver::Rotations;
}

Three decomposed(const char* op,
                 const Tensor& self,
                 bool full,
                 bool vectors,
                 SvdDriver driver) {
  if (self.size(-2) < self.size(-1)) {
    auto [u, s, vh] = decomposed(op, turned(self), full, vectors, driver);
    return {turned(vh), s, turned(u)};
  }
  return tall_svd(op, "linalg.svd", self, full, vectors, driver);
}

Three svd(const Tensor& self,
          bool full_matrices,
          std::optional<std::string_view> driver) {
  return decomposed("linalg_svd", self, full_matrices, true, driver_of(driver));
}
Tensor svdvals(const Tensor& self, std::optional<std::string_view> driver) {
  return std::get<1>(
      decomposed("linalg_svdvals", self, false, false, driver_of(driver)));
}

}  // namespace

Definitions spectrum_definitions() {
  static const Definition all[] = {
      defined_as("linalg_eigh", eigh),
      defined_as("linalg_eigvalsh", eigvalsh),
      defined_as("linalg_eig", eig),
      defined_as("linalg_eigvals", eigvals),
      defined_as("linalg_svd", svd),
      defined_as("linalg_svdvals", svdvals),
  };
  return all;
}

}  // namespace taeda::cuda
