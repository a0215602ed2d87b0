// Softmax and its derivatives by other operators: what they are mapped by, and
// what loops that take in their neighbours compute.
#include <taeda/gen/native/_log_softmax.h>
#include <taeda/gen/native/_log_softmax_backward_data.h>
#include <taeda/gen/native/_softmax.h>
#include <taeda/gen/native/_softmax_backward_data.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/log.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/reciprocal.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>

namespace taeda::native {

namespace {

Tensor total(const Tensor& t, int64_t dim) {
  return ops::sum(t, IntArrayRef(dim), /*keepdim=*/true);
}
Tensor below_highest(const Tensor& self, int64_t dim) {
  return ops::sub(self, ops::amax(self, IntArrayRef(dim), /*keepdim=*/true));
}

}  // namespace

Tensor softmax_means(const Tensor& self, int64_t dim, bool) {
  Tensor e = ops::exp(below_highest(self, dim));
  return ops::mul(e, ops::reciprocal(total(e, dim)));
}

Tensor log_softmax_means(const Tensor& self, int64_t dim, bool) {
  Tensor shifted = below_highest(self, dim);
  return ops::sub(shifted, ops::log(total(ops::exp(shifted), dim)));
}

Tensor softmax_backward_means(const Tensor& grad,
                              const Tensor& output,
                              int64_t dim,
                              ScalarType) {
  Tensor slope = total(ops::mul(grad, output), dim);
  return ops::mul(ops::sub(grad, slope), output);
}

Tensor log_softmax_backward_means(const Tensor& grad,
                                  const Tensor& output,
                                  int64_t dim,
                                  ScalarType) {
  return ops::sub(grad, ops::mul(ops::exp(output), total(grad, dim)));
}

}  // namespace taeda::native
