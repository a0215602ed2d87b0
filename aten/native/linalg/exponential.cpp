// The exponential of matrices by scaling and squaring (Higham, "The scaling and
// squaring method for the matrix exponential revisited", 2005).
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/linalg/exponential.h>
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/gen/native/linalg_matrix_exp.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/ceil.h>
#include <taeda/gen/ops/clamp.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/exp2.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/isfinite.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/linalg_solve.h>
#include <taeda/gen/ops/log2.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/ops/zeros_like.h>

namespace taeda::native {

namespace {

// Coefficients of the [13/13] Pade approximant of exp, lowest first, and the
// 1-norm up to which it is as good as double precision (ibid., table 2.3).
constexpr double kPade[] = {64764752532480000.0,
                            32382376266240000.0,
                            7771770303897600.0,
                            1187353796428800.0,
                            129060195264000.0,
                            10559470521600.0,
                            670442572800.0,
                            33522128640.0,
                            1323241920.0,
                            40840800.0,
                            960960.0,
                            16380.0,
                            182.0,
                            1.0};
constexpr double kPadeRadius = 5.371920351148152;

// How often each matrix is to be halved, as a column of matrices, until its
// norm is in the radius.
Tensor halvings(const Tensor& a) {
  int64_t rows[] = {-2}, columns[] = {-1};
  Tensor norm =
      ops::amax(ops::sum(ops::abs(a), IntArrayRef(rows)), IntArrayRef(columns));
  Tensor count = ops::ceil(ops::log2(ops::div(norm, Scalar(kPadeRadius))));
  // Of what is not finite nothing is gained by it.
  count = ops::where(ops::isfinite(count),
                     ops::clamp(count, Scalar(0)),
                     ops::zeros_like(count));
  return ops::unsqueeze(ops::unsqueeze(count, -1), -1);
}

// Squaring doubles the error of what is squared, and derivatives are blocks of
// larger exponentials: where double precision costs little, matrices are
// rounded once.
constexpr int64_t kSmallMatrix = 64;
ScalarType computed_in(const Tensor& a) {
  bool small = a.size(-1) <= kSmallMatrix;
  switch (a.dtype()) {
    case kHalf:
    case kBFloat16:
    case kFloat:
      return small ? kDouble : kFloat;
    case kComplexFloat:
      return small ? kComplexDouble : kComplexFloat;
    default:
      return a.dtype();
  }
}

Tensor plus(const Tensor& a, const Tensor& b, double factor) {
  return ops::add(a, b, Scalar(factor));
}

}  // namespace

template <class I>
void linalg_matrix_exp_shape(const Spec<I>& self, Plan<I>& plan) {
  check_square("linalg.matrix_exp", self, /*small_floats=*/true);
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(linalg_matrix_exp_shape);

Tensor exponential_of(const Tensor& given) {
  // The products below are not autocast's business.
  ExcludeKeysGuard as_given(DispatchKey::Autocast);
  if (given.numel() == 0) return given;
  ScalarType type = computed_in(given);
  Tensor self = given.dtype() == type ? given : ops::_to_copy(given, type);
  Tensor count = halvings(self);
  double most = ops::item(ops::amax(count)).to<double>();
  Tensor a = most == 0 ? self : ops::mul(self, ops::exp2(ops::neg(count)));
  Tensor one = ops::eye(
      self.size(-1), self.dtype(), std::nullopt, self.device(), std::nullopt);
  Tensor a2 = ops::matmul(a, a), a4 = ops::matmul(a2, a2);
  Tensor a6 = ops::matmul(a4, a2);
  // The even or odd half of the polynomial; `first` is 0 or 1.
  auto half = [&](int first) {
    auto scaled = [&](const Tensor& t, int i) {
      return ops::mul(t, Scalar(kPade[i + first]));
    };
    Tensor high =
        plus(plus(scaled(a6, 12), a4, kPade[10 + first]), a2, kPade[8 + first]);
    Tensor low =
        plus(plus(scaled(a6, 6), a4, kPade[4 + first]), a2, kPade[2 + first]);
    return plus(
        ops::add(ops::matmul(a6, high), low, Scalar(1)), one, kPade[first]);
  };
  Tensor odd = ops::matmul(a, half(1)), even = half(0);
  Tensor result = ops::linalg_solve(
      ops::sub(even, odd, Scalar(1)), ops::add(even, odd, Scalar(1)), true);
  for (double i = 0; i < most; ++i) {
    Tensor squared = ops::matmul(result, result);
    result = ops::where(ops::gt(count, Scalar(i)), squared, result);
  }
  return result;
}

void linalg_matrix_exp_cpu(const Tensor& given, const Tensor& out) {
  if (given.numel() > 0) copy_into(out, exponential_of(given));
}

}  // namespace taeda::native
