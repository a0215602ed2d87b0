// Matrix products over the BLAS layer.
#include <taeda/aten/native/matmul.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/gen/native/mm.h>

#include <algorithm>

namespace taeda::native {

namespace {

// A matrix as BLAS reads it: row-major rows `ld` apart, perhaps transposed.
struct BlasMatrix {
  Tensor tensor;
  blas::Op op = blas::Op::kNone;
  int64_t ld = 1;
};

BlasMatrix blas_matrix(const Tensor& t) {
  int64_t rows = t.sizes()[0], cols = t.sizes()[1];
  int64_t rs = t.strides()[0], cs = t.strides()[1];
  bool lazy = t.is_conj() || t.is_neg();
  if (!lazy && (cs == 1 || cols == 1) && (rs >= std::max<int64_t>(1, cols) || rows == 1)) {
    return {t, blas::Op::kNone, std::max({rs, cols, int64_t{1}})};
  }
  if (!lazy && (rs == 1 || rows == 1) && (cs >= std::max<int64_t>(1, rows) || cols == 1)) {
    return {t, blas::Op::kTrans, std::max({cs, rows, int64_t{1}})};
  }
  Tensor plain = contiguous(t);
  return {plain, blas::Op::kNone, std::max<int64_t>(cols, 1)};
}

template <class F>
void visit_gemm_type(std::string_view op, ScalarType t, F&& f) {
  visit_type(t, [&](auto tag) {
    using T = decltype(tag);
    constexpr bool known =
        std::is_same_v<T, float> || std::is_same_v<T, double> ||
        std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
        std::is_same_v<T, complex<float>> ||
        std::is_same_v<T, complex<double>> || std::is_same_v<T, uint8_t> ||
        std::is_same_v<T, int8_t> || std::is_same_v<T, int16_t> ||
        std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>;
    if constexpr (known) {
      f(tag);
    } else {
      not_implemented_for(op, t);
    }
  });
}

}  // namespace

void gemm_into(std::string_view op,
               const Tensor& a,
               const Tensor& b,
               const Tensor& out,
               const Scalar& alpha,
               const Scalar& beta) {
  int64_t m = a.sizes()[0], k = a.sizes()[1], n = b.sizes()[1];
  BlasMatrix x = blas_matrix(a), y = blas_matrix(b);
  visit_gemm_type(op, out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using S = blas::scale_t<T>;
    blas::gemm<T>(x.op,
                  y.op,
                  m,
                  n,
                  k,
                  alpha.to<S>(),
                  x.tensor.const_data<T>(),
                  x.ld,
                  y.tensor.const_data<T>(),
                  y.ld,
                  beta.to<S>(),
                  out.mutable_data<T>(),
                  std::max<int64_t>(n, 1));
  });
}

void mm_shape(const Tensor& self, const Tensor& mat2, OutputPlan& plan) {
  TAEDA_CHECK(self.dim() == 2, "mm: self must be a matrix, got ", self);
  TAEDA_CHECK(mat2.dim() == 2, "mm: mat2 must be a matrix, got ", mat2);
  TAEDA_CHECK(self.sizes()[1] == mat2.sizes()[0],
              "mm: mat1 and mat2 shapes cannot be multiplied (",
              self.sizes()[0],
              "x",
              self.sizes()[1],
              " and ",
              mat2.sizes()[0],
              "x",
              mat2.sizes()[1],
              ")");
  TAEDA_CHECK(self.dtype() == mat2.dtype(),
              "mm: expected m1 and m2 to have the same dtype, but got: ",
              self.dtype(),
              " != ",
              mat2.dtype());
  plan.set(0, {self.sizes()[0], mat2.sizes()[1]}, self.dtype());
}

void mm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  gemm_into("addmm_impl_cpu_", self, mat2, out, int64_t{1}, int64_t{0});
}

}  // namespace taeda::native
