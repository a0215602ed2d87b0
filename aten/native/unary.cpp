// What unary operators with parameters refuse.
#include <taeda/aten/iter/output.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/gen/native/polygamma.h>
#include <taeda/gen/native/round.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/polygamma.h>

namespace taeda::native {

void check_polygamma(int64_t n, const Tensor& self) {
  (void)self;
  TAEDA_CHECK(n >= 0,
              "polygamma: polygamma(n, x) does not support negative n. Got ",
              n);
}

void polygamma_(const Tensor& self, int64_t n) {
  Tensor result = ops::polygamma(n, self);
  check_castable("polygamma", result.dtype(), self.dtype());
  ops::copy_(self, result);
}

void check_round_decimals(const Tensor& self, int64_t decimals) {
  if (decimals != 0 && !self.is_floating_point()) {
    not_implemented_for("round", self.dtype());
  }
}

}  // namespace taeda::native
