// Matrix products: shapes.
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/matmul.h>
#include <taeda/gen/native/addmm.h>
#include <taeda/gen/native/addmv.h>
#include <taeda/gen/native/baddbmm.h>
#include <taeda/gen/native/bmm.h>
#include <taeda/gen/native/dot.h>
#include <taeda/gen/native/linear.h>
#include <taeda/gen/native/matmul.h>
#include <taeda/gen/native/mm.h>
#include <taeda/gen/native/mv.h>
#include <taeda/gen/native/vdot.h>

namespace taeda::native {

// mm, bmm ---------------------------------------------------------------------

namespace {

template <class T>
void check_same_dtype(std::string_view op, const T& a, const T& b) {
  TAEDA_CHECK(a.dtype() == b.dtype(),
              op,
              ": expected m1 and m2 to have the same dtype, but got: ",
              a.dtype(),
              " != ",
              b.dtype());
}

}  // namespace

template <class I>
void mm_shape(const Spec<I>& self, const Spec<I>& mat2, Plan<I>& plan) {
  TAEDA_CHECK(self.dim() == 2, "mm: self must be a matrix, got ", self);
  TAEDA_CHECK(mat2.dim() == 2, "mm: mat2 must be a matrix, got ", mat2);
  check_inner_sizes(self, mat2);
  check_same_dtype("mm", self, mat2);
  plan.set(0, {self.sizes()[0], mat2.sizes()[1]}, self.dtype());
}
TAEDA_SHAPE(mm_shape);

template <class I>
void bmm_shape(const Spec<I>& self, const Spec<I>& mat2, Plan<I>& plan) {
  TAEDA_CHECK(self.dim() == 3, "bmm: batch1 must be a 3D tensor, got ", self);
  TAEDA_CHECK(mat2.dim() == 3, "bmm: batch2 must be a 3D tensor, got ", mat2);
  I b = self.sizes()[0], k = self.sizes()[2];
  TAEDA_CHECK(
      mat2.sizes()[0] == b && mat2.sizes()[1] == k,
      "Expected size for first two dimensions of batch2 tensor to be: [",
      b,
      ", ",
      k,
      "] but got: [",
      mat2.sizes()[0],
      ", ",
      mat2.sizes()[1],
      "].");
  TAEDA_CHECK(self.dtype() == mat2.dtype(),
              "bmm: expected scalar type ",
              self.dtype(),
              " but found ",
              mat2.dtype());
  plan.set(0, {b, self.sizes()[1], mat2.sizes()[2]}, self.dtype());
}
TAEDA_SHAPE(bmm_shape);

// mv, dot ---------------------------------------------------------------------

template <class I>
void mv_shape(const Spec<I>& self, const Spec<I>& vec, Plan<I>& plan) {
  TAEDA_CHECK(self.dim() == 2 && vec.dim() == 1,
              "mv: vector + matrix @ vector expected, got 1, ",
              self.dim(),
              ", ",
              vec.dim());
  TAEDA_CHECK(self.sizes()[1] == vec.sizes()[0],
              "mv: size mismatch, got input (",
              self.sizes()[0],
              "), mat (",
              self.sizes()[0],
              "x",
              self.sizes()[1],
              "), vec (",
              vec.sizes()[0],
              ")");
  TAEDA_CHECK(self.dtype() == vec.dtype(),
              "addmv input tensors must have the same dtype, but got ",
              self.dtype(),
              " and ",
              vec.dtype());
  plan.set(0, {self.sizes()[0]}, self.dtype());
}
TAEDA_SHAPE(mv_shape);

template <class I>
void dot_shape(const Spec<I>& self, const Spec<I>& tensor, Plan<I>& plan) {
  TAEDA_CHECK(self.dim() == 1 && tensor.dim() == 1,
              "1D tensors expected, but got ",
              self.dim(),
              "D and ",
              tensor.dim(),
              "D tensors");
  TAEDA_CHECK(self.dtype() == tensor.dtype(),
              "dot : expected both vectors to have same dtype, but found ",
              self.dtype(),
              " and ",
              tensor.dtype());
  TAEDA_CHECK(self.numel() == tensor.numel(),
              "inconsistent tensor size, expected tensor ",
              self.sizes(),
              " and src ",
              tensor.sizes(),
              " to have the same number of elements, but got ",
              self.numel(),
              " and ",
              tensor.numel(),
              " elements respectively");
  plan.set(0, ArrayRef<I>(), self.dtype());
}
TAEDA_SHAPE(dot_shape);

// matmul ----------------------------------------------------------------------

template <class I>
void matmul_shape(const Spec<I>& self, const Spec<I>& other, Plan<I>& plan) {
  int64_t da = self.dim(), db = other.dim();
  TAEDA_CHECK(da > 0 && db > 0,
              "both arguments to matmul need to be at least 1D, but they are ",
              da,
              "D and ",
              db,
              "D");
  if (da == 1 && db == 1) return dot_shape(self, other, plan);
  if (da == 2 && db == 1) return mv_shape(self, other, plan);
  check_same_dtype("matmul", self, other);
  I k = self.sizes()[da - 1], n = da > 1 ? self.sizes()[da - 2] : 1;
  I kb = db > 1 ? other.sizes()[db - 2] : other.sizes()[0];
  I m = db > 1 ? other.sizes()[db - 1] : 1;
  bool folds = da <= 2 || db <= 2;
  Dims<I> batch;
  if (da <= 2 && db <= 2) {
    TAEDA_CHECK(k == kb,
                "mat1 and mat2 shapes cannot be multiplied (",
                n,
                "x",
                k,
                " and ",
                kb,
                "x",
                m,
                ")");
  } else {
    auto lead = [](const Spec<I>& t) {
      size_t rank = static_cast<size_t>(t.dim());
      return rank > 2 ? t.sizes().slice(0, rank - 2) : ArrayRef<I>();
    };
    batch = broadcast_shapes<I>("matmul", lead(self), lead(other));
  }
  if (folds) {
    I rows = n;
    for (I s : batch) rows *= s;
    TAEDA_CHECK(k == kb,
                "mat1 and mat2 shapes cannot be multiplied (",
                rows,
                "x",
                k,
                " and ",
                kb,
                "x",
                m,
                ")");
  }
  I count = 1;
  for (I s : batch) count *= s;
  TAEDA_CHECK(
      k == kb,
      "Expected size for first two dimensions of batch2 tensor to be: [",
      count,
      ", ",
      k,
      "] but got: [",
      count,
      ", ",
      kb,
      "].");
  if (da > 1) batch.push_back(n);
  if (db > 1) batch.push_back(m);
  plan.set(0, batch, self.dtype());
  if (da == 1 && db == 2) plan.made_as(0, {1, m});
}
TAEDA_SHAPE(matmul_shape);

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
  TAEDA_CHECK(self.dtype() == batch1.dtype() && self.dtype() == batch2.dtype(),
              "baddbmm: Input dtypes must be the same, got: input ",
              self.dtype(),
              ", batch1: ",
              batch1.dtype(),
              ", batch2: ",
              batch2.dtype());
  I sizes[] = {b, batch1.sizes()[1], batch2.sizes()[2]};
  check_expands<I>("baddbmm", self.sizes(), sizes);
  plan.set(0, sizes, batch1.dtype());
}
TAEDA_SHAPE(baddbmm_shape);

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

}  // namespace taeda::native
