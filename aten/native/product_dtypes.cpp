// Products whose result has another dtype than their factors.
#include <taeda/gen/native/addmm.h>
#include <taeda/gen/native/baddbmm.h>
#include <taeda/gen/native/bmm.h>
#include <taeda/gen/native/mm.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/addmm.h>
#include <taeda/gen/ops/baddbmm.h>
#include <taeda/gen/ops/bmm.h>
#include <taeda/gen/ops/mm.h>

namespace taeda::native {

namespace {

// Sums of 16-bit floats are of float32, and may stay so; PyTorch has no other.
void check_out_dtype(std::string_view op,
                     const Tensor& a,
                     const Tensor& b,
                     ScalarType out) {
  TAEDA_CHECK(a.dtype() == b.dtype(),
              op,
              ": expected both factors to have the same dtype, but got ",
              a.dtype(),
              " and ",
              b.dtype());
  bool narrow = a.dtype() == kHalf || a.dtype() == kBFloat16;
  TAEDA_CHECK(out == a.dtype() || (narrow && out == kFloat),
              op,
              ": out_dtype must be the same as input dtype or fp32 for "
              "fp16/bf16 inputs, got ",
              out,
              " for ",
              a.dtype());
}

void check_summand(std::string_view op,
                   const Tensor& self,
                   const Tensor& factor,
                   ScalarType out) {
  TAEDA_CHECK(self.dtype() == factor.dtype() || self.dtype() == out,
              op,
              ": self must have the dtype of the factors or out_dtype, got ",
              self.dtype());
}

// Factors as the result: products of 16-bit floats are exact there.
Tensor as(const Tensor& t, ScalarType dtype) {
  return t.dtype() == dtype ? t : ops::_to_copy(t, dtype);
}

}  // namespace

Tensor mm_as(const Tensor& self, const Tensor& mat2, ScalarType out_dtype) {
  check_out_dtype("mm", self, mat2, out_dtype);
  return ops::mm(as(self, out_dtype), as(mat2, out_dtype));
}

Tensor bmm_as(const Tensor& self, const Tensor& mat2, ScalarType out_dtype) {
  check_out_dtype("bmm", self, mat2, out_dtype);
  return ops::bmm(as(self, out_dtype), as(mat2, out_dtype));
}

Tensor addmm_as(const Tensor& self,
                const Tensor& mat1,
                const Tensor& mat2,
                ScalarType out_dtype,
                const Scalar& beta,
                const Scalar& alpha) {
  check_out_dtype("addmm", mat1, mat2, out_dtype);
  check_summand("addmm", self, mat1, out_dtype);
  return ops::addmm(as(self, out_dtype),
                    as(mat1, out_dtype),
                    as(mat2, out_dtype),
                    beta,
                    alpha);
}

Tensor baddbmm_as(const Tensor& self,
                  const Tensor& batch1,
                  const Tensor& batch2,
                  ScalarType out_dtype,
                  const Scalar& beta,
                  const Scalar& alpha) {
  check_out_dtype("baddbmm", batch1, batch2, out_dtype);
  check_summand("baddbmm", self, batch1, out_dtype);
  return ops::baddbmm(as(self, out_dtype),
                      as(batch1, out_dtype),
                      as(batch2, out_dtype),
                      beta,
                      alpha);
}

}  // namespace taeda::native
