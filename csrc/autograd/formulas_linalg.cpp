// With G the gradient of what a formula names first. All follow from the
// differential of the decomposition; conjugates by PyTorch's convention.
#include <taeda/csrc/autograd/formulas_linalg.h>

#include <taeda/aten/native/argument_checks.h>
#include <taeda/csrc/autograd/formulas_products.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/constant_pad_nd.h>
#include <taeda/gen/ops/diag_embed.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/full_like.h>
#include <taeda/gen/ops/imag.h>
#include <taeda/gen/ops/le.h>
#include <taeda/gen/ops/linalg_householder_product.h>
#include <taeda/gen/ops/linalg_solve.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/reciprocal.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/stack.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/tril.h>
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
Tensor skew(const Tensor& t) { return minus(t, adjoint_of(t)); }

}  // namespace

// A X = B: dX = A^-1 (dB - dA X).
std::tuple<Tensor, Tensor> linalg_solve_gradients(const Tensor& grad,
                                                  const Tensor& a,
                                                  const Tensor& b,
                                                  const Tensor& x,
                                                  bool left,
                                                  std::array<bool, 2> wanted) {
  bool vector = x.dim() == b.dim() && (b.dim() == 1 || x.dim() < a.dim());
  vector = vector || (b.dim() == a.dim() - 1 &&
                      b.sizes() == a.sizes().slice(0, b.sizes().size()));
  Tensor g = vector ? ops::unsqueeze(grad, -1) : grad;
  Tensor gb = ops::linalg_solve(adjoint_of(a), g, left);
  Tensor ga;
  if (wanted[0]) {
    Tensor xs = adjoint_of(vector ? ops::unsqueeze(x, -1) : x);
    Tensor product = left ? times(gb, xs) : times(xs, gb);
    ga = sum_to(ops::neg(product), symbolic_sizes(a));
  }
  if (!wanted[1]) return {ga, Tensor()};
  return {ga, sum_to(vector ? ops::squeeze(gb, -1) : gb, symbolic_sizes(b))};
}

Tensor linalg_inv_gradient(const Tensor& grad, const Tensor& inverse) {
  Tensor h = adjoint_of(inverse);
  return ops::neg(times(h, times(grad, h)));
}

namespace {

// The part of M below the diagonal, mirrored above it, and M's diagonal, which
// is real since that of R is.
Tensor mirrored(const Tensor& m) {
  Tensor below = ops::tril(m, -1);
  Tensor diagonal = ops::diagonal(m, 0, -2, -1);
  diagonal = times_scalar(plus(diagonal, conj_of(diagonal)), Scalar(0.5));
  return plus(plus(below, adjoint_of(below)), ops::diag_embed(diagonal));
}

// For R square: A = Q R.
Tensor square_qr_gradient(const Tensor& grad_q,
                          const Tensor& grad_r,
                          const Tensor& q,
                          const Tensor& r) {
  Tensor m;
  if (grad_r.defined()) m = times(r, adjoint_of(grad_r));
  if (grad_q.defined()) {
    m = plus(m, ops::neg(times(adjoint_of(grad_q), q)));
  }
  Tensor right = plus(grad_q, times(q, mirrored(m)));
  // right R^-H, by the system X R^H = right.
  return ops::linalg_solve(adjoint_of(r), right, /*left=*/false);
}

}  // namespace

Tensor linalg_qr_gradient(const Tensor& grad_q,
                          const Tensor& grad_r,
                          const Tensor& q,
                          const Tensor& r,
                          std::string_view mode) {
  TAEDA_CHECK(mode != "r",
              "The derivative of linalg.qr depends on Q, which is not computed "
              "when mode='r'. Please use linalg.qr(A, mode='reduced')");
  int64_t m = q.size(-2), n = r.size(-1);
  TAEDA_CHECK(mode != "complete" || m <= n,
              "The QR decomposition is not differentiable when mode='complete' "
              "and nrows > ncols");
  if (!grad_q.defined() && !grad_r.defined()) return {};
  if (m >= n) return square_qr_gradient(grad_q, grad_r, q, r);
  // A = [A1 A2] = Q [R1 R2]: A1 has the QR decomposition, A2 = Q R2.
  Tensor r1 = ops::narrow(r, -1, 0, m);
  if (!grad_r.defined()) {
    Tensor first = square_qr_gradient(grad_q, {}, q, r1);
    return ops::constant_pad_nd(first, {0, n - m}, Scalar(0));
  }
  Tensor g1 = ops::narrow(grad_r, -1, 0, m);
  Tensor g2 = ops::narrow(grad_r, -1, m, n - m);
  Tensor a2 = times(q, ops::narrow(r, -1, m, n - m));
  Tensor gq = plus(grad_q, times(a2, adjoint_of(g2)));
  return ops::cat({square_qr_gradient(gq, g1, q, r1), times(q, g2)}, -1);
}

namespace {

// Where single precision is to be computed in double, as it costs little.
std::optional<ScalarType> wider(const Tensor& matrices) {
  constexpr int64_t kSmall = 16;
  if (matrices.size(-1) > kSmall) return std::nullopt;
  if (matrices.dtype() == kFloat) return kDouble;
  if (matrices.dtype() == kComplexFloat) return kComplexDouble;
  return std::nullopt;
}

}  // namespace

// Q = H_0 ... H_k-1 I with H = I - tau v v^H. With G_i = H_0..i-1^H G and
// A_i = H_i+1 ... I, dQ gives dtau and dv of reflection i; the sweep takes one
// reflection from the left of both at a time.
std::tuple<Tensor, Tensor> householder_product_gradients(
    const Tensor& grad,
    const Tensor& reflectors,
    const Tensor& tau,
    const Tensor& q) {
  // Without a reflection Q is the identity, whatever is below its diagonal.
  if (tau.numel() == 0) return {};
  // An inverse reflection brings out roundings where tau is none of QR's.
  if (auto type = wider(reflectors)) {
    Tensor r = cast_to(reflectors, *type), t = cast_to(tau, *type);
    auto [gr, gt] = householder_product_gradients(
        cast_to(grad, *type), r, t, ops::linalg_householder_product(r, t));
    return {cast_to(gr, reflectors.dtype()), cast_to(gt, tau.dtype())};
  }
  Tensor g = grad, a = q;
  std::vector<Tensor> columns, factors;
  int64_t last[] = {-1};
  int64_t m = q.size(-2), n = q.size(-1), k = tau.size(-1);
  Tensor one =
      ops::eye(m, n, reflectors.dtype(), std::nullopt, reflectors.device());
  for (int64_t i = 0; i < k; ++i) {
    // Ones on the diagonal, zeros above it.
    Tensor column = ops::unsqueeze(ops::select(reflectors, -1, i), -1);
    int64_t after = m - i - 1;
    Tensor v = ops::narrow(column, -2, i + 1, after);
    v = ops::constant_pad_nd(v, {0, 0, i + 1, 0}, Scalar(0));
    v = plus(v, ops::unsqueeze(ops::select(one, -1, i), -1));
    Tensor t = ops::unsqueeze(ops::narrow(tau, -1, i, 1), -1);
    Tensor vh = adjoint_of(v), th = conj_of(t);
    // H^-1 = I - t / (t |v|^2 - 1) v v^H.
    Tensor shift = ops::sub(ops::mul(t, times(vh, v)), kOne, kOne);
    a = minus(a, ops::mul(ops::div(t, shift), times(v, times(vh, a))));
    Tensor vg = times(vh, g), va = times(vh, a);
    Tensor both = ops::mul(vg, conj_of(va));
    factors.push_back(ops::neg(ops::sum(both, IntArrayRef(last))));
    Tensor gv = plus(ops::mul(th, times(g, adjoint_of(va))),
                     ops::mul(t, times(a, adjoint_of(vg))));
    gv = ops::narrow(ops::neg(gv), -2, i + 1, after);
    columns.push_back(ops::constant_pad_nd(gv, {0, 0, i + 1, 0}, Scalar(0)));
    g = minus(g, ops::mul(th, times(v, vg)));
  }
  Tensor rest = ops::zeros_like(ops::narrow(reflectors, -1, k, n - k));
  columns.push_back(rest);
  return {ops::cat(columns, -1), ops::squeeze(ops::stack(factors, -2), -1)};
}

namespace {

// (X - X^H) / E with E_ij = s_j^2 - s_i^2, ones on the diagonal.
Tensor rotated(const Tensor& x, const Tensor& s) {
  Tensor row = ops::unsqueeze(s, -2), column = ops::unsqueeze(s, -1);
  Tensor e = ops::mul(minus(row, column), plus(row, column));
  e = plus(e, ops::eye(s.size(-1), s.dtype(), std::nullopt, s.device()));
  return ops::div(skew(x), e);
}

}  // namespace

// As wide as PyTorch's: what roundings leave is no phase.
void check_phase(std::string_view op, const Tensor& turn, const Tensor& other) {
  if (meets_python(turn)) return;
  GradModeGuard off(false);
  constexpr double kShare = 1e-2, kFloor = 1e-2;
  Tensor off_by = turn, limit = ops::full_like(turn, Scalar(kFloor));
  if (other.defined()) {
    off_by = plus(turn, other);
    limit = plus(limit, ops::mul(ops::abs(other), Scalar(kShare)));
  }
  Tensor fits = ops::all(ops::le(ops::abs(off_by), limit));
  TAEDA_CHECK(native::holds_throughout(fits),
              op,
              ": The vectors in the complex case are specified up to "
              "multiplication by e^{i phi}. The specified loss function "
              "depends on this phase term, making it ill-defined.");
}

namespace {

// Im diag(X - X^H), how far the vectors' phases count; 0 of what is not there.
Tensor phase_of(const Tensor& turn, const Tensor& s) {
  if (!turn.defined()) return ops::zeros_like(s);
  return ops::imag(ops::diagonal(skew(turn), 0, -2, -1));
}

}  // namespace

// A = U S V^H, reduced; J. Townsend, "Differentiating the singular value
// decomposition", 2016. The vectors beyond the singular values are any basis of
// what is left and take no part.
Tensor linalg_svd_gradient(const Tensor& full_grad_u,
                           const Tensor& grad_s,
                           const Tensor& full_grad_vh,
                           const Tensor& full_u,
                           const Tensor& s,
                           const Tensor& full_vh) {
  int64_t k = s.size(-1);
  Tensor u = ops::narrow(full_u, -1, 0, k), vh = ops::narrow(full_vh, -2, 0, k);
  Tensor grad_u = full_grad_u, grad_vh = full_grad_vh;
  if (grad_u.defined()) grad_u = ops::narrow(grad_u, -1, 0, k);
  if (grad_vh.defined()) grad_vh = ops::narrow(grad_vh, -2, 0, k);
  Tensor row = ops::unsqueeze(s, -2), column = ops::unsqueeze(s, -1);
  Tensor middle, turn_u, turn_v;
  if (grad_u.defined()) turn_u = times(adjoint_of(u), grad_u);
  if (grad_vh.defined()) turn_v = times(vh, adjoint_of(grad_vh));
  if (u.is_complex() && (grad_u.defined() || grad_vh.defined())) {
    check_phase(
        "linalg_svd_backward", phase_of(turn_u, s), phase_of(turn_v, s));
  }
  if (grad_s.defined()) {
    Tensor real = ops::diag_embed(grad_s);
    middle = u.is_complex() ? ops::_to_copy(real, u.dtype()) : real;
  }
  if (grad_u.defined()) {
    middle = plus(middle, ops::mul(rotated(turn_u, s), row));
    if (u.is_complex()) {
      Tensor phase = ops::diagonal(skew(turn_u), 0, -2, -1);
      phase = ops::div(phase, ops::mul(s, Scalar(2)));
      middle = plus(middle, ops::diag_embed(phase));
    }
  }
  if (grad_vh.defined()) {
    middle = plus(middle, ops::mul(rotated(turn_v, s), column));
  }
  if (!middle.defined()) return {};
  Tensor out = times(u, times(middle, vh));
  if (grad_u.defined() && u.size(-2) > k) {
    Tensor outside = minus(grad_u, times(u, times(adjoint_of(u), grad_u)));
    out = plus(out, times(ops::div(outside, row), vh));
  }
  if (grad_vh.defined() && vh.size(-1) > k) {
    Tensor outside = minus(grad_vh, times(times(grad_vh, adjoint_of(vh)), vh));
    out = plus(out, times(u, ops::div(outside, column)));
  }
  return out;
}

}  // namespace taeda::autograd
