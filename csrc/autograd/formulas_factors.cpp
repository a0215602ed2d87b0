// With G the gradient of what a formula names first, each from the differential
// of the defining equation; conjugates by PyTorch's convention.
#include <taeda/csrc/autograd/formulas_factors.h>

#include <taeda/csrc/autograd/formulas_linalg.h>
#include <taeda/csrc/autograd/formulas_products.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/cholesky_solve.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/diag_embed.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/imag.h>
#include <taeda/gen/ops/linalg_det.h>
#include <taeda/gen/ops/linalg_householder_product.h>
#include <taeda/gen/ops/linalg_inv.h>
#include <taeda/gen/ops/linalg_matrix_exp.h>
#include <taeda/gen/ops/linalg_pinv.h>
#include <taeda/gen/ops/linalg_solve.h>
#include <taeda/gen/ops/linalg_solve_triangular.h>
#include <taeda/gen/ops/linalg_svd.h>
#include <taeda/gen/ops/lu_unpack.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/ormqr.h>
#include <taeda/gen/ops/prod.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/tril.h>
#include <taeda/gen/ops/triu.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/zeros_like.h>

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
// As many rows as `t` has values in its last dim.
Tensor identity_beside(const Tensor& t) {
  return ops::eye(
      t.size(-1), t.dtype(), std::nullopt, t.device(), std::nullopt);
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

// A = L L^H: gA = L^-H P L^-1 / 2, P the lower triangle of L^H G mirrored. Its
// diagonal stays as it is, imaginary parts too, as in PyTorch.
Tensor linalg_cholesky_gradient(const Tensor& grad,
                                const Tensor& factor,
                                bool upper) {
  if (!grad.defined()) return {};
  Tensor l = upper ? adjoint_of(factor) : factor;
  Tensor g = upper ? adjoint_of(grad) : grad;
  Tensor lh = adjoint_of(l);
  Tensor product = times(lh, g);
  Tensor p = plus(ops::tril(product, 0), adjoint_of(ops::tril(product, -1)));
  Tensor s = ops::linalg_solve_triangular(lh, p, /*upper=*/true);
  s = ops::linalg_solve_triangular(l, s, /*upper=*/false, /*left=*/false);
  return times_scalar(s, Scalar(0.5));
}

// A X = B with A = L L^H: dX = A^-1 (dB - dA X), dA = dL L^H + L dL^H. As in
// PyTorch all of L counts, though X is solved from one triangle of it.
std::tuple<Tensor, Tensor> cholesky_solve_gradients(
    const Tensor& grad,
    const Tensor& b,
    const Tensor& factor,
    const Tensor& x,
    bool upper,
    std::array<bool, 2> wanted) {
  Tensor gb = ops::cholesky_solve(grad, factor, upper);
  Tensor gl;
  if (wanted[1]) {
    Tensor product = times(gb, adjoint_of(x));
    Tensor ga = ops::neg(plus(product, adjoint_of(product)));
    gl = upper ? times(factor, ga) : times(ga, factor);
    gl = sum_to(gl, symbolic_sizes(factor));
  }
  return {wanted[0] ? sum_to(gb, symbolic_sizes(b)) : Tensor(), gl};
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
    ga = sum_to(ga, symbolic_sizes(a));
  }
  return {ga, wanted[1] ? sum_to(gb, symbolic_sizes(b)) : Tensor()};
}

namespace {

// For a square A = L U: gA = L^-H (tril(L^H G_L, -1) + triu(G_U U^H)) U^-H.
Tensor lu_square_gradient(const Tensor& grad_l,
                          const Tensor& grad_u,
                          const Tensor& l,
                          const Tensor& u) {
  Tensor lh = adjoint_of(l), uh = adjoint_of(u);
  Tensor m =
      plus(ops::tril(times(lh, grad_l), -1), ops::triu(times(grad_u, uh), 0));
  m = ops::linalg_solve_triangular(
      lh, m, /*upper=*/true, /*left=*/true, /*unitriangular=*/true);
  return ops::linalg_solve_triangular(uh, m, /*upper=*/false, /*left=*/false);
}

}  // namespace

// A = P L U. Where A is tall, L = [L1; L2] and dL2 = (dA2 - L2 dU) U^-1; where
// it is wide, U = [U1, U2] and dU2 = L^-1 (dA2 - dL U2); the square rest as
// above.
Tensor linalg_lu_gradient(const Tensor& grad,
                          const Tensor& lu,
                          const Tensor& pivots) {
  if (!grad.defined()) return {};
  int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  auto rows = [](const Tensor& t, int64_t from, int64_t count) {
    return ops::narrow(t, -2, from, count);
  };
  auto columns = [](const Tensor& t, int64_t from, int64_t count) {
    return ops::narrow(t, -1, from, count);
  };
  auto [p, l, u] = ops::lu_unpack(lu, pivots, true, true);
  Tensor grad_l = ops::tril(columns(grad, 0, k), -1);
  Tensor grad_u = ops::triu(rows(grad, 0, k), 0);
  Tensor l1 = rows(l, 0, k), u1 = columns(u, 0, k);
  Tensor gl = rows(grad_l, 0, k), gu = columns(grad_u, 0, k), rest, whole;
  if (m > n) {
    rest = ops::linalg_solve_triangular(adjoint_of(u1),
                                        rows(grad_l, k, m - k),
                                        /*upper=*/false,
                                        /*left=*/false);
    gu = minus(gu, ops::triu(times(adjoint_of(rows(l, k, m - k)), rest), 0));
  } else if (n > m) {
    rest = ops::linalg_solve_triangular(adjoint_of(l1),
                                        columns(grad_u, k, n - k),
                                        /*upper=*/true,
                                        /*left=*/true,
                                        /*unitriangular=*/true);
    Tensor u2 = columns(u, k, n - k);
    gl = minus(gl, ops::tril(times(rest, adjoint_of(u2)), -1));
  }
  whole = lu_square_gradient(gl, gu, l1, u1);
  if (rest.defined()) whole = ops::cat({whole, rest}, m > n ? -2 : -1);
  return times(p, whole);
}

// Each part back to its triangle of the packed matrix.
Tensor lu_unpack_gradient(const Tensor& grad_l,
                          const Tensor& grad_u,
                          const Tensor& lu) {
  if (!grad_l.defined() && !grad_u.defined()) return {};
  int64_t m = lu.size(-2), n = lu.size(-1), k = std::min(m, n);
  auto padded = [](const Tensor& t, int64_t rows, int64_t columns) {
    if (rows == 0 && columns == 0) return t;
    return ops::constant_pad_nd(t, {0, columns, 0, rows}, Scalar(0));
  };
  Tensor sum;
  if (grad_l.defined()) sum = padded(ops::tril(grad_l, -1), 0, n - k);
  if (grad_u.defined()) {
    sum = plus(sum, padded(ops::triu(grad_u, 0), m - k, 0));
  }
  return sum;
}

namespace {

// The matrix of cofactors, conjugated, from A = U S V^H; also of singular A.
Tensor cofactors(const Tensor& a) {
  auto [u, s, vh] = ops::linalg_svd(a, /*full_matrices=*/true, std::nullopt);
  int64_t n = a.size(-1);
  // Products of the singular values but one.
  Tensor one = ops::eye(n, n, kBool, std::nullopt, s.device());
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
  if (a.size(-1) == 1) return column(grad);
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
    e = plus(e, identity_beside(values));
    Tensor turn = times(vh, grad_vectors);
    if (v.is_complex()) {
      check_phase("linalg_eigh_backward", ops::imag(diagonal_of(turn)));
    }
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
    check_phase("linalg_eig_backward", ops::imag(diagonal_of(turn)));
    Tensor norm = complex_like(ops::real(diagonal_of(turn)), v);
    turn = minus(turn, ops::mul(times(vh, v), ops::unsqueeze(norm, -2)));
    Tensor e = minus(ops::unsqueeze(values, -2), ops::unsqueeze(values, -1));
    e = plus(conj_of(e), identity_beside(values));
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

// The derivative of exp at A^H along G is the upper right block of the
// exponential of [A^H, G; 0, A^H] (Higham, "Functions of matrices", 2008,
// theorem 3.6).
Tensor matrix_exp_gradient(const Tensor& grad, const Tensor& a) {
  int64_t n = a.size(-1);
  Tensor ah = adjoint_of(a);
  Tensor upper = ops::cat({ah, grad}, -1);
  Tensor lower = ops::cat({ops::zeros_like(grad), ah}, -1);
  Tensor whole = ops::linalg_matrix_exp(ops::cat({upper, lower}, -2));
  return ops::narrow(ops::narrow(whole, -2, 0, n), -1, n, n);
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

std::tuple<Tensor, Tensor> least_squares_gradients(const Tensor& grad,
                                                   const Tensor& a,
                                                   const Tensor& b,
                                                   std::array<bool, 2> wanted) {
  Tensor p = ops::linalg_pinv(a), ga, gb;
  if (wanted[0]) ga = linalg_pinv_gradient(times(grad, adjoint_of(b)), a, p);
  if (wanted[1]) gb = times(adjoint_of(p), grad);
  return {ga, gb};
}

// dQ of op(Q) C or C op(Q), and from there as householder_product.
std::tuple<Tensor, Tensor, Tensor> ormqr_gradients(const Tensor& grad,
                                                   const Tensor& reflectors,
                                                   const Tensor& tau,
                                                   const Tensor& other,
                                                   bool left,
                                                   bool transpose,
                                                   std::array<bool, 3> wanted) {
  Tensor gr, gt, gc;
  if (wanted[2]) gc = ops::ormqr(reflectors, tau, grad, left, !transpose);
  if (!wanted[0] && !wanted[1]) return {gr, gt, gc};
  int64_t m = reflectors.size(-2), n = reflectors.size(-1), k = tau.size(-1);
  Tensor all = ops::constant_pad_nd(
      ops::narrow(reflectors, -1, 0, k), {0, m - k}, Scalar(0));
  Tensor q = ops::linalg_householder_product(all, tau);
  Tensor gq =
      left ? times(grad, adjoint_of(other)) : times(adjoint_of(other), grad);
  if (transpose) gq = adjoint_of(gq);
  std::tie(gr, gt) = householder_product_gradients(gq, all, tau, q);
  if (gr.defined()) {
    gr = ops::constant_pad_nd(ops::narrow(gr, -1, 0, k), {0, n - k}, Scalar(0));
  }
  return {gr, gt, gc};
}

}  // namespace taeda::autograd
