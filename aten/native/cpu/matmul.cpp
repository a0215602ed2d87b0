// Matrix products over the BLAS layer.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/blas/gemm.h>
#include <taeda/aten/native/matmul.h>
#include <taeda/aten/parallel/parallel.h>
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

#include <algorithm>

namespace taeda::native {

namespace {

// Matrices as BLAS reads them: row-major rows `ld` apart, perhaps transposed;
// the last two dims of `tensor`.
struct BlasMatrix {
  Tensor tensor;
  blas::Op op = blas::Op::kNone;
  int64_t ld = 1;
};

// As it lies if rows or columns are dense and the others do not overlap, else
// as a copy. One row or one column has no step that matters, so its `ld` is
// made what BLAS accepts.
BlasMatrix blas_matrix(const Tensor& t) {
  size_t last = static_cast<size_t>(t.dim()) - 1;
  int64_t rows = t.sizes()[last - 1], cols = t.sizes()[last];
  int64_t rs = t.strides()[last - 1], cs = t.strides()[last];
  if (!t.is_conj() && !t.is_neg()) {
    int64_t wide = std::max<int64_t>(1, cols);
    int64_t tall = std::max<int64_t>(1, rows);
    if ((cs == 1 || cols == 1) && (rs >= wide || rows == 1)) {
      return {t, blas::Op::kNone, std::max(rs, wide)};
    }
    if ((rs == 1 || rows == 1) && (cs >= tall || cols == 1)) {
      return {t, blas::Op::kTrans, std::max(cs, tall)};
    }
  }
  return {contiguous(t), blas::Op::kNone, std::max<int64_t>(cols, 1)};
}

template <class T>
constexpr bool kHasGemm =
    std::is_same_v<T, float> || std::is_same_v<T, double> ||
    std::is_same_v<T, Half> || std::is_same_v<T, BFloat16> ||
    std::is_same_v<T, complex<float>> || std::is_same_v<T, complex<double>> ||
    std::is_same_v<T, uint8_t> || std::is_same_v<T, int8_t> ||
    std::is_same_v<T, int16_t> || std::is_same_v<T, int32_t> ||
    std::is_same_v<T, int64_t>;

template <class F>
// float first, without the switch over all types: most calls are.
void visit_gemm_type(std::string_view op, ScalarType t, F&& f) {
  if (t == kFloat) return f(float{});
  visit_type(t, [&](auto tag) {
    if constexpr (kHasGemm<decltype(tag)>) {
      f(tag);
    } else {
      not_implemented_for(op, t);
    }
  });
}

// One batch dim with the steps of both operands and the result.
struct BatchDim {
  int64_t size, a, b, c;
};

// Dims that all three operands walk evenly become one.
SmallVector<BatchDim, 5> batch_dims(const Tensor& a,
                                    const Tensor& b,
                                    const Tensor& out) {
  SmallVector<BatchDim, 5> dims;
  auto step = [&](const Tensor& t, int64_t d) {
    int64_t at = d - (out.dim() - t.dim());
    if (at < 0 || t.sizes()[at] == 1) return int64_t{0};
    return t.strides()[at];
  };
  for (int64_t d = 0; d < out.dim() - 2; ++d) {
    BatchDim dim{out.sizes()[d], step(a, d), step(b, d), out.strides()[d]};
    if (dim.size == 1) continue;
    if (!dims.empty()) {
      BatchDim& up = dims.back();
      if (up.a == dim.a * dim.size && up.b == dim.b * dim.size &&
          up.c == dim.c * dim.size) {
        up = {up.size * dim.size, dim.a, dim.b, dim.c};
        continue;
      }
    }
    dims.push_back(dim);
  }
  return dims;
}

struct Offsets {
  int64_t a = 0, b = 0, c = 0;
};

// Calls f(offsets) for every index of the dims before the last one.
template <class F>
void each_outer(const SmallVector<BatchDim, 5>& dims, F&& f) {
  int64_t outer = 1;
  for (size_t d = 0; d + 1 < dims.size(); ++d) outer *= dims[d].size;
  for (int64_t i = 0; i < outer; ++i) {
    Offsets at;
    int64_t rest = i;
    for (size_t d = dims.size() - 1; d-- > 0;) {
      int64_t index = rest % dims[d].size;
      rest /= dims[d].size;
      at.a += index * dims[d].a;
      at.b += index * dims[d].b;
      at.c += index * dims[d].c;
    }
    f(at);
  }
}

}  // namespace

// Not a view to autograd, which is not to see kernels rearrange their operands.
Tensor view_over(const Tensor& t, IntArrayRef sizes, IntArrayRef strides) {
  IntrusivePtr<TensorImpl> impl = t.impl()->shallow_copy(false);
  impl->set_sizes_and_strides(sizes, strides);
  return Tensor(std::move(impl));
}

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

void batched_gemm_into(std::string_view op,
                       const Tensor& a,
                       const Tensor& b,
                       const Tensor& out,
                       const Scalar& alpha,
                       const Scalar& beta) {
  if (out.numel() == 0) return;
  if (out.dim() == 2) return gemm_into(op, a, b, out, alpha, beta);
  BlasMatrix x = blas_matrix(a), y = blas_matrix(b);
  int64_t m = out.size(-2), n = out.size(-1), k = a.size(-1);
  SmallVector<BatchDim, 5> dims = batch_dims(x.tensor, y.tensor, out);
  if (dims.empty()) dims.push_back({1, 0, 0, 0});
  // The innermost dim is one call for the whole batch; the others are a loop
  // around it.
  const BatchDim& inner = dims.back();
  visit_gemm_type(op, out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using S = blas::scale_t<T>;
    const T* pa = x.tensor.const_data<T>();
    const T* pb = y.tensor.const_data<T>();
    T* pc = out.mutable_data<T>();
    S scale = alpha.to<S>(), keep = beta.to<S>();
    each_outer(dims, [&](Offsets at) {
      blas::gemm_batched<T>(x.op,
                            y.op,
                            inner.size,
                            m,
                            n,
                            k,
                            scale,
                            pa + at.a,
                            x.ld,
                            pb + at.b,
                            y.ld,
                            keep,
                            pc + at.c,
                            std::max<int64_t>(n, 1),
                            {inner.a, inner.b, inner.c});
    });
  });
}

void gemv_into(std::string_view op,
               const Tensor& mat,
               const Tensor& vec,
               const Tensor& out,
               const Scalar& alpha,
               const Scalar& beta) {
  BlasMatrix x = blas_matrix(mat);
  // BLAS has no step 0: an expanded vector is copied.
  bool lazy = vec.is_conj() || vec.is_neg() || vec.strides()[0] == 0;
  Tensor v = lazy ? contiguous(vec) : vec;
  bool trans = x.op != blas::Op::kNone;
  int64_t rows = mat.sizes()[0], cols = mat.sizes()[1];
  visit_gemm_type(op, out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    using S = blas::scale_t<T>;
    blas::gemv<T>(x.op,
                  trans ? cols : rows,
                  trans ? rows : cols,
                  alpha.to<S>(),
                  x.tensor.const_data<T>(),
                  x.ld,
                  v.const_data<T>(),
                  std::max<int64_t>(v.strides()[0], 1),
                  beta.to<S>(),
                  out.mutable_data<T>(),
                  1);
  });
}

void dot_into(std::string_view op,
              const Tensor& a,
              const Tensor& b,
              const Tensor& out,
              bool conjugate) {
  auto plain = [](const Tensor& t) {
    bool lazy = t.is_conj() || t.is_neg() || t.strides()[0] == 0;
    return lazy ? contiguous(t) : t;
  };
  Tensor x = plain(a), y = plain(b);
  int64_t n = x.numel();
  visit_gemm_type(op, out.dtype(), [&](auto tag) {
    using T = decltype(tag);
    const T* px = x.const_data<T>();
    const T* py = y.const_data<T>();
    int64_t ix = std::max<int64_t>(x.strides()[0], 1);
    int64_t iy = std::max<int64_t>(y.strides()[0], 1);
    *out.mutable_data<T>() = conjugate ? blas::vdot<T>(n, px, ix, py, iy)
                                       : blas::dot<T>(n, px, ix, py, iy);
  });
}

void mm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  gemm_into("addmm_impl_cpu_", self, mat2, out, int64_t{1}, int64_t{0});
}

void bmm_cpu(const Tensor& self, const Tensor& mat2, const Tensor& out) {
  batched_gemm_into("bmm", self, mat2, out, int64_t{1}, int64_t{0});
}

void mv_cpu(const Tensor& self, const Tensor& vec, const Tensor& out) {
  gemv_into("addmv_impl_cpu", self, vec, out, int64_t{1}, int64_t{0});
}

void dot_cpu(const Tensor& self, const Tensor& tensor, const Tensor& out) {
  dot_into("dot", self, tensor, out, false);
}

void vdot_cpu(const Tensor& self, const Tensor& other, const Tensor& out) {
  dot_into("vdot", self, other, out, self.is_complex());
}

namespace {

// The dims but the last as one, if a view can do it.
std::optional<Tensor> folded(const Tensor& t) {
  int64_t rank = t.dim();
  int64_t rows = 1, step = t.strides()[rank - 2];
  for (int64_t d = rank - 1; d-- > 0;) {
    if (t.sizes()[d] != 1 && rows != 1 && t.strides()[d] != step * rows) {
      return std::nullopt;
    }
    if (rows == 1) step = t.strides()[d];
    rows *= t.sizes()[d];
  }
  return view_over(
      t, {rows, t.sizes()[rank - 1]}, {step, t.strides()[rank - 1]});
}

// A vector becomes a row (left operand) or a column (right operand).
Tensor as_row(const Tensor& t) {
  return view_over(t, {1, t.sizes()[0]}, {t.sizes()[0], t.strides()[0]});
}
Tensor as_column(const Tensor& t) {
  return view_over(t, {t.sizes()[0], 1}, {t.strides()[0], 1});
}

}  // namespace

void matmul_into(const Tensor& a, const Tensor& b, const Tensor& out) {
  constexpr std::string_view kName = "addmm_impl_cpu_";
  if (a.dim() == 1 && b.dim() == 1) return dot_into("dot", a, b, out, false);
  if (a.dim() == 2 && b.dim() == 1) {
    return gemv_into("addmv_impl_cpu", a, b, out, int64_t{1}, int64_t{0});
  }
  Tensor x = a.dim() == 1 ? as_row(a) : a;
  Tensor y = b.dim() == 1 ? as_column(b) : b;
  int64_t n = x.size(-2), m = y.size(-1);
  // A batch of matrices times one matrix is one product of more rows.
  if (y.dim() == 2 && x.dim() > 2) {
    int64_t rows = m == 0 ? 0 : out.numel() / m;
    Tensor flat = view_over(out, {rows, m}, {m, 1});
    if (std::optional<Tensor> f = folded(x)) {
      return gemm_into(kName, *f, y, flat, int64_t{1}, int64_t{0});
    }
  }
  DimVector sizes(out.sizes());
  if (a.dim() == 1) sizes.insert(sizes.end() - (b.dim() > 1), n);
  if (b.dim() == 1) sizes.push_back(m);
  Tensor full = view_over(out, sizes, contiguous_strides(sizes));
  batched_gemm_into(
      full.dim() > 2 ? "bmm" : kName, x, y, full, int64_t{1}, int64_t{0});
}

void matmul_cpu(const Tensor& self, const Tensor& other, const Tensor& out) {
  matmul_into(self, other, out);
}

namespace {

// beta * self into out, ready for a product with beta.
Scalar start_from(const Tensor& self, const Tensor& out, const Scalar& beta) {
  if (beta.equal(0.0)) return int64_t{0};
  if (!self.is_same(out)) copy_into(out, self);
  return beta;
}

}  // namespace

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

// input @ weight.T + bias, as one product: the weight is seen transposed, and
// the bias is what the product is added to.
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
