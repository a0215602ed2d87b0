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

Tensor in_shape(const Tensor& t, SymIntArrayRef sizes) {
  return same_sizes(symbolic_sizes(t), sizes) ? t : sym::reshape(t, sizes);
}

// A vector as a matrix, and a batch of one as the matrix it is, whose gradient
// is then one product that sums over the other operand's batch, not a rounded
// product a matrix.
Dims<SymInt> matrix_sizes(SymIntArrayRef sizes, bool left) {
  const SymInt& last = sizes[sizes.size() - 1];
  if (sizes.size() == 1) {
    return left ? Dims<SymInt>{SymInt(1), last} : Dims<SymInt>{last, SymInt(1)};
  }
  for (const SymInt& s : sizes.slice(0, sizes.size() - 2)) {
    if (s != 1) return Dims<SymInt>(sizes);
  }
  return {sizes[sizes.size() - 2], last};
}

// The gradient with the dims that it lacks where an operand was a vector.
Tensor between_matrices(const Tensor& grad, size_t left, size_t right) {
  Dims<SymInt> sizes(symbolic_sizes(grad));
  if (left == 1) sizes.insert(sizes.end() - (right > 1), 1);
  if (right == 1) sizes.push_back(1);
  return in_shape(grad, sizes);
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

Tensor matmul_left_gradient(const Tensor& grad,
                            SymIntArrayRef sizes,
                            const Tensor& b) {
  if (sizes.size() == 1 && b.dim() == 1) return ops::mul(grad, conj_of(b));
  Dims<SymInt> left = matrix_sizes(sizes, /*left=*/true);
  Tensor right = in_shape(b, matrix_sizes(symbolic_sizes(b), /*left=*/false));
  Tensor g = between_matrices(grad, sizes.size(), static_cast<size_t>(b.dim()));
  Tensor found = left.size() == 2 && right.dim() > 2
                     ? shared_left_gradient(g, right)
                     : sum_to(ops::matmul(g, adjoint_of(right)), left);
  return in_shape(found, sizes);
}

Tensor matmul_right_gradient(const Tensor& grad,
                             const Tensor& a,
                             SymIntArrayRef sizes) {
  if (sizes.size() == 1 && a.dim() == 1) return ops::mul(grad, conj_of(a));
  Dims<SymInt> right = matrix_sizes(sizes, /*left=*/false);
  Tensor left = in_shape(a, matrix_sizes(symbolic_sizes(a), /*left=*/true));
  Tensor g = between_matrices(grad, static_cast<size_t>(a.dim()), sizes.size());
  Tensor found = right.size() == 2 && left.dim() > 2
                     ? ops::mm(adjoint_of(rows_of(left)), rows_of(g))
                     : sum_to(ops::matmul(adjoint_of(left), g), right);
  return in_shape(found, sizes);
}

std::tuple<Tensor, Tensor> addmv_gradients(const Tensor& grad,
                                           const Tensor& mat,
                                           const Tensor& vec,
                                           const Scalar& alpha,
                                           std::array<bool, 2> wanted) {
  Tensor gm, gv;
  if (wanted[0]) gm = matmul_left_gradient(grad, symbolic_sizes(mat), vec);
  if (wanted[1]) gv = matmul_right_gradient(grad, mat, symbolic_sizes(vec));
  // Scaled last: 16-bit sums must not see a rounded factor.
  if (wanted[0]) gm = times_scalar(gm, alpha.conj());
  if (wanted[1]) gv = times_scalar(gv, alpha.conj());
  return {gm, gv};
}

Tensor linear_input_gradient(const Tensor& grad,
                             SymIntArrayRef sizes,
                             const Tensor& weight) {
  if (weight.dim() == 1) return matmul_left_gradient(grad, sizes, weight);
  return ops::matmul(grad, weight.is_complex() ? conj_of(weight) : weight);
}

Tensor linear_weight_gradient(const Tensor& grad,
                              const Tensor& input,
                              SymIntArrayRef sizes) {
  if (sizes.size() == 1) return matmul_right_gradient(grad, input, sizes);
  Tensor rows = rows_of(input);
  if (rows.is_complex()) rows = conj_of(rows);
  return ops::mm(ops::transpose(rows_of(grad), 0, 1), rows);
}

}  // namespace taeda::autograd
