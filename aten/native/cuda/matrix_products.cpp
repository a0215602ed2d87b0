// The operators that cuBLASLt computes (Note [Products by cuBLASLt]). Each is a
// kernel of its own in the operator's slot, since the fallback costs more than
// the launch. What a kernel does not take (other dtypes, devices and sizes,
// errors among them) goes to what was there before.
#include <taeda/aten/core/dispatcher.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/gemm.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/aten/native/scaled_mm.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/addmm.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/gelu.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/relu.h>
#include <taeda/gen/ops/t.h>

#include <algorithm>
#include <optional>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

// What the slot of an operator held before; null: the fallback. Written when
// the library is loaded.
struct Before {
  OperatorEntry* op = nullptr;
  void* kernel = nullptr;

  template <class R, class... A>
  R call(A... arguments) const {
    if (kernel != nullptr) {
      return reinterpret_cast<R (*)(A...)>(kernel)(arguments...);
    }
    using Boxing = R (*)(const OperatorEntry&, DispatchKeySet, A...);
    return reinterpret_cast<Boxing>(op->to_boxed)(
        *op, DispatchKey::CUDA, arguments...);
  }
};
Before before_mm, before_bmm, before_mv, before_addmm, before_baddbmm;
Before before_linear, before_matmul, before_int_mm, before_activation;
Before before_scaled;

bool is_dense(const Tensor& t, Device device, ScalarType dtype) {
  return t.defined() && t.device() == device && t.dtype() == dtype &&
         t.layout() == Layout::Strided;
}

// Whether a product of the two may be the library's, without their sizes.
bool agree(const Tensor& a, const Tensor& b) {
  return a.defined() && a.is_cuda() && has_products_of(a.dtype()) &&
         is_dense(a, a.device(), a.dtype()) &&
         is_dense(b, a.device(), a.dtype()) && a.numel() > 0 && b.numel() > 0 &&
         has_cublaslt();
}

// The matrices in the last two dims; those before them are batches, which must
// lie at one stride.
std::optional<int64_t> stride_of_batches(const Tensor& t) {
  IntArrayRef sizes = t.sizes(), strides = t.strides();
  int64_t stride = 0, covered = 0;
  for (int64_t d = t.dim() - 3; d >= 0; --d) {
    auto at = static_cast<size_t>(d);
    if (sizes[at] == 1) continue;
    if (covered == 0) {
      stride = strides[at];
      covered = sizes[at];
      continue;
    }
    if (strides[at] != stride * covered) return std::nullopt;
    covered *= sizes[at];
  }
  return stride;
}

// A tensor as a side of a product; a copy where the library cannot read it.
class Operand {
 public:
  explicit Operand(const Tensor& t) : Operand(t, t.size(-2), t.size(-1)) {
    side_.row_stride = t.stride(-2);
    side_.column_stride = t.stride(-1);
    std::optional<int64_t> batches = stride_of_batches(t);
    if (batches) side_.batch_stride = *batches;
    if (!batches || t.is_neg() || !is_readable(side_, rows_, columns_)) copy(t);
  }
  // All rows of a tensor [..., k].
  static Operand rows_of(const Tensor& t) {
    int64_t width = t.size(-1);
    Operand made(t, t.numel() / width, width);
    made.side_.row_stride = t.dim() > 1 ? t.stride(-2) : width;
    made.side_.column_stride = t.stride(-1);
    bool one_stride = t.dim() <= 2 || t.is_contiguous();
    if (!one_stride || t.is_neg() ||
        !is_readable(made.side_, made.rows_, width)) {
      made.copy(t);
    }
    return made;
  }
  static Operand turned(const Tensor& matrix) {
    Operand made(matrix, matrix.size(1), matrix.size(0));
    made.side_.row_stride = matrix.stride(1);
    made.side_.column_stride = matrix.stride(0);
    if (!matrix.is_neg() &&
        is_readable(made.side_, made.rows_, made.columns_)) {
      return made;
    }
    made.copy(matrix);
    std::swap(made.side_.row_stride, made.side_.column_stride);
    return made;
  }
  static Operand column(const Tensor& vector) {
    Operand made(vector, vector.size(0), 1);
    made.side_.row_stride = vector.stride(0);
    made.side_.column_stride = 1;
    if (vector.is_neg() || !is_readable(made.side_, made.rows_, 1)) {
      made.copy(vector);
    }
    return made;
  }

  const Side& side() const { return side_; }
  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }

 private:
  Operand(const Tensor& t, int64_t rows, int64_t columns)
      : rows_(rows), columns_(columns) {
    side_.data = t.const_raw_data();
    side_.conj = t.is_conj();
  }
  void copy(const Tensor& t) {
    copied_ = make_tensor("contiguous", t.sizes(), t.dtype(), t.device());
    copy_into(copied_, t);
    int64_t width = t.size(-1), height = t.dim() < 2 ? 1 : t.size(-2);
    if (t.dim() == 1 && columns_ == 1) width = 1;
    side_ = {copied_.const_raw_data(), width, 1, width * height, false};
    if (t.dim() < 3 || t.numel() == width * height) side_.batch_stride = 0;
  }

  Side side_;
  int64_t rows_, columns_;
  Tensor copied_;
};

Product product_of(const Operand& a,
                   const Operand& b,
                   int64_t batches,
                   const Tensor& out) {
  Product p{out.dtype(),
            out.dtype(),
            batches,
            a.rows(),
            b.columns(),
            a.columns(),
            a.side(),
            b.side(),
            out.mutable_raw_data()};
  return p;
}

Tensor made(const char* op,
            std::initializer_list<int64_t> sizes,
            const Tensor& like) {
  return make_tensor(op,
                     IntArrayRef(sizes.begin(), sizes.size()),
                     like.dtype(),
                     like.device());
}

bool run(const char* op, const Product& p, const Tensor& out) {
  return multiply(op, p, out.device().index);
}

Tensor mm(const Tensor& a, const Tensor& b) {
  bool takes =
      agree(a, b) && a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0);
  if (takes) {
    Tensor out = made("mm", {a.size(0), b.size(1)}, a);
    Operand left(a), right(b);
    if (run("mm", product_of(left, right, 1, out), out)) return out;
  }
  return before_mm.call<Tensor, const Tensor&, const Tensor&>(a, b);
}

Tensor bmm(const Tensor& a, const Tensor& b) {
  bool takes = agree(a, b) && a.dim() == 3 && b.dim() == 3 &&
               a.size(0) == b.size(0) && a.size(2) == b.size(1);
  if (takes) {
    Tensor out = made("bmm", {a.size(0), a.size(1), b.size(2)}, a);
    Operand left(a), right(b);
    if (run("bmm", product_of(left, right, a.size(0), out), out)) return out;
  }
  return before_bmm.call<Tensor, const Tensor&, const Tensor&>(a, b);
}

Tensor mv(const Tensor& a, const Tensor& x) {
  bool takes =
      agree(a, x) && a.dim() == 2 && x.dim() == 1 && a.size(1) == x.size(0);
  if (takes) {
    Tensor out = made("mv", {a.size(0)}, a);
    Operand left(a), right = Operand::column(x);
    if (run("mv", product_of(left, right, 1, out), out)) return out;
  }
  return before_mv.call<Tensor, const Tensor&, const Tensor&>(a, x);
}

// Whether the library's bias can be this: one number for each column.
bool is_bias(const Tensor& t, const Tensor& out) {
  if (out.is_complex() || out.dtype() == kDouble || t.is_neg()) return false;
  int64_t columns = out.size(-1);
  return t.dim() > 0 && t.numel() == columns && t.size(-1) == columns &&
         (t.stride(-1) == 1 || columns == 1);
}

bool broadcasts_to(IntArrayRef from, IntArrayRef to) {
  if (from.size() > to.size()) return false;
  for (size_t i = 1; i <= from.size(); ++i) {
    int64_t size = from[from.size() - i];
    if (size != 1 && size != to[to.size() - i]) return false;
  }
  return true;
}

// product + beta self, where self is read from where it lies, or is copied into
// the result.
void add_in(Product* p, const Tensor& self, const Tensor& out) {
  bool as_it_is = self.dim() >= 2 && self.sizes() == out.sizes() &&
                  !self.is_conj() && !self.is_neg() &&
                  (self.stride(-1) == 1 || p->columns == 1) &&
                  self.stride(-2) >= p->columns;
  std::optional<int64_t> batches;
  if (as_it_is) batches = stride_of_batches(self);
  if (!batches) return copy_into(out, ops::expand(self, out.sizes()));
  p->added = self.const_raw_data();
  p->added_row_stride = self.stride(-2);
  p->added_batch_stride = *batches;
}

bool run_sum(const char* op,
             Product p,
             const Tensor& self,
             const Scalar& beta,
             const Tensor& out) {
  if (beta.equal(0.0)) return run(op, p, out);
  if (p.batches == 1 && beta.equal(1.0) && is_bias(self, out)) {
    p.bias = self.const_raw_data();
    if (run(op, p, out)) return true;
    p.bias = nullptr;
  }
  p.beta = beta;
  add_in(&p, self, out);
  return run(op, p, out);
}

bool are_real(const Scalar& beta, const Scalar& alpha, const Tensor& t) {
  return t.is_complex() || (!beta.is_complex() && !alpha.is_complex());
}

std::optional<Tensor> addmm_with(const char* op,
                                 const Tensor& self,
                                 const Tensor& a,
                                 const Tensor& b,
                                 const Scalar& beta,
                                 const Scalar& alpha,
                                 Activation activation) {
  bool takes =
      agree(a, b) && a.dim() == 2 && b.dim() == 2 && a.size(1) == b.size(0) &&
      is_dense(self, a.device(), a.dtype()) && are_real(beta, alpha, a);
  if (!takes) return std::nullopt;
  std::array<int64_t, 2> sizes{a.size(0), b.size(1)};
  if (!broadcasts_to(self.sizes(), sizes)) return std::nullopt;
  Tensor out = make_tensor(op, sizes, a.dtype(), a.device());
  Operand left(a), right(b);
  Product p = product_of(left, right, 1, out);
  p.alpha = alpha;
  p.activation = activation;
  if (!run_sum(op, p, self, beta, out)) return std::nullopt;
  return out;
}

Tensor addmm(const Tensor& self,
             const Tensor& a,
             const Tensor& b,
             const Scalar& beta,
             const Scalar& alpha) {
  auto out = addmm_with("addmm", self, a, b, beta, alpha, Activation::None);
  if (out) return *out;
  return before_addmm.call<Tensor,
                           const Tensor&,
                           const Tensor&,
                           const Tensor&,
                           const Scalar&,
                           const Scalar&>(self, a, b, beta, alpha);
}

bool records(std::initializer_list<const Tensor*> tensors) {
  DispatchKeySet keys;
  for (const Tensor* t : tensors) keys = keys | keys_of(*t);
  bool seen = DispatchKeySet::raw(keys.bits() & local_state.mask)
                  .has(DispatchKey::Autograd);
  auto wants = [](const Tensor* t) { return t->requires_grad(); };
  return seen && std::any_of(tensors.begin(), tensors.end(), wants);
}

// gelu is by tanh here, as it is the library's and PyTorch's on a GPU.
Tensor addmm_activation(const Tensor& self,
                        const Tensor& a,
                        const Tensor& b,
                        const Scalar& beta,
                        const Scalar& alpha,
                        bool use_gelu) {
  // Alone in its name, the operator records nothing: what it is made of does.
  if (!records({&self, &a, &b})) {
    auto out = addmm_with("_addmm_activation",
                          self,
                          a,
                          b,
                          beta,
                          alpha,
                          use_gelu ? Activation::Gelu : Activation::Relu);
    if (out) return *out;
  }
  Tensor sum = ops::addmm(self, a, b, beta, alpha);
  return use_gelu ? ops::gelu(sum, "tanh") : ops::relu(sum);
}

Tensor baddbmm(const Tensor& self,
               const Tensor& a,
               const Tensor& b,
               const Scalar& beta,
               const Scalar& alpha) {
  bool takes = agree(a, b) && a.dim() == 3 && b.dim() == 3 &&
               a.size(0) == b.size(0) && a.size(2) == b.size(1) &&
               is_dense(self, a.device(), a.dtype()) &&
               are_real(beta, alpha, a);
  if (takes) {
    std::array<int64_t, 3> sizes{a.size(0), a.size(1), b.size(2)};
    if (broadcasts_to(self.sizes(), sizes)) {
      Tensor out = make_tensor("baddbmm", sizes, a.dtype(), a.device());
      Operand left(a), right(b);
      Product p = product_of(left, right, a.size(0), out);
      p.alpha = alpha;
      if (run_sum("baddbmm", p, self, beta, out)) return out;
    }
  }
  return before_baddbmm.call<Tensor,
                             const Tensor&,
                             const Tensor&,
                             const Tensor&,
                             const Scalar&,
                             const Scalar&>(self, a, b, beta, alpha);
}

// [..., k] x [k, m], where `right` is the matrix.
std::optional<Tensor> rows_times(const char* op,
                                 const Tensor& input,
                                 const Operand& right,
                                 const Tensor* bias) {
  DimVector sizes(input.sizes().begin(), input.sizes().end());
  sizes.back() = right.columns();
  Tensor out = make_tensor(op, sizes, input.dtype(), input.device());
  Operand left = Operand::rows_of(input);
  Product p = product_of(left, right, 1, out);
  bool done =
      bias == nullptr ? run(op, p, out) : run_sum(op, p, *bias, Scalar(1), out);
  if (!done) return std::nullopt;
  return out;
}

Tensor linear(const Tensor& input,
              const Tensor& weight,
              const OptionalTensor& bias) {
  bool has_bias = bias && bias->defined();
  bool takes = agree(input, weight) && input.dim() >= 1 && weight.dim() == 2 &&
               input.size(-1) == weight.size(1);
  if (takes && has_bias) {
    takes = is_dense(*bias, input.device(), input.dtype()) &&
            bias->dim() == 1 && bias->numel() == weight.size(0);
  }
  if (takes) {
    Operand right = Operand::turned(weight);
    auto out = rows_times("linear", input, right, has_bias ? &*bias : nullptr);
    if (out) return *out;
  }
  return before_linear
      .call<Tensor, const Tensor&, const Tensor&, const OptionalTensor&>(
          input, weight, bias);
}

Tensor matmul(const Tensor& a, const Tensor& b) {
  if (agree(a, b)) {
    bool fits = a.size(-1) == b.size(0);
    if (fits && a.dim() == 2 && b.dim() == 1) return mv(a, b);
    if (fits && a.dim() == 2 && b.dim() == 2) return mm(a, b);
    if (fits && a.dim() > 2 && b.dim() == 2) {
      auto out = rows_times("matmul", a, Operand(b), nullptr);
      if (out) return *out;
    }
    size_t lead = static_cast<size_t>(std::max<int64_t>(a.dim(), 2)) - 2;
    bool batches =
        a.dim() > 2 && a.dim() == b.dim() && a.size(-1) == b.size(-2) &&
        std::equal(
            a.sizes().begin(), a.sizes().begin() + lead, b.sizes().begin());
    if (batches) {
      DimVector sizes(a.sizes().begin(), a.sizes().end());
      sizes.back() = b.size(-1);
      Tensor out = make_tensor("matmul", sizes, a.dtype(), a.device());
      Operand left(a), right(b);
      int64_t count = a.numel() / (a.size(-1) * a.size(-2));
      if (run("matmul", product_of(left, right, count, out), out)) return out;
    }
  }
  return before_matmul.call<Tensor, const Tensor&, const Tensor&>(a, b);
}

// The library's products of int8 want the right side column by column, and
// rows of four bytes.
Tensor int_mm(const Tensor& a, const Tensor& b) {
  bool takes = a.defined() && a.is_cuda() && is_dense(a, a.device(), kChar) &&
               is_dense(b, a.device(), kChar) && a.dim() == 2 && b.dim() == 2 &&
               a.size(1) == b.size(0) && a.numel() > 0 && b.numel() > 0 &&
               a.size(1) % 4 == 0 && b.size(1) % 4 == 0 && has_cublaslt();
  if (takes) {
    Tensor rows = contiguous(a), columns = b;
    if (b.stride(0) != 1 || b.stride(1) != b.size(0)) {
      std::array<int64_t, 2> strides{1, b.size(0)};
      columns = make_tensor_strided(
          "_int_mm", b.sizes(), strides, b.dtype(), b.device());
      copy_into(columns, b);
    }
    std::array<int64_t, 2> sizes{a.size(0), b.size(1)};
    Tensor out = make_tensor("_int_mm", sizes, kInt, a.device());
    Operand left(rows), right(columns);
    Product p = product_of(left, right, 1, out);
    p.dtype = kChar;
    if (run("_int_mm", p, out)) return out;
  }
  return before_int_mm.call<Tensor, const Tensor&, const Tensor&>(a, b);
}

// The library's products of float8 want the left side row by row, the right
// one column by column, and sizes in sixteens. Factors of rows, and results of
// float8, come after sums in float32.
std::optional<Tensor> sums_of_float8(const native::ScaledProduct& p,
                                     ScalarType dtype,
                                     const Tensor& scale_a,
                                     const Tensor& scale_b,
                                     const void* bias,
                                     bool fast_sums) {
  const Tensor &a = p.self, &b = p.mat2;
  auto is_right = [&a](const Tensor& t) {
    return t.is_cuda() && t.device() == a.device() &&
           (t.dtype() == kFloat8_e4m3fn || t.dtype() == kFloat8_e5m2) &&
           t.numel() > 0 && t.size(0) % 16 == 0 && t.size(1) % 16 == 0;
  };
  bool takes = is_right(a) && is_right(b) && scale_a.device() == a.device() &&
               scale_b.device() == a.device() && has_cublaslt();
  if (!takes) return std::nullopt;
  Tensor rows = contiguous(a), columns = contiguous(ops::t(b));
  std::array<int64_t, 2> sizes{a.size(0), b.size(1)};
  Tensor out = make_tensor("_scaled_mm", sizes, dtype, a.device());
  Tensor turned = ops::t(columns);
  Operand left(rows), right(turned);
  Product product = product_of(left, right, 1, out);
  product.dtype = a.dtype();
  product.b_dtype = b.dtype();
  product.a_scale = scale_a.const_raw_data();
  product.b_scale = scale_b.const_raw_data();
  product.bias = bias;
  product.fast_sums = fast_sums;
  if (!run("_scaled_mm", product, out)) return std::nullopt;
  return out;
}

Tensor scaled_mm(const Tensor& self,
                 const Tensor& mat2,
                 const Tensor& scale_a,
                 const Tensor& scale_b,
                 const OptionalTensor& bias,
                 const OptionalTensor& scale_result,
                 std::optional<ScalarType> out_dtype,
                 bool use_fast_accum) {
  native::ScaledProduct p{
      self, mat2, scale_a, scale_b, bias, scale_result, out_dtype};
  native::check_scaled_mm(p);
  ScalarType dtype = p.out_dtype();
  bool has_bias = bias && bias->defined();
  bool recorded = records({&self, &mat2, &scale_a, &scale_b}) ||
                  (has_bias && records({&*bias}));
  bool whole = !recorded && !p.by_rows() &&
               (dtype == kFloat || is_reduced_floating(dtype));
  if (whole && has_bias) {
    whole = dtype != kFloat && is_dense(*bias, self.device(), dtype) &&
            bias->is_contiguous() && !bias->is_neg();
  }
  if (whole) {
    auto out = sums_of_float8(p,
                              dtype,
                              scale_a,
                              scale_b,
                              has_bias ? bias->const_raw_data() : nullptr,
                              use_fast_accum);
    if (out) return *out;
  }
  std::optional<Tensor> sums;
  if (!recorded) {
    Tensor one = ops::full({}, Scalar(1), kFloat, std::nullopt, self.device());
    sums = sums_of_float8(p, kFloat, one, one, nullptr, use_fast_accum);
  }
  if (!sums) {
    sums = ops::mm(ops::_to_copy(self, kFloat), ops::_to_copy(mat2, kFloat));
  }
  return native::scale_sums(p, *sums);
}

template <class R, class... A>
void take_slot(const char* name, Before* before, R (*kernel)(A...)) {
  OperatorEntry* op = Dispatcher::get().find(name, "");
  TAEDA_INTERNAL_ASSERT(op != nullptr, "no operator ", name);
  void*& slot = op->slots[static_cast<int>(DispatchKey::CUDA)];
  *before = {op, slot};
  slot = reinterpret_cast<void*>(kernel);
}

}  // namespace

void register_products() {
  take_slot("mm", &before_mm, mm);
  take_slot("bmm", &before_bmm, bmm);
  take_slot("mv", &before_mv, mv);
  take_slot("addmm", &before_addmm, addmm);
  take_slot("baddbmm", &before_baddbmm, baddbmm);
  take_slot("linear", &before_linear, linear);
  take_slot("matmul", &before_matmul, matmul);
  take_slot("_int_mm", &before_int_mm, int_mm);
  take_slot("_addmm_activation", &before_activation, addmm_activation);
  take_slot("_scaled_mm", &before_scaled, scaled_mm);
}

}  // namespace taeda::cuda
