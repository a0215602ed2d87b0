#include <taeda/csrc/autograd/formulas_reduce.h>

#include <taeda/gen/ops/_cumprod_backward.h>
#include <taeda/gen/ops/_reverse_cumsum.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/gather.h>
#include <taeda/gen/ops/isnan.h>
#include <taeda/gen/ops/log.h>
#include <taeda/gen/ops/log1p.h>
#include <taeda/gen/ops/logical_and.h>
#include <taeda/gen/ops/logical_not.h>
#include <taeda/gen/ops/logical_or.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/pow.h>
#include <taeda/gen/ops/sgn.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros_like.h>
#include <taeda/gen/sym/expand.h>
#include <taeda/gen/sym/narrow.h>
#include <taeda/gen/sym/reshape.h>

#include <cmath>
#include <limits>

namespace taeda::autograd {

namespace {

// How many elements each result was made of. A double where it is known: sizes
// may be greater than integers count to where nothing is stored.
struct Count {
  double known = 1;
  SymInt symbolic = 1;
  void operator*=(const SymInt& size) {
    if (size.is_symbolic()) {
      symbolic *= size;
    } else {
      known *= static_cast<double>(size.plain());
    }
    // A guard may have settled what a symbol is: the product is plain then.
    if (!symbolic.is_symbolic()) {
      known *= static_cast<double>(symbolic.plain());
      symbolic = 1;
    }
  }
};
Count reduced_count(SymIntArrayRef sizes, OptionalDims dims) {
  Count count;
  if (!dims || dims->empty()) {
    for (const SymInt& s : sizes) count *= s;
    return count;
  }
  for (int64_t d : *dims) {
    if (sizes.empty()) break;
    int64_t rank = static_cast<int64_t>(sizes.size());
    count *= sizes[static_cast<size_t>(wrap_dim(d, rank))];
  }
  return count;
}

// t / (count - taken).
Tensor divided(const Tensor& t, const Count& count, double taken = 0.0) {
  if (!count.symbolic.is_symbolic()) {
    return ops::div(t, Scalar(count.known - taken));
  }
  SymInt whole = count.symbolic * SymInt(static_cast<int64_t>(count.known));
  Tensor number = native::number_as_tensor(t, whole);
  if (taken != 0.0) number = ops::sub(number, Scalar(taken));
  return ops::div(t, number);
}

bool has_zero(const Tensor& t) {
  return may_hold(ops::any(ops::eq(t, Scalar(0))));
}

Scalar minus_one(const Scalar& s) {
  if (s.is_complex()) return Scalar(s.to_complex() - complex<double>(1.0, 0.0));
  if (s.is_floating()) return Scalar(s.to_double() - 1.0);
  return Scalar(s.to_int() - 1);
}

}  // namespace

Tensor pow_grad(const Tensor& grad,
                const Tensor& self,
                const Scalar& exponent) {
  if (exponent.equal(0.0)) return ops::zeros_like(self);
  Tensor power = ops::pow(self, minus_one(exponent));
  return ops::mul(grad, conj_of(ops::mul(power, exponent)));
}

Tensor mean_grad(const Tensor& grad,
                 SymIntArrayRef sizes,
                 OptionalDims dims,
                 bool keepdim) {
  Tensor share = divided(grad, reduced_count(sizes, dims));
  return sum_backward(share, sizes, dims, keepdim);
}

Tensor nansum_grad(const Tensor& grad,
                   const Tensor& self,
                   OptionalDims dims,
                   bool keepdim) {
  Tensor spread = sum_backward(grad, symbolic_sizes(self), dims, keepdim);
  return ops::mul(spread, ops::logical_not(ops::isnan(self)));
}

Tensor extremum_grad(const Tensor& grad,
                     const Tensor& self,
                     const Tensor& result,
                     OptionalDims dims,
                     bool keepdim) {
  Tensor found = unreduce(result, symbolic_sizes(self), dims, keepdim);
  Tensor mask = ops::eq(self, found);
  // Of all elements a NaN is the result too, and equals nothing.
  if (!dims && is_floating(self.dtype())) {
    Tensor both = ops::logical_and(ops::isnan(self), ops::isnan(found));
    mask = ops::logical_or(mask, both);
  }
  std::optional<IntArrayRef> all;
  Tensor count = ops::sum(mask, dims ? dims : all, /*keepdim=*/true);
  Tensor share =
      ops::div(unreduce(grad, symbolic_sizes(self), dims, keepdim), count);
  return ops::mul(share, mask);
}

Tensor prod_grad(const Tensor& grad, const Tensor& self, const Tensor& result) {
  if (self.dim() == 0) return grad;
  if (!has_zero(self)) {
    return ops::mul(grad, conj_of(ops::div(result, self)));
  }
  Tensor row = sym::reshape(self, {-1});
  Tensor slope = prod_grad(grad, row, result, 0, false);
  return sym::reshape(slope, symbolic_sizes(self));
}

Tensor prod_grad(const Tensor& grad,
                 const Tensor& self,
                 const Tensor& result,
                 int64_t dim,
                 bool keepdim) {
  if (self.dim() == 0) return grad;
  int64_t dims[] = {dim};
  Tensor full =
      unreduce(grad, symbolic_sizes(self), IntArrayRef(dims), keepdim);
  if (native::has_no_elements(self))
    return sym::expand(full, symbolic_sizes(self));
  if (!has_zero(self)) {
    Tensor product =
        unreduce(result, symbolic_sizes(self), IntArrayRef(dims), keepdim);
    return ops::mul(full, conj_of(ops::div(product, self)));
  }
  // The product is the last one of cumprod.
  Tensor last = ops::zeros_like(self);
  const SymInt& length = symbolic_sizes(self)[wrap_dim(dim, self.dim())];
  ops::copy_(sym::narrow(last, dim, length - 1, 1), full);
  return ops::_cumprod_backward(last, conj_of(self), dim);
}

namespace {

Tensor sum_along(const Tensor& t, int64_t dim) {
  int64_t dims[] = {dim};
  return ops::sum(t, IntArrayRef(dims), /*keepdim=*/true);
}

}  // namespace

Tensor softmax_double_grad(const Tensor& grad,
                           const Tensor& grad_output,
                           const Tensor& output,
                           int64_t dim) {
  Tensor inner = sum_along(ops::mul(grad_output, output), dim);
  Tensor first = ops::mul(grad, ops::sub(grad_output, inner));
  Tensor weight = sum_along(ops::mul(grad, output), dim);
  return ops::sub(first, ops::mul(grad_output, weight));
}

Tensor log_softmax_double_grad(const Tensor& grad,
                               const Tensor& output,
                               int64_t dim) {
  Tensor weight = sum_along(ops::mul(grad, ops::exp(output)), dim);
  return ops::sub(grad, weight);
}

Tensor log_softmax_output_grad(const Tensor& grad,
                               const Tensor& grad_output,
                               const Tensor& output,
                               int64_t dim) {
  Tensor share = ops::mul(sum_along(grad_output, dim), ops::exp(output));
  return ops::neg(ops::mul(share, grad));
}

Tensor var_grad(const Tensor& grad,
                const Tensor& self,
                OptionalDims dims,
                const Correction& correction,
                bool keepdim) {
  double taken = correction ? correction->to_double() : 1.0;
  Count count = reduced_count(symbolic_sizes(self), dims);
  Tensor full = unreduce(grad, symbolic_sizes(self), dims, keepdim);
  Tensor center = ops::sub(self, ops::mean(self, dims, /*keepdim=*/true));
  if (count.symbolic.is_symbolic()) {
    Tensor twice = ops::mul(full, Scalar(2.0));
    return ops::mul(divided(twice, count, taken), center);
  }
  Scalar factor = 2.0 / (count.known - taken);
  return ops::mul(ops::mul(full, factor), center);
}

Tensor std_grad(const Tensor& grad,
                const Tensor& self,
                const Tensor& result,
                OptionalDims dims,
                const Correction& correction,
                bool keepdim) {
  // Divisors are finite where their quotient is left out, see Note [Arms of
  // selects].
  Tensor none = ops::eq(result, Scalar(0));
  Tensor twice = ops::mul(ops::masked_fill(result, none, Scalar(1)), Scalar(2));
  Tensor share = ops::where(none, Scalar(0.0), ops::div(grad, twice));
  return var_grad(share, self, dims, correction, keepdim);
}

namespace {

Tensor sum_defined(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? ops::add(a, b) : a;
}

}  // namespace

Tensor var_mean_grad(const Tensor& grad_var,
                     const Tensor& grad_mean,
                     const Tensor& self,
                     OptionalDims dims,
                     const Correction& correction,
                     bool keepdim) {
  Tensor a, b;
  if (grad_var.defined()) {
    a = var_grad(grad_var, self, dims, correction, keepdim);
  }
  if (grad_mean.defined())
    b = mean_grad(grad_mean, symbolic_sizes(self), dims, keepdim);
  return sum_defined(a, b);
}

Tensor std_mean_grad(const Tensor& grad_std,
                     const Tensor& grad_mean,
                     const Tensor& self,
                     const Tensor& result,
                     OptionalDims dims,
                     const Correction& correction,
                     bool keepdim) {
  Tensor a, b;
  if (grad_std.defined()) {
    a = std_grad(grad_std, self, result, dims, correction, keepdim);
  }
  if (grad_mean.defined())
    b = mean_grad(grad_mean, symbolic_sizes(self), dims, keepdim);
  return sum_defined(a, b);
}

Tensor cumsum_grad(const Tensor& grad, int64_t dim) {
  return ops::_reverse_cumsum(grad, dim);
}

Tensor cumprod_grad(const Tensor& grad,
                    const Tensor& self,
                    const Tensor& result,
                    int64_t dim) {
  bool itself =
      self.dim() == 0 || symbolic_sizes(self)[wrap_dim(dim, self.dim())] == 1;
  if (itself || native::has_no_elements(self)) return grad;
  // Sums of 16-bit results that cancel have too few digits.
  bool narrow = self.dtype() == kHalf || self.dtype() == kBFloat16;
  if ((narrow && !grad_enabled()) || has_zero(self)) {
    return ops::_cumprod_backward(grad, conj_of(self), dim);
  }
  Tensor weighted = ops::mul(grad, conj_of(result));
  return ops::div(ops::_reverse_cumsum(weighted, dim), conj_of(self));
}

Tensor logsumexp_grad(const Tensor& grad,
                      const Tensor& self,
                      const Tensor& result,
                      OptionalDims dims,
                      bool keepdim) {
  Tensor full = unreduce(grad, symbolic_sizes(self), dims, keepdim);
  Tensor total = unreduce(result, symbolic_sizes(self), dims, keepdim);
  Tensor share = ops::exp(ops::sub(self, total));
  return ops::mul(full, share.is_complex() ? conj_of(share) : share);
}

Tensor norm_grad(const Tensor& grad,
                 const Tensor& self,
                 const std::optional<Scalar>& order,
                 const Tensor& result,
                 OptionalDims dims,
                 bool keepdim) {
  double p = order ? order->to_double() : 2.0;
  if (p == 0) return Tensor();
  Tensor g = unreduce(grad, symbolic_sizes(self), dims, keepdim);
  Tensor size = unreduce(result, symbolic_sizes(self), dims, keepdim);
  if (p == 1) return ops::mul(ops::sgn(self), g);
  Tensor none = ops::eq(size, Scalar(0));
  if (p == 2) {
    Tensor unit = ops::div(self, size);
    return ops::mul(g, ops::masked_fill(unit, none, Scalar(0)));
  }
  if (std::isinf(p)) {
    Tensor magnitudes = ops::abs(self);
    // Which elements are extreme is asked of these magnitudes: those that the
    // norm compared may differ in the last digit where numbers are complex.
    if (self.is_complex()) {
      IntArrayRef over = dims ? *dims : IntArrayRef();
      size = p > 0 ? ops::amax(magnitudes, over, /*keepdim=*/true)
                   : ops::amin(magnitudes, over, /*keepdim=*/true);
    }
    Tensor mask = ops::eq(magnitudes, size);
    Tensor share = ops::div(g, ops::sum(mask, dims, /*keepdim=*/true));
    return ops::mul(ops::sgn(self), ops::mul(share, mask));
  }
  Tensor power = ops::pow(ops::abs(self), Scalar(p < 2 ? p - 1 : p - 2));
  if (p < 1) {
    power = ops::masked_fill(power, ops::eq(self, Scalar(0)), Scalar(0));
  }
  Tensor scaled = ops::mul(p < 2 ? ops::sgn(self) : self, power);
  // No quotient by 0, which forward mode would find behind the mask.
  Tensor divisor =
      ops::masked_fill(ops::pow(size, Scalar(p - 1)), none, Scalar(1));
  Tensor scale = ops::div(g, divisor);
  return ops::mul(scaled, ops::masked_fill(scale, none, Scalar(0)));
}

Tensor picked_grad(const Tensor& grad,
                   int64_t dim,
                   const Tensor& indices,
                   bool keepdim) {
  if (keepdim || grad.dim() == 0) return ops::gather(grad, dim, indices);
  Dims<SymInt> shape(symbolic_sizes(indices));
  shape.insert(shape.begin() + wrap_dim(dim, grad.dim()), 1);
  Tensor where = sym::reshape(indices, shape);
  return sym::reshape(ops::gather(grad, dim, where), symbolic_sizes(indices));
}

}  // namespace taeda::autograd
