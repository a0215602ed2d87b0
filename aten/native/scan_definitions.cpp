// What the derivatives of scans mean.
#include <taeda/aten/core/tensor_base.h>
#include <taeda/gen/native/_cumprod_backward.h>
#include <taeda/gen/native/_logcumsumexp_backward.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/cumprod.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/logcumsumexp.h>
#include <taeda/gen/ops/logical_or.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/ones.h>
#include <taeda/gen/ops/ones_like.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/tril.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <limits>
#include <vector>

namespace taeda::native {

// Without dividing by the factors: slice k is the product before it times the
// sum of what it multiplies afterwards.
Tensor cumprod_backward_means(const Tensor& grad,
                              const Tensor& x,
                              int64_t dim) {
  if (x.dim() == 0) return grad;
  int64_t n = x.size(dim), dims[] = {dim};
  if (n == 0) return grad;
  Tensor before = ops::ones_like(ops::narrow(x, dim, int64_t{0}, 1));
  std::vector<Tensor> slices;
  for (int64_t k = 0; k < n; ++k) {
    int64_t rest = n - k - 1;
    std::vector<Tensor> factors{ops::ones_like(before),
                                ops::narrow(x, dim, k + 1, rest)};
    Tensor after = ops::cumprod(ops::cat(factors, dim), dim, std::nullopt);
    Tensor weighted = ops::mul(ops::narrow(grad, dim, k, rest + 1), after);
    Tensor slope = ops::sum(weighted, IntArrayRef(dims), /*keepdim=*/true);
    slices.push_back(ops::mul(before, slope));
    before = ops::mul(before, ops::narrow(x, dim, k, 1));
  }
  return ops::cat(slices, dim);
}

// Element i has the share e^(x_i - total_j) in the total of each later j. The
// totals are taken again: those of float have lost the digits of the shares.
Tensor logcumsumexp_backward_means(const Tensor& grad,
                                   const Tensor& x,
                                   const Tensor&,
                                   int64_t dim) {
  ScalarType type = x.is_complex() ? kComplexDouble : kDouble;
  auto last = [&](const Tensor& t) {
    Tensor wide = ops::_to_copy(t, type);
    return t.dim() == 0 ? ops::unsqueeze(wide, 0) : ops::movedim(wide, dim, -1);
  };
  constexpr double kNothing = -std::numeric_limits<double>::infinity();
  Tensor wide = last(x), of = ops::unsqueeze(wide, -1),
         all = ops::unsqueeze(ops::logcumsumexp(wide, -1), -2);
  int64_t n = of.size(-2);
  Tensor square =
      ops::ones({n, n}, kBool, std::nullopt, x.device(), std::nullopt);
  Tensor size = x.is_complex() ? ops::real(all) : all;
  Tensor none =
      ops::logical_or(ops::tril(square, -1), ops::eq(size, Scalar(kNothing)));
  Tensor power = ops::masked_fill(ops::sub(of, all), none, Scalar(kNothing));
  Tensor shares = ops::exp(power);
  if (x.is_complex()) shares = ops::conj(shares);
  Tensor sums = ops::matmul(shares, ops::unsqueeze(last(grad), -1));
  Tensor out = ops::_to_copy(ops::squeeze(sums, -1), x.dtype());
  return x.dim() == 0 ? ops::squeeze(out, 0) : ops::movedim(out, -1, dim);
}

}  // namespace taeda::native
