// Eigenvalues and singular values.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/resolve_conj.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/tril.h>
#include <taeda/gen/ops/triu.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

ScalarType wide_of(const Tensor& t) {
  return t.is_complex() ? kComplexDouble : kDouble;
}
ScalarType real_of(ScalarType t) {
  if (t == kComplexFloat) return kFloat;
  return t == kComplexDouble ? kDouble : t;
}

Tensor as_dtype(const Tensor& t, ScalarType dtype) {
  Tensor made = make_tensor("linalg", t.sizes(), dtype, t.device());
  copy_into(made, t);
  return made;
}

Tensor adjoint(const Tensor& t) {
  Tensor flipped = ops::transpose(t, -2, -1);
  return t.is_complex() ? ops::conj(flipped) : flipped;
}

// Of matrices [..., rows, columns] beside `like`, zero but for the diagonal.
Tensor identity(const Tensor& like, int64_t rows, int64_t columns) {
  DimVector sizes(like.sizes().begin(), like.sizes().end());
  sizes[sizes.size() - 2] = rows;
  sizes[sizes.size() - 1] = columns;
  Tensor made = make_tensor("linalg", sizes, wide_of(like), like.device());
  fill_with(made, 0);
  fill_with(ops::diagonal(made, 0, -2, -1), 1);
  return made;
}

int64_t matrices_of(const Tensor& t) {
  int64_t count = 1;
  for (size_t d = 0; d + 2 < t.sizes().size(); ++d) count *= t.sizes()[d];
  return count;
}

Tensor values_for(const Tensor& like, int64_t count) {
  DimVector sizes(like.sizes().begin(), like.sizes().end() - 2);
  sizes.push_back(count);
  return make_tensor("linalg", sizes, kDouble, like.device());
}

Pair eigh(const Tensor& self, std::string_view uplo) {
  bool upper = uplo == "U" || uplo == "u";
  Tensor part = upper ? ops::triu(self, 1) : ops::tril(self, -1);
  Tensor a = as_dtype(ops::add(part, adjoint(part)), wide_of(self));
  Tensor own = ops::diagonal(self, 0, -2, -1);
  copy_into(ops::diagonal(a, 0, -2, -1), own);
  int64_t n = self.size(-1);
  Tensor v = identity(self, n, n), w = values_for(self, n);
  DeviceCall("linalg_eigh", "spectra", "eigen_matrix(g, i);")
      .tensor("a", a)
      .tensor("v", v)
      .tensor("w", w)
      .run(a.numel() == 0 ? 0 : matrices_of(a));
  return {as_dtype(w, real_of(self.dtype())), as_dtype(v, self.dtype())};
}

// Of matrices with at least as many rows as columns; V as it is.
Three tall_svd(const Tensor& a, bool full) {
  int64_t m = a.size(-2), n = a.size(-1);
  Tensor u = identity(a, m, full ? m : n), v = identity(a, n, n);
  copy_into(ops::narrow(u, -1, 0, n), a);
  Tensor s = values_for(a, n);
  DeviceCall("linalg_svd", "spectra", "singular_matrix(g, i);")
      .tensor("u", u)
      .tensor("v", v)
      .tensor("s", s)
      .run(a.numel() == 0 ? 0 : matrices_of(a));
  return {as_dtype(u, a.dtype()),
          as_dtype(s, real_of(a.dtype())),
          as_dtype(v, a.dtype())};
}

Three svd(const Tensor& self,
          bool full_matrices,
          std::optional<std::string_view>) {
  if (self.size(-2) >= self.size(-1)) {
    auto [u, s, v] = tall_svd(self, full_matrices);
    return {u, s, ops::resolve_conj(adjoint(v))};
  }
  auto [u, s, v] = tall_svd(ops::resolve_conj(adjoint(self)), full_matrices);
  return {v, s, ops::resolve_conj(adjoint(u))};
}

}  // namespace

Definitions spectrum_definitions() {
  static const Definition all[] = {
      defined_as("linalg_eigh", eigh),
      defined_as("linalg_svd", svd),
  };
  return all;
}

}  // namespace taeda::cuda
