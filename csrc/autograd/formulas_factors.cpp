// With G the gradient of what a formula names first, each from the differential
// of the defining equation; conjugates by PyTorch's convention.
#include <taeda/csrc/autograd/formulas_factors.h>

#include <taeda/csrc/autograd/formulas_products.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/diag_embed.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/imag.h>
#include <taeda/gen/ops/linalg_det.h>
#include <taeda/gen/ops/linalg_inv.h>
#include <taeda/gen/ops/linalg_solve.h>
#include <taeda/gen/ops/linalg_solve_triangular.h>
#include <taeda/gen/ops/linalg_svd.h>
#include <taeda/gen/ops/lu_unpack.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/prod.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/tril.h>
#include <taeda/gen/ops/triu.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::autograd {

namespace {

const Scalar kOne(1);

Tensor times(const Tensor& a, const Tensor& b) { return ops::matmul(a, b); }
Tensor plus(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? ops::add(a, b, kOne) : a;
}
Tensor minus(const Tensor& a, const Tensor& b) { return ops::sub(a, b, kOne); }
Tensor column(const Tensor& t) {
  return ops::unsqueeze(ops::unsqueeze(t, -1), -1);
}
Tensor diagonal_of(const Tensor& m) { return ops::diagonal(m, 0, -2, -1); }
Tensor complex_like(const Tensor& t, const Tensor& like) {
  return t.dtype() == like.dtype() ? t : ops::_to_copy(t, like.dtype());
}
// X with A^H X = B.
Tensor solved_adjoint(const Tensor& a, const Tensor& b) {
  return ops::linalg_solve(adjoint_of(a), b, /*left=*/true);
}

}  // namespace

// A = L L^H: gA = L^-H P L^-1 made Hermitian, P the lower half of L^H G.
Tensor linalg_cholesky_gradient(const Tensor& grad,
                                const Tensor& factor,
                                bool upper) {
  if (!grad.defined()) return {};
  Tensor l = upper ? adjoint_of(factor) : factor;
  Tensor g = upper ? adjoint_of(grad) : grad;
  Tensor lh = adjoint_of(l);
  Tensor p = ops::tril(times(lh, g), 0);
  p = minus(p, ops::diag_embed(times_scalar(diagonal_of(p), Scalar(0.5))));
  Tensor s = ops::linalg_solve_triangular(lh, p, /*upper=*/true);
  s = ops::linalg_solve_triangular(l, s, /*upper=*/false, /*left=*/false);
  return times_scalar(plus(s, adjoint_of(s)), Scalar(0.5));
}

// A X = B: gB = A^-H G, gA = -gB X^H in A's triangle.
std::tuple<Tensor, Tensor> solve_triangular_gradients(
    const Tensor& grad,
    const Tensor& a,
    const Tensor& b,
    const Tensor& x,
    bool upper,
    bool left,
    bool unitriangular,
    std::array<bool, 2> wanted) {
  Tensor gb = ops::linalg_solve_triangular(
      adjoint_of(a), grad, !upper, left, unitriangular);
  Tensor ga;
  if (wanted[0]) {
    Tensor xh = adjoint_of(x);
    ga = ops::neg(left ? times(gb, xh) : times(xh, gb));
    int64_t off = unitriangular ? 1 : 0;
    ga = upper ? ops::triu(ga, off) : ops::tril(ga, -off);
    ga = sum_to(ga, a.sizes());
  }
  return {ga, wanted[1] ? sum_to(gb, b.sizes()) : Tensor()};
}

// A = P L U: gA = P L^-H (tril(L^H G_L, -1) + triu(G_U U^H)) U^-H.
Tensor linalg_lu_gradient(const Tensor& grad,
                          const Tensor& lu,
                          const Tensor& pivots) {
  if (!grad.defined()) return {};
  TAEDA_CHECK_AS(NotImplemented,
                 lu.size(-2) == lu.size(-1),
                 "linalg.lu_factor: the derivative of matrices that are not "
                 "square is not implemented, got ",
                 lu.sizes());
  auto [p, l, u] = ops::lu_unpack(lu, pivots, true, true);
  Tensor lh = adjoint_of(l), uh = adjoint_of(u);
  Tensor below = ops::tril(times(lh, ops::tril(grad, -1)), -1);
  Tensor above = ops::triu(times(ops::triu(grad, 0), uh), 0);
  Tensor m = ops::linalg_solve_triangular(
      lh, plus(below, above), true, true, /*unitriangular=*/true);
  m = ops::linalg_solve_triangular(uh, m, /*upper=*/false, /*left=*/false);
  return times(p, m);
}

namespace {

// The matrix of cofactors, conjugated, from A = U S V^H; also of singular A.
Tensor cofactors(const Tensor& a) {
  auto [u, s, vh] = ops::linalg_svd(a, /*full_matrices=*/true, std::nullopt);
  int64_t n = a.size(-1);
  // Products of the singular values but one.
  Tensor one = ops::eye(n, n, ops::eq(s, s).dtype());
  Tensor others =
      ops::prod(ops::masked_fill(ops::unsqueeze(s, -2), one, Scalar(1)), -1);
  Tensor turn = conj_of(ops::mul(ops::linalg_det(u), ops::linalg_det(vh)));
  Tensor scaled = ops::mul(u, ops::unsqueeze(others, -2));
  return ops::mul(column(turn), times(scaled, vh));
}

}  // namespace

// d det = tr(adj(A) dA); adj(A) = det(A) A^-1 where that exists.
Tensor linalg_det_gradient(const Tensor& grad,
                           const Tensor& a,
                           const Tensor& det) {
  if (a.size(-1) == 0) return ops::mul(a, Scalar(0));
  Tensor singular = ops::any(ops::eq(det, Scalar(0)));
  if (may_hold(singular)) return ops::mul(column(grad), cofactors(a));
  Tensor scale = column(ops::mul(grad, conj_of(det)));
  return ops::mul(scale, ops::linalg_inv(adjoint_of(a)));
}

Tensor linalg_slogdet_gradient(const Tensor& grad_sign,
                               const Tensor& grad_log,
                               const Tensor& a,
                               const Tensor& sign) {
  bool turns = a.is_complex() && grad_sign.defined();
  if (!grad_log.defined() && !turns) return {};
  Tensor g;
  if (grad_log.defined()) g = complex_like(grad_log, a);
  if (turns) {
    // d sign = i sign Im tr(A^-1 dA).
    Tensor along = ops::imag(ops::mul(conj_of(grad_sign), sign));
    Tensor i = ops::mul(complex_like(along, a), Scalar(complex<double>(0, -1)));
    g = plus(g, i);
  }
  return ops::mul(column(g), ops::linalg_inv(adjoint_of(a)));
}

// A = V diag(L) V^H: gA = V (diag(gL) + K / E) V^H, E_ij = L_j - L_i,
// K the skew part of V^H gV, since V stays orthonormal.
Tensor linalg_eigh_gradient(const Tensor& grad_values,
                            const Tensor& grad_vectors,
                            const Tensor& values,
                            const Tensor& v) {
  Tensor middle, vh = adjoint_of(v);
  if (grad_vectors.defined()) {
    Tensor e = minus(ops::unsqueeze(values, -2), ops::unsqueeze(values, -1));
    e = plus(e, ops::eye(values.size(-1), values.dtype()));
    Tensor turn = times(vh, grad_vectors);
    turn = times_scalar(minus(turn, adjoint_of(turn)), Scalar(0.5));
    turn = minus(turn, ops::diag_embed(diagonal_of(turn)));
    middle = ops::div(turn, e);
  }
  if (grad_values.defined()) {
    middle = plus(middle, complex_like(ops::diag_embed(grad_values), v));
  }
  if (!middle.defined()) return {};
  return times(v, times(middle, vh));
}

// A V = V diag(L), columns of V of length 1.
Tensor linalg_eig_gradient(const Tensor& grad_values,
                           const Tensor& grad_vectors,
                           const Tensor& values,
                           const Tensor& v,
                           ScalarType dtype) {
  Tensor middle, vh = adjoint_of(v);
  if (grad_vectors.defined()) {
    Tensor turn = times(vh, grad_vectors);
    Tensor norm = complex_like(ops::real(diagonal_of(turn)), v);
    turn = minus(turn, ops::mul(times(vh, v), ops::unsqueeze(norm, -2)));
    Tensor e = minus(ops::unsqueeze(values, -2), ops::unsqueeze(values, -1));
    e = plus(conj_of(e), ops::eye(values.size(-1), values.dtype()));
    turn = ops::div(turn, e);
    middle = minus(turn, ops::diag_embed(diagonal_of(turn)));
  }
  if (grad_values.defined()) {
    middle = plus(middle, ops::diag_embed(grad_values));
  }
  if (!middle.defined()) return {};
  Tensor out = solved_adjoint(v, times(middle, vh));
  return dtype == kFloat || dtype == kDouble ? ops::real(out) : out;
}

// G. Golub and V. Pereyra, "The differentiation of pseudo-inverses", 1973.
Tensor linalg_pinv_gradient(const Tensor& g, const Tensor& a, const Tensor& p) {
  Tensor ph = adjoint_of(p), gh = adjoint_of(g);
  Tensor out = ops::neg(times(ph, times(g, ph)));
  // (I - A P) G^H P P^H and P^H P G^H (I - P A).
  Tensor first = times(gh, times(p, ph));
  out = plus(out, minus(first, times(a, times(p, first))));
  Tensor second = times(ph, times(p, gh));
  return plus(out, minus(second, times(times(second, p), a)));
}

}  // namespace taeda::autograd
