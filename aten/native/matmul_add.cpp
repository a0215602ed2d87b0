// Products added to something: addmm and its relatives, linear layers.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/matmul.h>
#include <taeda/gen/native/addmm.h>
#include <taeda/gen/native/addmv.h>
#include <taeda/gen/native/baddbmm.h>
#include <taeda/gen/native/linear.h>
#include <taeda/gen/ops/addmm.h>
#include <taeda/gen/ops/matmul.h>

namespace taeda::native {

namespace {

template <class I>
void check_expands(std::string_view op, ArrayRef<I> from, ArrayRef<I> to) {
  int64_t extra = static_cast<int64_t>(to.size() - from.size());
  TAEDA_CHECK(from.size() <= to.size(),
              op,
              ": the number of sizes provided (",
              to.size(),
              ") must be greater or equal to the number of dimensions in the "
              "tensor (",
              from.size(),
              ")");
  for (size_t d = from.size(); d-- > 0;) {
    const I& want = to[d + static_cast<size_t>(extra)];
    TAEDA_CHECK(from[d] == want || from[d] == 1,
                op,
                ": The expanded size of the tensor (",
                want,
                ") must match the existing size (",
                from[d],
                ") at non-singleton dimension ",
                static_cast<int64_t>(d) + extra,
                ".  Target sizes: ",
                to,
                ".  Tensor sizes: ",
                from);
  }
}

template <class T>
void check_dtypes(const T& self, const T& a, const T& b) {
  TAEDA_CHECK(self.dtype() == b.dtype(),
              "self and mat2 must have the same dtype, but got ",
              self.dtype(),
              " and ",
              b.dtype());
  TAEDA_CHECK(a.dtype() == b.dtype(),
              "mat1 and mat2 must have the same dtype, but got ",
              a.dtype(),
              " and ",
              b.dtype());
}

// beta * self into out, ready for a product with beta.
Scalar start_from(const Tensor& self, const Tensor& out, const Scalar& beta) {
  if (beta.equal(0.0)) return int64_t{0};
  if (!self.is_same(out)) copy_into(out, self);
  return beta;
}

}  // namespace

template <class I>
void addmm_shape(const Spec<I>& self,
                 const Spec<I>& mat1,
                 const Spec<I>& mat2,
                 const Scalar&,
                 const Scalar&,
                 Plan<I>& plan) {
  TAEDA_CHECK(
      mat1.dim() == 2, "mat1 must be a matrix, got ", mat1.dim(), "-D tensor");
  TAEDA_CHECK(
      mat2.dim() == 2, "mat2 must be a matrix, got ", mat2.dim(), "-D tensor");
  check_inner_sizes(mat1, mat2);
  check_dtypes(self, mat1, mat2);
  I sizes[] = {mat1.sizes()[0], mat2.sizes()[1]};
  check_expands<I>("addmm", self.sizes(), sizes);
  plan.set(0, sizes, mat1.dtype());
}
TAEDA_SHAPE(addmm_shape);

void addmm_cpu(const Tensor& self,
               const Tensor& mat1,
               const Tensor& mat2,
               const Scalar& beta,
               const Scalar& alpha,
               const Tensor& out) {
  ScalarType t = out.dtype();
  Scalar keep = start_from(self, out, factor_for(t, beta));
  gemm_into("addmm_impl_cpu_", mat1, mat2, out, factor_for(t, alpha), keep);
}

template <class I>
void addmv_shape(const Spec<I>& self,
                 const Spec<I>& mat,
                 const Spec<I>& vec,
                 const Scalar&,
                 const Scalar&,
                 Plan<I>& plan) {
  TAEDA_CHECK(mat.dim() == 2 && vec.dim() == 1 && self.dim() <= 1,
              "vector + matrix @ vector expected, got ",
              self.dim(),
              ", ",
              mat.dim(),
              ", ",
              vec.dim());
  bool fits = mat.sizes()[1] == vec.sizes()[0] &&
              (self.numel() == mat.sizes()[0] || self.numel() == 1);
  TAEDA_CHECK(fits,
              "size mismatch, got input (",
              self.dim() == 0 ? 1 : self.sizes()[0],
              "), mat (",
              mat.sizes()[0],
              "x",
              mat.sizes()[1],
              "), vec (",
              vec.sizes()[0],
              ")");
  TAEDA_CHECK(self.dtype() == mat.dtype() && mat.dtype() == vec.dtype(),
              "addmv input tensors must have the same dtype, but got ",
              mat.dtype(),
              ", ",
              vec.dtype(),
              ", and ",
              self.dtype());
  plan.set(0, {mat.sizes()[0]}, mat.dtype());
}
TAEDA_SHAPE(addmv_shape);

void addmv_cpu(const Tensor& self,
               const Tensor& mat,
               const Tensor& vec,
               const Scalar& beta,
               const Scalar& alpha,
               const Tensor& out) {
  ScalarType t = out.dtype();
  Scalar keep = start_from(self, out, factor_for(t, beta));
  gemv_into("addmv_impl_cpu", mat, vec, out, factor_for(t, alpha), keep);
}

template <class I>
void baddbmm_shape(const Spec<I>& self,
                   const Spec<I>& batch1,
                   const Spec<I>& batch2,
                   const Scalar&,
                   const Scalar&,
                   Plan<I>& plan) {
  TAEDA_CHECK(
      batch1.dim() == 3, "baddbmm: batch1 must be a 3D tensor, got ", batch1);
  TAEDA_CHECK_AS(Index,
                 batch2.dim() == 3,
                 "baddbmm: batch2 must be a 3D tensor, got ",
                 batch2);
  I b = batch1.sizes()[0], k = batch1.sizes()[2];
  TAEDA_CHECK(
      batch2.sizes()[0] == b && batch2.sizes()[1] == k,
      "Expected size for first two dimensions of batch2 tensor to be: [",
      b,
      ", ",
      k,
      "] but got: [",
      batch2.sizes()[0],
      ", ",
      batch2.sizes()[1],
      "].");
  check_dtypes(self, batch1, batch2);
  I sizes[] = {b, batch1.sizes()[1], batch2.sizes()[2]};
  check_expands<I>("baddbmm", self.sizes(), sizes);
  plan.set(0, sizes, batch1.dtype());
}
TAEDA_SHAPE(baddbmm_shape);

void baddbmm_cpu(const Tensor& self,
                 const Tensor& batch1,
                 const Tensor& batch2,
                 const Scalar& beta,
                 const Scalar& alpha,
                 const Tensor& out) {
  ScalarType t = out.dtype();
  Scalar keep = start_from(self, out, factor_for(t, beta));
  batched_gemm_into("baddbmm", batch1, batch2, out, factor_for(t, alpha), keep);
}

// linear ----------------------------------------------------------------------

template <class I>
void linear_shape(const Spec<I>& input,
                  const Spec<I>& weight,
                  const Spec<I>& bias,
                  Plan<I>& plan) {
  TAEDA_CHECK(input.dim() > 0 && weight.dim() > 0,
              "both arguments to linear need to be at least 1D, but they are ",
              input.dim(),
              "D and ",
              weight.dim(),
              "D");
  TAEDA_CHECK(weight.dim() <= 2,
              "linear: weight must have one or two dims, got ",
              weight);
  I k = weight.sizes()[weight.dim() - 1];
  I m = weight.dim() == 2 ? weight.sizes()[0] : 1;
  I last = input.sizes()[input.dim() - 1];
  if (last != k) {
    I rows = last == 0 ? 0 : input.numel() / last;
    TAEDA_CHECK(false,
                "linear: mat1 and mat2 shapes cannot be multiplied (",
                rows,
                "x",
                last,
                " and ",
                k,
                "x",
                m,
                ")");
  }
  TAEDA_CHECK(input.dtype() == weight.dtype(),
              "linear: mat1 and mat2 must have the same dtype, but got ",
              input.dtype(),
              " and ",
              weight.dtype());
  Dims<I> sizes(input.sizes());
  sizes.pop_back();
  if (weight.dim() == 2) sizes.push_back(m);
  if (bias.defined()) {
    TAEDA_CHECK(bias.dtype() == input.dtype(),
                "linear: self and mat2 must have the same dtype, but got ",
                bias.dtype(),
                " and ",
                input.dtype());
    check_expands<I>("linear", bias.sizes(), sizes);
  }
  plan.set(0, sizes, input.dtype());
  if (input.dim() == 1 && weight.dim() == 2) plan.made_as(0, {1, m});
}
TAEDA_SHAPE(linear_shape);

void linear_cpu(const Tensor& input,
                const Tensor& weight,
                const OptionalTensor& bias,
                const Tensor& out) {
  if (out.numel() == 0) return;
  int64_t k = input.sizes()[input.dim() - 1];
  int64_t m = weight.dim() == 2 ? weight.sizes()[0] : 1;
  int64_t rows = out.numel() / m;
  Tensor x = input;
  if (x.dim() != 2) {
    x = contiguous(x);
    x = view_over(x, {rows, k}, {k, 1});
  }
  int64_t step = weight.strides()[weight.dim() - 1];
  Tensor w = weight.dim() == 2
                 ? view_over(weight, {k, m}, {step, weight.strides()[0]})
                 : view_over(weight, {k, 1}, {step, 1});
  Scalar beta = int64_t{0};
  if (bias && bias->defined()) {
    copy_into(out, *bias);
    beta = int64_t{1};
  }
  Tensor flat = out.dim() == 2 ? out : view_over(out, {rows, m}, {m, 1});
  gemm_into("addmm_impl_cpu_", x, w, flat, int64_t{1}, beta);
}

}  // namespace taeda::native
