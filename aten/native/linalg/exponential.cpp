// The exponential of matrices by scaling and squaring (Higham, "The scaling and
// squaring method for the matrix exponential revisited", 2005), written with
// operators, so that it can be differentiated as often as wanted.
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/gen/native/linalg_matrix_exp.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/detach.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/linalg_solve.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>

#include <algorithm>
#include <cmath>

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

int halvings(const Tensor& a) {
  int64_t rows[] = {-2};
  Tensor columns = ops::sum(ops::abs(ops::detach(a)), IntArrayRef(rows));
  double norm = ops::item(ops::amax(columns)).to<double>();
  if (!std::isfinite(norm) || norm <= kPadeRadius) return 0;
  return static_cast<int>(std::ceil(std::log2(norm / kPadeRadius)));
}

Tensor plus(const Tensor& a, const Tensor& b, double factor) {
  return ops::add(a, b, Scalar(factor));
}

}  // namespace

Tensor linalg_matrix_exp(const Tensor& self) {
  check_square("linalg.matrix_exp", self);
  // As for a kernel: the products below are not autocast's business.
  ExcludeKeysGuard as_given(DispatchKey::Autocast);
  if (self.numel() == 0) return ops::mul(self, Scalar(1.0));
  int count = halvings(self);
  Tensor a =
      count == 0 ? self : ops::mul(self, Scalar(std::ldexp(1.0, -count)));
  Tensor one = ops::eye(self.size(-1), self.dtype());
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
  for (int i = 0; i < count; ++i) result = ops::matmul(result, result);
  return result;
}

}  // namespace taeda::native
