// Condition numbers, tensors as matrices, and factors under their older names.
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/gen/native/linalg_cond.h>
#include <taeda/gen/native/linalg_tensorinv.h>
#include <taeda/gen/native/linalg_tensorsolve.h>
#include <taeda/gen/native/linalg_vander.h>
#include <taeda/gen/native/svd.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/cumprod.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/linalg_inv.h>
#include <taeda/gen/ops/linalg_inv_ex.h>
#include <taeda/gen/ops/linalg_matrix_norm.h>
#include <taeda/gen/ops/linalg_solve.h>
#include <taeda/gen/ops/linalg_svd.h>
#include <taeda/gen/ops/linalg_svdvals.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/nan_to_num.h>
#include <taeda/gen/ops/new_ones.h>
#include <taeda/gen/ops/new_zeros.h>
#include <taeda/gen/ops/reciprocal.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/select.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <cmath>
#include <numeric>

namespace taeda::native {

namespace {

int64_t product_of(IntArrayRef sizes) {
  return std::accumulate(
      sizes.begin(), sizes.end(), int64_t{1}, std::multiplies<>());
}

// The norm of A times that of its inverse; infinite where there is none.
template <class Order>
Tensor by_inverse(const Tensor& self, const Order& order) {
  auto [inverse, info] = ops::linalg_inv_ex(self, /*check_errors=*/false);
  constexpr double inf = std::numeric_limits<double>::infinity();
  Tensor singular =
      ops::unsqueeze(ops::unsqueeze(ops::gt(info, Scalar(0)), -1), -1);
  inverse = ops::masked_fill(inverse, singular, Scalar(inf));
  Tensor found = ops::mul(ops::linalg_matrix_norm(self, order),
                          ops::linalg_matrix_norm(inverse, order));
  return ops::nan_to_num(found, inf, inf, -inf);
}

Tensor no_condition(const Tensor& self) {
  return ops::new_zeros(self, batch_sizes(self), real_type_of(self.dtype()));
}

}  // namespace

Tensor linalg_cond(const Tensor& self, const std::optional<Scalar>& p) {
  TAEDA_CHECK(self.dim() >= 2,
              "linalg.cond: The input tensor must have at least 2 dimensions.");
  double order = p ? p->to<double>() : 2.0;
  double size = std::abs(order);
  TAEDA_CHECK(size == 1 || size == 2 || std::isinf(order),
              "linalg.cond got an invalid norm type: ",
              order);
  if (self.numel() == 0) return no_condition(self);
  if (size != 2) {
    check_square("linalg.cond", self);
    return by_inverse(self, Scalar(order));
  }
  Tensor values = ops::linalg_svdvals(self);
  Tensor largest = ops::select(values, -1, 0);
  Tensor smallest = ops::select(values, -1, -1);
  return order > 0 ? ops::div(largest, smallest) : ops::div(smallest, largest);
}

Tensor linalg_cond(const Tensor& self, std::string_view p) {
  check_square("linalg.cond", self);
  TAEDA_CHECK(
      p == "fro" || p == "nuc", "linalg.cond got an invalid norm type: ", p);
  if (self.numel() == 0) return no_condition(self);
  if (p == "fro") return by_inverse(self, p);
  Tensor values = ops::linalg_svdvals(self);
  int64_t last[] = {-1};
  return ops::mul(ops::sum(values, IntArrayRef(last)),
                  ops::sum(ops::reciprocal(values), IntArrayRef(last)));
}

Tensor linalg_tensorinv(const Tensor& self, int64_t ind) {
  TAEDA_CHECK(ind > 0, "Expected a strictly positive integer for 'ind'");
  auto split = std::min(static_cast<size_t>(ind), self.sizes().size());
  IntArrayRef front = self.sizes().slice(0, split);
  IntArrayRef back = self.sizes().slice(split);
  int64_t rows = product_of(front), columns = product_of(back);
  TAEDA_CHECK(rows == columns,
              "Expected self to satisfy the requirement prod(self.shape[ind:]) "
              "== prod(self.shape[:ind]), but got ",
              columns,
              " != ",
              rows);
  DimVector sizes(back);
  for (int64_t size : front) sizes.push_back(size);
  Tensor inverse = ops::linalg_inv(ops::reshape(self, {rows, columns}));
  return ops::reshape(inverse, sizes);
}

Tensor linalg_tensorsolve(const Tensor& self,
                          const Tensor& other,
                          std::optional<IntArrayRef> dims) {
  Tensor a = self;
  if (dims) {
    DimVector ends(dims->size());
    std::iota(ends.begin(),
              ends.end(),
              self.dim() - static_cast<int64_t>(ends.size()));
    a = ops::movedim(self, *dims, ends);
  }
  auto split = std::min(other.sizes().size(), a.sizes().size());
  DimVector sizes(a.sizes().slice(split));
  int64_t unknowns = product_of(sizes);
  TAEDA_CHECK(
      unknowns == other.numel(),
      "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) "
      "== prod(self.shape[:other.ndim]), but got ",
      unknowns,
      " != ",
      other.numel());
  Tensor found = ops::linalg_solve(ops::reshape(a, {unknowns, unknowns}),
                                   ops::reshape(other, {unknowns}));
  return ops::reshape(found, sizes);
}

Tensor linalg_vander(const Tensor& x, std::optional<int64_t> count) {
  TAEDA_CHECK(x.dtype() != kBool,
              "linalg.vander supports floating point, complex, and integer "
              "tensors, but got ",
              x.dtype());
  Tensor base = x.dim() == 0 ? ops::unsqueeze(x, -1) : x;
  int64_t n = count.value_or(base.size(-1));
  TAEDA_CHECK(n > 1, "N must be greater than 1.");
  base = ops::unsqueeze(base, -1);
  DimVector sizes(base.sizes());
  sizes.back() = n - 1;
  Tensor powers = ops::cumprod(ops::expand(base, sizes), -1);
  sizes.back() = 1;
  return ops::cat({ops::new_ones(powers, sizes), powers}, -1);
}

std::tuple<Tensor, Tensor, Tensor> svd(const Tensor& self,
                                       bool some,
                                       bool compute_uv) {
  TAEDA_CHECK(self.dim() >= 2,
              "linalg.svd: input should have at least 2 dimensions, but has ",
              self.dim(),
              " dimensions instead");
  if (compute_uv) {
    auto [u, s, vh] = ops::linalg_svd(self, /*full_matrices=*/!some);
    return {u, s, ops::conj(ops::transpose(vh, -2, -1))};
  }
  auto zeros = [&](int64_t size) {
    DimVector sizes(batch_sizes(self));
    sizes.push_back(size);
    sizes.push_back(size);
    return ops::new_zeros(self, sizes);
  };
  Tensor s = ops::linalg_svdvals(self);
  return {zeros(self.size(-2)), s, zeros(self.size(-1))};
}

}  // namespace taeda::native
