// Factors of matrices: triangles, permutations, reflections.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/cuda/given.h>
#include <taeda/aten/native/cuda/kernels.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/bitwise_and.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/item.h>
#include <taeda/gen/ops/log.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/ne.h>
#include <taeda/gen/ops/prod.h>
#include <taeda/gen/ops/rsub.h>
#include <taeda/gen/ops/sgn.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/transpose.h>
#include <taeda/gen/ops/tril.h>
#include <taeda/gen/ops/triu.h>

#include <algorithm>

namespace taeda::cuda {

TAEDA_INTERNAL_NAMES

namespace {

using Pair = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

Tensor row_major(const Tensor& t) {
  return ops::clone(t, MemoryFormat::Contiguous);
}

DimVector lead_of(const Tensor& t) {
  return {t.sizes().begin(), t.sizes().end() - 2};
}
DimVector with(DimVector lead, std::initializer_list<int64_t> last) {
  for (int64_t size : last) lead.push_back(size);
  return lead;
}
int64_t matrices_of(const Tensor& t) {
  int64_t count = 1;
  for (int64_t size : lead_of(t)) count *= size;
  return count;
}

Tensor filled(const DimVector& sizes, ScalarType dtype, Device device) {
  Tensor made = make_tensor("linalg", sizes, dtype, device);
  fill_with(made, 0);
  return made;
}

Tensor adjoint(const Tensor& t) {
  Tensor flipped = ops::transpose(t, -2, -1);
  return t.is_complex() ? ops::conj(flipped) : flipped;
}

// Triangles ------------------------------------------------------------------

Pair cholesky(const Tensor& self, bool upper, bool check_errors) {
  Tensor l = row_major(self);
  Tensor info = filled(lead_of(self), kInt, self.device());
  DeviceCall("linalg_cholesky_ex", "factors", "cholesky_matrix(g, i);")
      .number("upper", upper ? 1 : 0)
      .tensor("l", l)
      .tensor("info", info)
      .run(l.numel() == 0 ? 0 : matrices_of(l));
  if (check_errors && info.numel() > 0) {
    int64_t order = ops::item(ops::amax(info, IntArrayRef{})).to_int();
    TAEDA_CHECK_AS(LinAlg,
                   order == 0,
                   "linalg.cholesky_ex: The factorization could not be "
                   "completed because the input is not positive-definite (the "
                   "leading minor of order ",
                   order,
                   " is not positive-definite).");
  }
  return {l, info};
}

Tensor spread(const Tensor& t, const DimVector& lead) {
  return ops::expand(t, with(lead, {t.size(-2), t.size(-1)}));
}

Tensor solve_triangular(
    const Tensor& a, const Tensor& b, bool upper, bool left, bool unit) {
  if (!left) {
    Tensor turned = solve_triangular(ops::transpose(a, -2, -1),
                                     ops::transpose(b, -2, -1),
                                     !upper,
                                     true,
                                     unit);
    return ops::transpose(turned, -2, -1);
  }
  size_t rank = static_cast<size_t>(std::max(a.dim(), b.dim())) - 2;
  DimVector lead(rank, 1);
  for (const Tensor* t : {&a, &b}) {
    DimVector own = lead_of(*t);
    for (size_t d = 0; d < own.size(); ++d) {
      if (own[d] != 1) lead[rank - own.size() + d] = own[d];
    }
  }
  Tensor x = row_major(spread(b, lead));
  DeviceCall("linalg_solve_triangular", "factors", "triangle_column(g, i);")
      .number("upper", upper ? 1 : 0)
      .number("unitriangular", unit ? 1 : 0)
      .tensor("a", row_major(spread(a, lead)))
      .tensor("x", x)
      .run(x.numel() == 0 ? 0 : x.numel() / x.size(-2));
  return x;
}

// Rows exchanged -------------------------------------------------------------

Three lu_factor(const Tensor& self, bool, bool check_errors) {
  Tensor lu = row_major(self);
  int64_t steps = std::min(self.size(-2), self.size(-1));
  Device device = self.device();
  Tensor pivots = filled(with(lead_of(self), {steps}), kInt, device);
  Tensor info = filled(lead_of(self), kInt, device);
  DeviceCall("linalg_lu_factor_ex", "factors", "lu_matrix(g, i);")
      .tensor("lu", lu)
      .tensor("pivots", pivots)
      .tensor("info", info)
      .run(lu.numel() == 0 ? 0 : matrices_of(lu));
  if (check_errors && info.numel() > 0) {
    int64_t order = ops::item(ops::amax(info, IntArrayRef{})).to_int();
    TAEDA_CHECK(order == 0,
                "torch.linalg.lu_factor_ex: U[",
                order,
                ",",
                order,
                "] is zero and using it on lu_solve would result in a "
                "division by zero.");
  }
  return {lu, pivots, info};
}

Three lu_unpack(const Tensor& lu,
                const Tensor& pivots,
                bool unpack_data,
                bool unpack_pivots) {
  int64_t m = lu.size(-2), k = std::min(m, lu.size(-1));
  Device device = lu.device();
  Tensor p = filled({0}, lu.dtype(), device), l = p, u = p;
  if (unpack_pivots) {
    p = filled(with(lead_of(lu), {m, m}), lu.dtype(), device);
    DeviceCall("lu_unpack", "factors", "permutation_matrix(g, i);")
        .tensor("pivots", ops::contiguous(pivots))
        .tensor("order", filled(with(lead_of(lu), {m}), kLong, device))
        .tensor("p", p)
        .run(p.numel() == 0 ? 0 : matrices_of(p));
  }
  if (unpack_data) {
    l = ops::tril(ops::narrow(lu, -1, 0, k), -1);
    fill_with(ops::diagonal(l, 0, -2, -1), 1);
    u = ops::triu(ops::narrow(lu, -2, 0, k), 0);
  }
  return {p, l, u};
}

struct Diagonal {
  Tensor entries;  // of U
  Tensor sign;     // 1, or -1 where rows were exchanged an odd number of times
};

Diagonal diagonal_of(const Tensor& a) {
  auto [lu, pivots, info] = lu_factor(a, true, false);
  Tensor own = ops::arange(
      Scalar(1), Scalar(a.size(-1) + 1), kInt, {}, a.device(), std::nullopt);
  DimVector last{-1};
  Tensor odd = ops::bitwise_and(
      ops::sum(ops::ne(pivots, own), IntArrayRef(last)), Scalar(1));
  return {ops::diagonal(lu, 0, -2, -1),
          ops::rsub(ops::mul(odd, Scalar(2)), Scalar(1))};
}

Tensor linalg_det(const Tensor& a) {
  Diagonal d = diagonal_of(a);
  return ops::mul(ops::prod(d.entries, -1), d.sign);
}

Pair linalg_slogdet(const Tensor& a) {
  Diagonal d = diagonal_of(a);
  DimVector last{-1};
  return {ops::mul(ops::prod(ops::sgn(d.entries), -1), d.sign),
          ops::sum(ops::log(ops::abs(d.entries)), IntArrayRef(last))};
}

// Reflections ----------------------------------------------------------------

Pair geqrf(const Tensor& self) {
  Tensor a = row_major(self);
  int64_t steps = std::min(self.size(-2), self.size(-1));
  Tensor tau =
      filled(with(lead_of(self), {steps}), self.dtype(), self.device());
  DeviceCall("geqrf", "factors", "reflections_matrix(g, i);")
      .tensor("a", a)
      .tensor("tau", tau)
      .run(a.numel() == 0 ? 0 : matrices_of(a));
  return {a, tau};
}

// The first `columns` columns of the product of reflections.
Tensor orthogonal(const Tensor& from, const Tensor& tau, int64_t columns) {
  DimVector sizes = with(lead_of(from), {from.size(-2), columns});
  Tensor q = filled(sizes, from.dtype(), from.device());
  fill_with(ops::diagonal(q, 0, -2, -1), 1);
  DeviceCall(
      "linalg_householder_product", "factors", "orthogonal_matrix(g, i);")
      .tensor("from", row_major(from))
      .tensor("tau", row_major(tau))
      .tensor("q", q)
      .run(q.numel() == 0 || tau.numel() == 0 ? 0 : matrices_of(q));
  return q;
}

Tensor householder_product(const Tensor& input, const Tensor& tau) {
  return orthogonal(input, tau, input.size(-1));
}

Pair linalg_qr(const Tensor& a, std::string_view mode) {
  auto [packed, tau] = geqrf(a);
  int64_t m = a.size(-2), k = std::min(m, a.size(-1));
  int64_t wide = mode == "complete" ? m : k;
  Tensor q = mode == "r" ? filled({0}, a.dtype(), a.device())
                         : orthogonal(packed, tau, wide);
  return {q, ops::triu(ops::narrow(packed, -2, 0, wide), 0)};
}

Tensor ormqr(const Tensor& self,
             const Tensor& tau,
             const Tensor& other,
             bool left,
             bool transpose) {
  Tensor q = orthogonal(self, tau, self.size(-2));
  if (transpose) q = adjoint(q);
  return left ? ops::matmul(q, other) : ops::matmul(other, q);
}

}  // namespace

Definitions factor_definitions() {
  static const Definition all[] = {
      defined_as("linalg_cholesky_ex", cholesky),
      defined_as("linalg_solve_triangular", solve_triangular),
      defined_as("linalg_lu_factor_ex", lu_factor),
      defined_as("lu_unpack", lu_unpack),
      defined_as("linalg_det", linalg_det),
      defined_as("linalg_slogdet", linalg_slogdet),
      defined_as("geqrf", geqrf),
      defined_as("linalg_householder_product", householder_product),
      defined_as("linalg_qr", linalg_qr),
      defined_as("ormqr", ormqr),
  };
  return all;
}

}  // namespace taeda::cuda
