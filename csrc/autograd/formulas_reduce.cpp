#include <taeda/csrc/autograd/formulas_reduce.h>

#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/isnan.h>
#include <taeda/gen/ops/log.h>
#include <taeda/gen/ops/log1p.h>
#include <taeda/gen/ops/logical_not.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/pow.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/zeros_like.h>

namespace taeda::autograd {

namespace {

// How many elements each result was made of.
double reduced_count(IntArrayRef sizes, OptionalDims dims) {
  double count = 1;
  if (!dims || dims->empty()) {
    for (int64_t s : sizes) count *= static_cast<double>(s);
    return count;
  }
  for (int64_t d : *dims) {
    if (sizes.empty()) break;
    int64_t rank = static_cast<int64_t>(sizes.size());
    count *= static_cast<double>(sizes[static_cast<size_t>(wrap_dim(d, rank))]);
  }
  return count;
}

bool has_zero(const Tensor& t) {
  return *ops::any(ops::eq(t, Scalar(0))).const_data<bool>();
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
                 IntArrayRef sizes,
                 OptionalDims dims,
                 bool keepdim) {
  Tensor share = ops::div(grad, Scalar(reduced_count(sizes, dims)));
  return sum_backward(share, sizes, dims, keepdim);
}

Tensor nansum_grad(const Tensor& grad,
                   const Tensor& self,
                   OptionalDims dims,
                   bool keepdim) {
  Tensor spread = sum_backward(grad, self.sizes(), dims, keepdim);
  return ops::mul(spread, ops::logical_not(ops::isnan(self)));
}

Tensor extremum_grad(const Tensor& grad,
                     const Tensor& self,
                     const Tensor& result,
                     OptionalDims dims,
                     bool keepdim) {
  Tensor mask = ops::eq(self, unreduce(result, self.sizes(), dims, keepdim));
  std::optional<IntArrayRef> all;
  Tensor count = ops::sum(mask, dims ? dims : all, /*keepdim=*/true);
  Tensor share = ops::div(unreduce(grad, self.sizes(), dims, keepdim), count);
  return ops::mul(share, mask);
}

Tensor prod_grad(const Tensor& grad,
                 const Tensor& self,
                 const Tensor& result) {
  if (self.dim() == 0) return grad;
  TAEDA_CHECK_AS(NotImplemented,
                 !has_zero(self),
                 "prod: the derivative where elements are 0 is missing");
  return ops::mul(grad, conj_of(ops::div(result, self)));
}

Tensor prod_grad(const Tensor& grad,
                 const Tensor& self,
                 const Tensor& result,
                 int64_t dim,
                 bool keepdim) {
  if (self.dim() == 0) return grad;
  int64_t dims[] = {dim};
  Tensor full = unreduce(grad, self.sizes(), IntArrayRef(dims), keepdim);
  Tensor product = unreduce(result, self.sizes(), IntArrayRef(dims), keepdim);
  TAEDA_CHECK_AS(NotImplemented,
                 !has_zero(self),
                 "prod: the derivative where elements are 0 is missing");
  return ops::mul(full, conj_of(ops::div(product, self)));
}

Tensor bce_target_grad(const Tensor& grad,
                       const Tensor& self,
                       const OptionalTensor& weight,
                       int64_t reduction) {
  Tensor logits = ops::sub(ops::log1p(ops::neg(self)), ops::log(self));
  Tensor scaled = ops::mul(grad, logits);
  if (weight && weight->defined()) scaled = ops::mul(scaled, *weight);
  if (reduction != 1) return scaled;
  return ops::mul(scaled, Scalar(1.0 / static_cast<double>(self.numel())));
}

}  // namespace taeda::autograd
