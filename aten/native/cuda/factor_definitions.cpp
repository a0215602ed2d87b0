// Factors of matrices: triangles, permutations, reflections; by a library
// or by our own kernels (Note [Factors in blocks]).
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/factors.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/host.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/cuda/solver.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/aten/native/linalg/report.h>
#include <taeda/gen/ops/_linalg_lstsq.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/bitwise_and.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/log.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/ne.h>
#include <taeda/gen/ops/prod.h>
#include <taeda/gen/ops/resolve_conj.h>
#include <taeda/gen/ops/rsub.h>
#include <taeda/gen/ops/sgn.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/tril.h>
#include <taeda/gen/ops/triu.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Tensor row_major(const Tensor& t) {
  return ops::clone(t, MemoryFormat::Contiguous);
}

DimVector lead_of(const Tensor& t) {
  return {t.sizes().begin(), t.sizes().end() - 2};
}
DimVector with(DimVector lead, std::initializer_list<int64_t> last) {
  for (int64_t size : last) lead.push_back(size);
  return lead;
}
int64_t matrices_of(const Tensor& t) {
  int64_t count = 1;
  for (int64_t size : lead_of(t)) count *= size;
  return count;
}

Tensor filled(const DimVector& sizes, ScalarType dtype, Device device) {
  Tensor made = make_tensor("linalg", sizes, dtype, device);
  fill_with(made, 0);
  return made;
}

Tensor adjoint(const Tensor& t) {
  Tensor flipped = ops::transpose(t, -2, -1);
  return t.is_complex() ? ops::conj(flipped) : flipped;
}

// Triangles ------------------------------------------------------------------

Pair cholesky(const Tensor& self, bool upper, bool check_errors) {
  constexpr const char* op = "linalg_cholesky_ex";
  Tensor info = native::new_infos(op, self);
  Tensor l =
      native::column_major(op, upper ? ops::triu(self) : ops::tril(self));
  if (l.numel() > 0) factor_cholesky(op, l, upper, info);
  if (check_errors) native::check_definite("linalg.cholesky_ex", info);
  return {l, info};
}

Tensor spread(const Tensor& t, const DimVector& lead) {
  return ops::expand(t, with(lead, {t.size(-2), t.size(-1)}));
}

Tensor solve_triangular(
    const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  if (!left) {
    Tensor turned = solve_triangular(ops::transpose(a, -2, -1),
                                     ops::transpose(b, -2, -1),
                                     !upper,
                                     true,
                                     unit);
    return ops::transpose(turned, -2, -1);
  }
  size_t rank = static_cast<size_t>(std::max(a.dim(), b.dim())) - 2;
  DimVector lead(rank, 1);
  for (const Tensor* t : {&a, &b}) {
    DimVector own = lead_of(*t);
    for (size_t d = 0; d < own.size(); ++d) {
      if (own[d] != 1) lead[rank - own.size() + d] = own[d];
    }
  }
  constexpr const char* op = "linalg_solve_triangular";
  Tensor x = native::column_major(op, spread(b, lead));
  if (x.numel() > 0) {
    Tensor matrix = native::column_major(op, spread(a, lead));
    solve_triangles(op, matrix, x, upper, unit);
  }
  return x;
}

// Rows exchanged -------------------------------------------------------------

Three lu_factor(const Tensor& self, bool, bool check_errors) {
  constexpr const char* op = "linalg_lu_factor_ex";
  int64_t steps = std::min(self.size(-2), self.size(-1));
  Tensor lu = native::column_major(op, self);
  Tensor pivots =
      make_tensor(op, with(lead_of(self), {steps}), kInt, self.device());
  Tensor info = native::new_infos(op, self);
  if (lu.numel() > 0) factor_lu(op, lu, pivots, info);
  if (check_errors) native::check_no_zero("linalg.lu_factor_ex", info);
  return {lu, pivots, info};
}

Three lu_unpack(const Tensor& lu,
                const Tensor& pivots,
                bool unpack_data,
                bool unpack_pivots) {
  int64_t m = lu.size(-2), k = std::min(m, lu.size(-1));
  Device device = lu.device();
  Tensor p = filled({0}, lu.dtype(), device), l = p, u = p;
  if (unpack_pivots) {
    p = filled(with(lead_of(lu), {m, m}), lu.dtype(), device);
    DeviceCall("lu_unpack", "pivots", "permutation_matrix(g, i);")
        .tensor("pivots", ops::contiguous(pivots))
        .tensor("order", filled(with(lead_of(lu), {m}), kLong, device))
        .tensor("p", p)
        .run(p.numel() == 0 ? 0 : matrices_of(p));
  }
  if (unpack_data) {
    l = ops::tril(ops::narrow(lu, -1, 0, k), -1);
    fill_with(ops::diagonal(l, 0, -2, -1), 1);
    u = ops::triu(ops::narrow(lu, -2, 0, k), 0);
  }
  return {p, l, u};
}

struct Diagonal {
  Tensor entries;  // of U
  Tensor sign;     // 1, or -1 where rows were exchanged an odd number of times
};

Diagonal diagonal_of(const Tensor& a) {
  auto [lu, pivots, info] = lu_factor(a, true, false);
  Tensor own = ops::arange(
      Scalar(1), Scalar(a.size(-1) + 1), kInt, {}, a.device(), std::nullopt);
  DimVector last{-1};
  Tensor odd = ops::bitwise_and(
      ops::sum(ops::ne(pivots, own), IntArrayRef(last)), Scalar(1));
  return {ops::diagonal(lu, 0, -2, -1),
          ops::rsub(ops::mul(odd, Scalar(2)), Scalar(1))};
}

Tensor linalg_det(const Tensor& a) {
  Diagonal d = diagonal_of(a);
  return ops::mul(ops::prod(d.entries, -1), d.sign);
}

Pair linalg_slogdet(const Tensor& a) {
  Diagonal d = diagonal_of(a);
  DimVector last{-1};
  return {ops::mul(ops::prod(ops::sgn(d.entries), -1), d.sign),
          ops::sum(ops::log(ops::abs(d.entries)), IntArrayRef(last))};
}

// Reflections ----------------------------------------------------------------

Pair geqrf(const Tensor& self) {
  constexpr const char* op = "geqrf";
  int64_t steps = std::min(self.size(-2), self.size(-1));
  Tensor a = native::column_major(op, self);
  Tensor tau = make_tensor(
      op, with(lead_of(self), {steps}), self.dtype(), self.device());
  if (a.numel() > 0) factor_qr(op, a, tau);
  return {a, tau};
}

// The first `columns` columns of the product of reflections.
Tensor orthogonal(const Tensor& from, const Tensor& tau, int64_t columns) {
  constexpr const char* op = "linalg_householder_product";
  int64_t steps = tau.size(-1);
  Tensor q = native::new_matrices(
      op, native::batch_sizes(from), from.size(-2), columns, from);
  if (q.numel() == 0) return q;
  if (columns > steps) fill_with(q, 0);
  if (steps == 0) {
    fill_with(ops::diagonal(q, 0, -2, -1), 1);
    return q;
  }
  copy_into(ops::narrow(q, -1, 0, steps), ops::narrow(from, -1, 0, steps));
  make_orthogonal(op, q, row_major(tau));
  return q;
}

Tensor householder_product(const Tensor& input, const Tensor& tau) {
  return orthogonal(input, tau, input.size(-1));
}

Pair linalg_qr(const Tensor& a, std::string_view mode) {
  auto [packed, tau] = geqrf(a);
  int64_t m = a.size(-2), k = std::min(m, a.size(-1));
  int64_t wide = mode == "complete" ? m : k;
  Tensor q = mode == "r" ? filled({0}, a.dtype(), a.device())
                         : orthogonal(packed, tau, wide);
  return {q, ops::triu(ops::narrow(packed, -2, 0, wide), 0)};
}

Tensor ormqr(const Tensor& self,
             const Tensor& tau,
             const Tensor& other,
             bool left,
             bool transpose) {
  if (other.numel() > 0 && tau.numel() > 0 && multiplies_by_library(self)) {
    constexpr const char* op = "ormqr";
    Tensor c = native::column_major(op, other);
    multiply_by_library(
        op, native::column_major(op, self), row_major(tau), c, left, transpose);
    return c;
  }
  Tensor q = orthogonal(self, tau, self.size(-2));
  if (transpose) q = adjoint(q);
  return left ? ops::matmul(q, other) : ops::matmul(other, q);
}

// Least squares of full rank (gels): of wide matrices the smallest solution.
Tensor by_reflections(const Tensor& a, const Tensor& b) {
  int64_t m = a.size(-2), n = a.size(-1);
  bool wide = m < n;
  auto [packed, tau] = geqrf(wide ? ops::resolve_conj(adjoint(a)) : a);
  int64_t k = std::min(m, n);
  Tensor r = ops::triu(ops::narrow(packed, -2, 0, k), 0);
  if (wide) {
    Tensor y = solve_triangular(
        ops::resolve_conj(adjoint(r)), b, /*upper=*/false, true, false);
    DimVector sizes = with(lead_of(a), {n, b.size(-1)});
    Tensor longer = filled(sizes, a.dtype(), a.device());
    copy_into(ops::narrow(longer, -2, 0, k), y);
    return ormqr(packed, tau, longer, /*left=*/true, /*transpose=*/false);
  }
  Tensor c = ormqr(packed, tau, b, /*left=*/true, /*transpose=*/true);
  return solve_triangular(r, ops::narrow(c, -2, 0, n), true, true, false);
}

// The other drivers are LAPACK's; PyTorch refuses them on a GPU.
Three lstsq(const Tensor& self,
            const Tensor& b,
            double rcond,
            std::string_view driver) {
  Device device = self.device();
  if (driver != "gels" || self.numel() == 0) {
    auto [x, rank, values] = ops::_linalg_lstsq(
        Tensor(on_cpu(self)), Tensor(on_cpu(b)), rcond, driver);
    return {Tensor(moved_to(x, device)),
            Tensor(moved_to(rank, device)),
            Tensor(moved_to(values, device))};
  }
  DimVector lead = lead_of(self);
  int64_t k = std::min(self.size(-2), self.size(-1));
  Tensor rank = filled(lead, kLong, device);
  ScalarType real = real_type_of(self.dtype());
  return {by_reflections(self, b), rank, filled(with(lead, {k}), real, device)};
}

}  // namespace

Definitions factor_definitions() {
  static const Definition all[] = {
      defined_as("linalg_cholesky_ex", cholesky),
      defined_as("linalg_solve_triangular", solve_triangular),
      defined_as("linalg_lu_factor_ex", lu_factor),
      defined_as("lu_unpack", lu_unpack),
      defined_as("linalg_det", linalg_det),
      defined_as("linalg_slogdet", linalg_slogdet),
      defined_as("geqrf", geqrf),
      defined_as("linalg_householder_product", householder_product),
      defined_as("linalg_qr", linalg_qr),
      defined_as("ormqr", ormqr),
      defined_as("_linalg_lstsq", lstsq),
  };
  return all;
}

}  // namespace taeda::cuda
