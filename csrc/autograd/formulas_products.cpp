#include <taeda/csrc/autograd/formulas_products.h>

#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::autograd {

Tensor adjoint_of(const Tensor& t) {
  Tensor flipped = ops::transpose(t, -2, -1);
  return t.is_complex() ? conj_of(flipped) : flipped;
}

Tensor times_scalar(const Tensor& t, const Scalar& s) {
  return s.equal(1.0) ? t : ops::mul(t, s);
}

namespace {

Tensor rows_of(const Tensor& t) {
  if (t.dim() == 2) return t;
  int64_t width = t.size(-1), rows = 1;
  for (int64_t s : t.sizes().slice(0, t.sizes().size() - 1)) rows *= s;
  return ops::reshape(t, {rows, width});
}

// A batch of one as the matrix it is, whose gradient is then one product that
// sums over the other operand's batch, not a rounded product a matrix.
Tensor without_batch_of_one(const Tensor& t) {
  if (t.dim() <= 2) return t;
  IntArrayRef lead = t.sizes().slice(0, t.sizes().size() - 2);
  for (int64_t s : lead) {
    if (s != 1) return t;
  }
  return ops::reshape(t, {t.size(-2), t.size(-1)});
}

Tensor in_shape(const Tensor& t, const Tensor& like) {
  return t.sizes() == like.sizes() ? t : ops::reshape(t, like.sizes());
}

// Vectors as matrices, and the gradient with the dims that they lack.
struct AsMatrices {
  Tensor a, b, grad;
};
AsMatrices as_matrices(const Tensor& grad, const Tensor& a, const Tensor& b) {
  AsMatrices m{a, b, grad};
  DimVector sizes(grad.sizes());
  if (a.dim() == 1) {
    m.a = ops::reshape(a, {1, a.size(0)});
    sizes.insert(sizes.end() - (b.dim() > 1), 1);
  }
  if (b.dim() == 1) {
    m.b = ops::reshape(b, {b.size(0), 1});
    sizes.push_back(1);
  }
  if (sizes.size() != grad.sizes().size()) m.grad = ops::reshape(grad, sizes);
  m.a = without_batch_of_one(m.a);
  m.b = without_batch_of_one(m.b);
  return m;
}

// The gradient of one matrix that multiplied a batch: one product that sums
// over the batch as it goes.
Tensor shared_left_gradient(const Tensor& grad, const Tensor& b) {
  int64_t n = grad.size(-2), k = b.size(-2), m = b.size(-1), batch = 1;
  for (int64_t s : b.sizes().slice(0, b.sizes().size() - 2)) batch *= s;
  Tensor g = ops::transpose(ops::reshape(grad, {batch, n, m}), 0, 1);
  Tensor other = ops::reshape(adjoint_of(b), {batch * m, k});
  return ops::mm(ops::reshape(g, {n, batch * m}), other);
}

}  // namespace

std::tuple<Tensor, Tensor> matmul_gradients(const Tensor& grad,
                                            const Tensor& a,
                                            const Tensor& b,
                                            std::array<bool, 2> wanted) {
  Tensor ga, gb;
  if (a.dim() == 1 && b.dim() == 1) {
    if (wanted[0]) ga = ops::mul(grad, conj_of(b));
    if (wanted[1]) gb = ops::mul(grad, conj_of(a));
    return {ga, gb};
  }
  AsMatrices m = as_matrices(grad, a, b);
  if (wanted[0]) {
    if (m.a.dim() == 2 && m.b.dim() > 2) {
      ga = shared_left_gradient(m.grad, m.b);
    } else {
      ga = sum_to(ops::matmul(m.grad, adjoint_of(m.b)), m.a.sizes());
    }
    ga = in_shape(ga, a);
  }
  if (wanted[1]) {
    if (m.b.dim() == 2 && m.a.dim() > 2) {
      gb = ops::mm(adjoint_of(rows_of(m.a)), rows_of(m.grad));
    } else {
      gb = sum_to(ops::matmul(adjoint_of(m.a), m.grad), m.b.sizes());
    }
    gb = in_shape(gb, b);
  }
  return {ga, gb};
}

std::tuple<Tensor, Tensor> addmv_gradients(const Tensor& grad,
                                           const Tensor& mat,
                                           const Tensor& vec,
                                           const Scalar& alpha,
                                           std::array<bool, 2> wanted) {
  auto [gm, gv] = matmul_gradients(grad, mat, vec, wanted);
  // Scaled last: 16-bit sums must not see a rounded factor.
  if (wanted[0]) gm = times_scalar(gm, alpha.conj());
  if (wanted[1]) gv = times_scalar(gv, alpha.conj());
  return {gm, gv};
}

std::tuple<Tensor, Tensor, Tensor> linear_gradients(
    const Tensor& grad,
    const Tensor& input,
    const Tensor& weight,
    IntArrayRef bias_sizes,
    std::array<bool, 3> wanted) {
  Tensor gi, gw, gb;
  if (weight.dim() == 1) {
    auto [x, w] = matmul_gradients(grad, input, weight, {wanted[0], wanted[1]});
    gi = x, gw = w;
  } else {
    Tensor w = weight.is_complex() ? conj_of(weight) : weight;
    if (wanted[0]) gi = ops::matmul(grad, w);
    if (wanted[1]) {
      Tensor rows = input.dim() == 1 ? ops::reshape(input, {1, input.size(0)})
                                     : rows_of(input);
      Tensor g = grad.dim() == 1 ? ops::reshape(grad, {1, grad.size(0)})
                                 : rows_of(grad);
      if (rows.is_complex()) rows = conj_of(rows);
      gw = ops::mm(ops::transpose(g, 0, 1), rows);
    }
  }
  if (wanted[2]) gb = sum_to(grad, bias_sizes);
  return {gi, gw, gb};
}

}  // namespace taeda::autograd
