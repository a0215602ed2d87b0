#include <taeda/csrc/autograd/formulas_products.h>

#include <taeda/csrc/autograd/record.h>
#include <taeda/gen/ops/addmm.h>
#include <taeda/gen/ops/baddbmm.h>
#include <taeda/gen/ops/bmm.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/zeros.h>
#include <taeda/gen/sym/reshape.h>

namespace taeda::autograd {

Tensor adjoint_of(const Tensor& t) {
  Tensor flipped = ops::transpose(t, -2, -1);
  return t.is_complex() ? conj_of(flipped) : flipped;
}

Tensor times_scalar(const Tensor& t, const Scalar& s) {
  return s.equal(1.0) ? t : ops::mul(t, s);
}

namespace {

bool rounds_twice(const Tensor& t, const Scalar& s) {
  return is_small_float(t) && !s.equal(1.0);
}
// What a product is added to with factor 0: nobody reads it.
Tensor unread(const Tensor& like) {
  return ops::zeros({1}, like.dtype(), std::nullopt, like.device(), {});
}

}  // namespace

Tensor scaled_mm(const Tensor& a, const Tensor& b, const Scalar& s) {
  if (!rounds_twice(a, s)) return times_scalar(ops::mm(a, b), s);
  return ops::addmm(unread(a), a, b, Scalar(0), s);
}
Tensor scaled_bmm(const Tensor& a, const Tensor& b, const Scalar& s) {
  if (!rounds_twice(a, s)) return times_scalar(ops::bmm(a, b), s);
  return ops::baddbmm(unread(a), a, b, Scalar(0), s);
}

namespace {

const SymInt& size_from_end(const Tensor& t, size_t back) {
  SymIntArrayRef sizes = symbolic_sizes(t);
  return sizes[sizes.size() - back];
}
// The sizes before the last `count`.
SymIntArrayRef leading(const Tensor& t, size_t count) {
  SymIntArrayRef sizes = symbolic_sizes(t);
  return sizes.slice(0, sizes.size() - count);
}
SymInt product_of(SymIntArrayRef sizes) {
  SymInt product = 1;
  for (const SymInt& s : sizes) product *= s;
  return product;
}

Tensor rows_of(const Tensor& t) {
  if (t.dim() == 2) return t;
  return sym::reshape(t, {product_of(leading(t, 1)), size_from_end(t, 1)});
}

// A batch of one as the matrix it is, whose gradient is then one product that
// sums over the other operand's batch, not a rounded product a matrix.
Tensor without_batch_of_one(const Tensor& t) {
  if (t.dim() <= 2) return t;
  for (const SymInt& s : leading(t, 2)) {
    if (s != 1) return t;
  }
  return sym::reshape(t, {size_from_end(t, 2), size_from_end(t, 1)});
}

Tensor in_shape(const Tensor& t, const Tensor& like) {
  SymIntArrayRef sizes = symbolic_sizes(like);
  return same_sizes(symbolic_sizes(t), sizes) ? t : sym::reshape(t, sizes);
}

// Vectors as matrices, and the gradient with the dims that they lack.
struct AsMatrices {
  Tensor a, b, grad;
};
AsMatrices as_matrices(const Tensor& grad, const Tensor& a, const Tensor& b) {
  AsMatrices m{a, b, grad};
  Dims<SymInt> sizes(symbolic_sizes(grad));
  if (a.dim() == 1) {
    m.a = sym::reshape(a, {1, size_from_end(a, 1)});
    sizes.insert(sizes.end() - (b.dim() > 1), 1);
  }
  if (b.dim() == 1) {
    m.b = sym::reshape(b, {size_from_end(b, 1), 1});
    sizes.push_back(1);
  }
  if (static_cast<int64_t>(sizes.size()) != grad.dim()) {
    m.grad = sym::reshape(grad, sizes);
  }
  m.a = without_batch_of_one(m.a);
  m.b = without_batch_of_one(m.b);
  return m;
}

// The gradient of one matrix that multiplied a batch: one product that sums
// over the batch as it goes.
Tensor shared_left_gradient(const Tensor& grad, const Tensor& b) {
  SymInt n = size_from_end(grad, 2), k = size_from_end(b, 2);
  SymInt m = size_from_end(b, 1), batch = product_of(leading(b, 2));
  Tensor g = ops::transpose(sym::reshape(grad, {batch, n, m}), 0, 1);
  Tensor other = sym::reshape(adjoint_of(b), {batch * m, k});
  return ops::mm(sym::reshape(g, {n, batch * m}), other);
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
      ga = sum_to(ops::matmul(m.grad, adjoint_of(m.b)), symbolic_sizes(m.a));
    }
    ga = in_shape(ga, a);
  }
  if (wanted[1]) {
    if (m.b.dim() == 2 && m.a.dim() > 2) {
      gb = ops::mm(adjoint_of(rows_of(m.a)), rows_of(m.grad));
    } else {
      gb = sum_to(ops::matmul(adjoint_of(m.a), m.grad), symbolic_sizes(m.b));
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
    SymIntArrayRef bias_sizes,
    std::array<bool, 3> wanted) {
  Tensor gi, gw, gb;
  if (weight.dim() == 1) {
    auto [x, w] = matmul_gradients(grad, input, weight, {wanted[0], wanted[1]});
    gi = x, gw = w;
  } else {
    Tensor w = weight.is_complex() ? conj_of(weight) : weight;
    if (wanted[0]) gi = ops::matmul(grad, w);
    if (wanted[1]) {
      Tensor rows = rows_of(input), g = rows_of(grad);
      if (rows.is_complex()) rows = conj_of(rows);
      gw = ops::mm(ops::transpose(g, 0, 1), rows);
    }
  }
  if (wanted[2]) gb = sum_to(grad, bias_sizes);
  return {gi, gw, gb};
}

}  // namespace taeda::autograd
