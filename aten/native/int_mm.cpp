// Products of matrices of 8-bit integers.
#include <taeda/aten/native/matmul.h>
#include <taeda/gen/native/_int_mm.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/mm.h>

namespace taeda::native {

template <class I>
void int_mm_shape(const Spec<I>& self, const Spec<I>& mat2, Plan<I>& plan) {
  ScalarType t = self.dtype();
  TAEDA_CHECK(self.dim() == 2, "_int_mm: self must be a matrix, got ", self);
  TAEDA_CHECK(mat2.dim() == 2, "_int_mm: mat2 must be a matrix, got ", mat2);
  TAEDA_CHECK(t == kChar || t == kByte,
              "_int_mm: Expected self dtype to be int8 or uint8 but got ",
              t);
  TAEDA_CHECK(mat2.dtype() == kChar,
              "_int_mm: Expected mat2 dtype to be int8 but got ",
              mat2.dtype());
  check_inner_sizes(self, mat2);
  plan.set(0, {self.sizes()[0], mat2.sizes()[1]}, kInt);
}
TAEDA_SHAPE(int_mm_shape);

void int_mm_into(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  ops::mm_out(ops::_to_copy(self, kInt), ops::_to_copy(mat2, kInt), out);
}

}  // namespace taeda::native
