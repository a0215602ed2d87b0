// Products in terms of matmul and mul.
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/exact_out.h>
#include <taeda/aten/iter/output.h>
#include <taeda/aten/native/matmul.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/addbmm.h>
#include <taeda/gen/native/addr.h>
#include <taeda/gen/native/chain_matmul.h>
#include <taeda/gen/native/inner.h>
#include <taeda/gen/native/kron.h>
#include <taeda/gen/native/linalg_multi_dot.h>
#include <taeda/gen/native/matrix_power.h>
#include <taeda/gen/native/outer.h>
#include <taeda/gen/native/tensordot.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/addbmm.h>
#include <taeda/gen/ops/addmm.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/copy_.h>
#include <taeda/gen/ops/dot.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/eye.h>
#include <taeda/gen/ops/linalg_inv.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mm.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <algorithm>

namespace taeda::native {

Tensor outer(const Tensor& self, const Tensor& vec2) {
  TAEDA_CHECK(self.dim() == 1,
              "outer: Expected 1-D argument self, but got ",
              self.dim(),
              "-D");
  TAEDA_CHECK(vec2.dim() == 1,
              "outer: Expected 1-D argument vec2, but got ",
              vec2.dim(),
              "-D");
  return ops::mul(ops::unsqueeze(self, 1), vec2);
}

namespace {

// The factor must be of a kind that the result can hold.
void check_factor(std::string_view name, const Scalar& s, ScalarType result) {
  TAEDA_CHECK(!s.is_bool() || result == kBool,
              "addr: Boolean ",
              name,
              " only supported for Boolean results, got a result of ",
              result);
  TAEDA_CHECK(is_floating(result) || is_complex(result) || s.is_integral() ||
                  s.is_bool(),
              "addr: For integral input tensors, argument ",
              name,
              " must not be a floating point number, got ",
              s);
  TAEDA_CHECK(is_complex(result) || !s.is_complex(),
              "addr: ",
              name,
              ": value cannot be converted to type ",
              result,
              " without overflow, got ",
              s);
}

}  // namespace

Tensor addr(const Tensor& self,
            const Tensor& vec1,
            const Tensor& vec2,
            const Scalar& given_beta,
            const Scalar& given_alpha) {
  TAEDA_CHECK(vec1.dim() == 1,
              "addr: Expected 1-D argument vec1, but got ",
              vec1.dim(),
              "-D");
  TAEDA_CHECK(vec2.dim() == 1,
              "addr: Expected 1-D argument vec2, but got ",
              vec2.dim(),
              "-D");
  Dims<SymInt> sizes{symbolic_sizes(vec1)[0], symbolic_sizes(vec2)[0]};
  if (!same_sizes(symbolic_sizes(self), sizes)) expand_sized(self, sizes);
  ScalarType type =
      promote_types(self.dtype(), promote_types(vec1.dtype(), vec2.dtype()));
  check_factor("beta", given_beta, type);
  check_factor("alpha", given_alpha, type);
  if (ScalarType wide_type = compute_type(type); wide_type != type) {
    // 16-bit results, and gradients, which are sums, are rounded once.
    auto wide = [&](const Tensor& t) { return ops::_to_copy(t, wide_type); };
    return ops::_to_copy(
        addr(wide(self), wide(vec1), wide(vec2), given_beta, given_alpha),
        type);
  }
  Tensor product = ops::mul(ops::unsqueeze(vec1, 1), vec2);
  // Truth values have no factors but themselves.
  bool truth = self.dtype() == kBool && product.dtype() == kBool;
  auto factor = [&](const Scalar& s) {
    return truth ? Scalar(!s.equal(0.0)) : s;
  };
  Scalar beta = factor(given_beta), alpha = factor(given_alpha);
  if (!alpha.equal(1.0)) product = ops::mul(product, alpha);
  if (beta.equal(0.0)) {
    ScalarType t = promote_types(self.dtype(), product.dtype());
    return t == product.dtype() ? product
                                : ops::mul(product, Scalar(int64_t{1}));
  }
  Tensor start = beta.equal(1.0) ? self : ops::mul(self, beta);
  return ops::add(start, product, Scalar(int64_t{1}));
}

Tensor addbmm(const Tensor& self,
              const Tensor& batch1,
              const Tensor& batch2,
              const Scalar& given_beta,
              const Scalar& given_alpha) {
  TAEDA_CHECK(
      batch1.dim() == 3, "addbmm: batch1 must be a 3D tensor, got ", batch1);
  TAEDA_CHECK_AS(Index,
                 batch2.dim() == 3,
                 "addbmm: batch2 must be a 3D tensor, got ",
                 batch2);
  int64_t b = batch1.sizes()[0], n = batch1.sizes()[1], k = batch1.sizes()[2];
  TAEDA_CHECK(batch2.sizes()[0] == b,
              "batch1 and batch2 must have same number of batches, got ",
              b,
              " and ",
              batch2.sizes()[0]);
  TAEDA_CHECK(batch2.sizes()[1] == k,
              "Incompatible matrix sizes for bmm (",
              n,
              "x",
              k,
              " and ",
              batch2.sizes()[1],
              "x",
              batch2.sizes()[2],
              ")");
  int64_t m = batch2.sizes()[2];
  Scalar beta = factor_for(self.dtype(), given_beta);
  Scalar alpha = factor_for(self.dtype(), given_alpha);
  // The sum over the batch is part of one product.
  Tensor left = ops::reshape(ops::transpose(batch1, 0, 1), {n, b * k});
  Tensor right = ops::reshape(batch2, {b * k, m});
  int64_t sizes[] = {n, m};
  Tensor start = self;
  if (self.sizes() != IntArrayRef(sizes)) {
    start = ops::expand(self, sizes, false);
  }
  return ops::addmm(start, left, right, beta, alpha);
}

// As PyTorch's, which alone among its kind gives self the shape of the result.
void addbmm_(const Tensor& self,
             const Tensor& batch1,
             const Tensor& batch2,
             const Scalar& beta,
             const Scalar& alpha) {
  Tensor result = ops::addbmm(self, batch1, batch2, beta, alpha);
  if (self.sizes() != result.sizes()) resize_output(self, result.sizes());
  ops::copy_(self, result);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return ops::mul(self, other);
  TAEDA_CHECK(self.size(-1) == other.size(-1),
              "inner() the last dimension must match on both input tensors but "
              "got shapes ",
              self.sizes(),
              " and ",
              other.sizes());
  if (self.dim() == 1 && other.dim() == 1) return ops::dot(self, other);
  int64_t k = self.size(-1);
  DimVector sizes(self.sizes());
  sizes.pop_back();
  for (int64_t s : other.sizes()) sizes.push_back(s);
  sizes.pop_back();
  auto rows = [&](const Tensor& t) {
    int64_t n = 1;
    for (int64_t d = 0; d + 1 < t.dim(); ++d) n *= t.sizes()[d];
    return ops::reshape(t, {n, k});
  };
  Tensor product = ops::mm(rows(self), ops::transpose(rows(other), 0, 1));
  return ops::reshape(product, sizes);
}

void inner_out(const Tensor& self, const Tensor& other, const Tensor& out) {
  Tensor product = inner(self, other);
  // Products with a number cast as `mul` does.
  if (self.dim() == 0 || other.dim() == 0)
    return write_out("inner", product, out);
  derived::write_exact("inner", product, out);
}

Tensor tensordot(const Tensor& self,
                 const Tensor& other,
                 ArrayRef<int64_t> dims_self,
                 ArrayRef<int64_t> dims_other) {
  TAEDA_CHECK(dims_self.size() == dims_other.size(),
              "both dimension lists should have same length, got ",
              dims_self,
              " and ",
              dims_other);
  TAEDA_CHECK(self.dtype() == other.dtype(),
              "tensordot: both inputs should have same dtype, got ",
              self.dtype(),
              " and ",
              other.dtype());
  DimVector a = wrap_dims(dims_self, self.dim());
  DimVector b = wrap_dims(dims_other, other.dim());
  Tensor x = self, y = other;
  SymInt inner_size = 1;
  for (size_t i = 0; i < a.size(); ++i) {
    SymInt s1 = symbolic_size(x, a[i]), s2 = symbolic_size(y, b[i]);
    if (s2 == 1 && s1 != 1) {
      x = ops::sum(x, IntArrayRef{a[i]}, true, x.dtype());
      s1 = 1;
    } else if (s1 == 1 && s2 != 1) {
      y = ops::sum(y, IntArrayRef{b[i]}, true, y.dtype());
      s2 = 1;
    }
    TAEDA_CHECK(s1 == s2,
                "contracted dimensions need to match, but first has size ",
                s1,
                " in dim ",
                a[i],
                " and second has size ",
                s2,
                " in dim ",
                b[i]);
    inner_size *= s1;
  }
  Dims<SymInt> sizes;
  DimVector order_x, order_y(b);
  SymInt rows = 1, columns = 1;
  for (int64_t d = 0; d < x.dim(); ++d) {
    if (std::find(a.begin(), a.end(), d) != a.end()) continue;
    order_x.push_back(d);
    sizes.push_back(symbolic_sizes(x)[d]);
    rows *= sizes.back();
  }
  for (int64_t d : a) order_x.push_back(d);
  for (int64_t d = 0; d < y.dim(); ++d) {
    if (std::find(b.begin(), b.end(), d) != b.end()) continue;
    order_y.push_back(d);
    sizes.push_back(symbolic_sizes(y)[d]);
    columns *= sizes.back();
  }
  x = ops::permute(x, order_x);
  y = ops::permute(y, order_y);
  if (rows == 1 && columns == 1) {
    Tensor product =
        ops::dot(reshape_sized(x, inner_size), reshape_sized(y, inner_size));
    return reshape_sized(product, sizes);
  }
  Tensor product = ops::mm(reshape_sized(x, {rows, inner_size}),
                           reshape_sized(y, {inner_size, columns}));
  return reshape_sized(product, sizes);
}

Tensor kron(const Tensor& self, const Tensor& other) {
  // Each dim becomes a pair: self's, then other's.
  int64_t rank = std::max(self.dim(), other.dim());
  DimVector a, b, joined;
  for (int64_t d = 0; d < rank; ++d) {
    int64_t da = d - (rank - self.dim()), db = d - (rank - other.dim());
    int64_t x = da >= 0 ? self.sizes()[da] : 1;
    int64_t y = db >= 0 ? other.sizes()[db] : 1;
    a.push_back(x), a.push_back(1);
    b.push_back(1), b.push_back(y);
    joined.push_back(x * y);
  }
  return ops::reshape(ops::mul(ops::reshape(self, a), ops::reshape(other, b)),
                      joined);
}

namespace {

// The cheapest order of a chain of products, by the usual dynamic programme.
Tensor multiply_chain(const std::vector<Tensor>& chain) {
  size_t n = chain.size();
  std::vector<double> cost(n * n, 0);
  std::vector<size_t> split(n * n, 0);
  for (size_t length = 1; length < n; ++length) {
    for (size_t i = 0; i + length < n; ++i) {
      size_t j = i + length;
      cost[i * n + j] = -1;
      for (size_t k = i; k < j; ++k) {
        double own = static_cast<double>(chain[i].sizes()[0]) *
                     static_cast<double>(chain[k].sizes()[1]) *
                     static_cast<double>(chain[j].sizes()[1]);
        double total = cost[i * n + k] + cost[(k + 1) * n + j] + own;
        if (cost[i * n + j] < 0 || total < cost[i * n + j]) {
          cost[i * n + j] = total;
          split[i * n + j] = k;
        }
      }
    }
  }
  auto multiply = [&](auto&& again, size_t i, size_t j) -> Tensor {
    if (i == j) return chain[i];
    size_t k = split[i * n + j];
    return ops::mm(again(again, i, k), again(again, k + 1, j));
  };
  return multiply(multiply, 0, n - 1);
}

}  // namespace

Tensor linalg_multi_dot(TensorList tensors) {
  size_t n = tensors.size();
  TAEDA_CHECK(n >= 2, "multi_dot(): expected at least 2 tensors but got ", n);
  std::vector<Tensor> chain(tensors.begin(), tensors.end());
  bool row = chain[0].dim() == 1, column = chain[n - 1].dim() == 1;
  if (row) chain[0] = ops::reshape(chain[0], {1, chain[0].numel()});
  if (column)
    chain[n - 1] = ops::reshape(chain[n - 1], {chain[n - 1].numel(), 1});
  for (size_t i = 0; i < n; ++i) {
    bool last = i == n - 1;
    TAEDA_CHECK(chain[i].dim() == 2,
                "multi_dot(): ",
                i == 0 ? "the first tensor must be 1D or 2D"
                : last ? "the last tensor must be 1D or 2D"
                       : str_cat("tensor ", i, " must be 2D"),
                " but got ",
                chain[i].dim(),
                "D");
    if (i > 0) {
      TAEDA_CHECK(chain[i].dtype() == chain[0].dtype(),
                  "multi_dot(): all tensors must have be the same dtype but "
                  "tensor 0 is ",
                  chain[0].dtype(),
                  " and tensor ",
                  i,
                  " ",
                  chain[i].dtype());
      check_inner_sizes(chain[i - 1], chain[i]);
    }
  }
  Tensor out = multiply_chain(chain);
  DimVector sizes;
  if (!row) sizes.push_back(out.sizes()[0]);
  if (!column) sizes.push_back(out.sizes()[1]);
  return row || column ? ops::reshape(out, sizes) : out;
}

Tensor chain_matmul(TensorList matrices) {
  TAEDA_CHECK(!matrices.empty(),
              "chain_matmul(): Expected one or more matrices");
  for (const Tensor& t : matrices) {
    TAEDA_CHECK(t.dim() == 2,
                "chain_matmul(): Tensor dimension is ",
                t.dim(),
                ", expected 2 instead");
  }
  if (matrices.size() == 1) return matrices[0];
  return linalg_multi_dot(matrices);
}

Tensor matrix_power(const Tensor& self, int64_t n) {
  TAEDA_CHECK(self.dim() >= 2,
              "linalg.matrix_power: The input tensor A must have at least 2 "
              "dimensions, got ",
              self.dim());
  TAEDA_CHECK(self.size(-1) == self.size(-2),
              "linalg.matrix_power: A must be batches of square matrices, but "
              "they are ",
              self.size(-2),
              " by ",
              self.size(-1),
              " matrices");
  if (n == 0) {
    Tensor one = ops::eye(
        self.size(-1), self.dtype(), std::nullopt, self.device(), std::nullopt);
    // It has a derivative by self, of zeros.
    Tensor out = ops::clone(self);
    ops::copy_(out, one);
    return out;
  }
  // The least integer has no opposite in 64 bits with a sign.
  auto power = static_cast<uint64_t>(n);
  if (n < 0) power = 0 - power;
  Tensor out, square = n < 0 ? ops::linalg_inv(self) : self;
  for (uint64_t rest = power;;) {
    if (rest % 2 == 1) out = out.defined() ? ops::matmul(out, square) : square;
    rest /= 2;
    if (rest == 0) break;
    square = ops::matmul(square, square);
  }
  return power == 1 ? ops::mul(out, Scalar(int64_t{1})) : out;
}

void matrix_power_out(const Tensor& self, int64_t n, const Tensor& out) {
  Tensor power = matrix_power(self, n);
  // Without a product there is nothing but a copy, which casts.
  if (n == 0 || n == 1) return write_out("matrix_power", power, out);
  derived::write_exact("matrix_power", power, out);
}

}  // namespace taeda::native
