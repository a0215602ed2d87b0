#include <taeda/csrc/autograd/formulas_fft.h>

#include <taeda/gen/ops/_fft_c2c.h>
#include <taeda/gen/ops/_fft_r2c.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/sym/_fft_c2r.h>
#include <taeda/gen/sym/slice.h>

namespace taeda::autograd {

namespace {

// `t` with the elements of its dim `dim` times `inner`, but for the first and,
// of lines of even size, the last: those stand for themselves, all others for
// their mirror images too.
Tensor weighted(const Tensor& t,
                int64_t dim,
                const SymInt& size,
                double inner) {
  SymInt mirrored = (size - 1) / 2;  // elements with an image
  Tensor first = ops::slice(t, dim, 0, 1);
  Tensor middle = sym::slice(t, dim, SymInt(1), mirrored + 1, SymInt(1));
  Tensor last = sym::slice(t, dim, mirrored + 1, std::nullopt, SymInt(1));
  return ops::cat({first, ops::mul(middle, Scalar(inner)), last}, dim);
}

}  // namespace

Tensor fft_r2c_backward(const Tensor& grad,
                        IntArrayRef dims,
                        int64_t normalization,
                        bool onesided,
                        const SymInt& size) {
  if (!onesided)
    return ops::real(ops::_fft_c2c(grad, dims, normalization, false));
  Tensor g = weighted(grad, dims.back(), size, 0.5);
  return sym::_fft_c2r(g, dims, normalization, size);
}

Tensor fft_c2r_backward(const Tensor& grad,
                        IntArrayRef dims,
                        int64_t normalization) {
  int64_t d = wrap_dim(dims.back(), grad.dim());
  SymInt size = symbolic_sizes(grad)[static_cast<size_t>(d)];
  return weighted(ops::_fft_r2c(grad, dims, normalization, true), d, size, 2.0);
}

}  // namespace taeda::autograd
