#include <taeda/csrc/autograd/formulas_creation.h>

#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/imag.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/sgn.h>
#include <taeda/gen/ops/sum.h>

namespace taeda::autograd {

Tensor fill_backward(const Tensor& grad, ScalarType dtype) {
  return cast_to(real_if_needed(ops::sum(grad), dtype), dtype);
}

// result = abs exp(i angle): d/d abs is sgn(result), d/d angle is i result.
std::tuple<Tensor, Tensor> polar_backward(const Tensor& grad,
                                          const Tensor& result,
                                          SymIntArrayRef abs_sizes,
                                          SymIntArrayRef angle_sizes) {
  Tensor turned = ops::conj(grad);
  Tensor abs = ops::real(ops::mul(turned, ops::sgn(result)));
  Tensor angle = ops::neg(ops::imag(ops::mul(turned, result)));
  return {sum_to(abs, abs_sizes), sum_to(angle, angle_sizes)};
}

}  // namespace taeda::autograd
