// Quantiles: elements of the sorted row, and mixtures of two neighbours.
#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/c10/util/check.h>
#include <taeda/gen/native/nanquantile.h>
#include <taeda/gen/native/quantile.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/all.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/bitwise_not.h>
#include <taeda/gen/ops/ceil.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/flatten.h>
#include <taeda/gen/ops/floor.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/full_like.h>
#include <taeda/gen/ops/gather.h>
#include <taeda/gen/ops/ge.h>
#include <taeda/gen/ops/isnan.h>
#include <taeda/gen/ops/le.h>
#include <taeda/gen/ops/lerp.h>
#include <taeda/gen/ops/logical_and.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/round.h>
#include <taeda/gen/ops/sort.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <limits>

namespace taeda::native {

namespace {

void check_arguments(const Tensor& self,
                     const Tensor& q,
                     std::string_view interpolation) {
  TAEDA_CHECK(self.numel() > 0, "quantile() input tensor must be non-empty");
  TAEDA_CHECK(q.dim() <= 1, "quantile() q must be a scalar or 1D tensor");
  TAEDA_CHECK(self.dtype() == kFloat || self.dtype() == kDouble,
              "quantile() input tensor must be either float or double dtype");
  TAEDA_CHECK(self.dtype() == q.dtype(),
              "quantile() q tensor must be same dtype as the input tensor");
  TAEDA_CHECK(
      interpolation == "linear" || interpolation == "lower" ||
          interpolation == "higher" || interpolation == "midpoint" ||
          interpolation == "nearest",
      "quantile() interpolation must be one of linear, lower, higher, midpoint "
      "or nearest, but got ",
      interpolation);
  Tensor inside =
      ops::logical_and(ops::ge(q, Scalar(0)), ops::le(q, Scalar(1)));
  TAEDA_CHECK(holds_throughout(ops::all(inside)),
              "quantile() q values must be in the range [0, 1]");
}

// Places in the sorted rows, of size (..., count of q).
Tensor places(const Tensor& sorted, const Tensor& q, bool ignore_nan) {
  Tensor last;
  Tensor nan = ops::isnan(sorted);
  int64_t dims[] = {-1};
  if (ignore_nan) {
    Tensor valid = ops::bitwise_not(nan);
    last = ops::_to_copy(ops::sum(valid, IntArrayRef(dims), true), q.dtype());
    last = ops::clamp_min(ops::sub(last, Scalar(1), Scalar(1)), Scalar(0));
    return ops::mul(q, last);
  }
  double count = static_cast<double>(sorted.size(-1) - 1);
  Tensor ranks = ops::mul(q, Scalar(count));
  DimVector sizes(sorted.sizes());
  sizes[sizes.size() - 1] = q.numel();
  ranks = ops::expand(ranks, sizes, false);
  // nan is sorted to the end: rows with one give the last element.
  return ops::masked_fill(ranks, ops::any(nan, -1, true), Scalar(count));
}

Tensor quantiles(const Tensor& self,
                 const Tensor& q,
                 std::optional<int64_t> dim,
                 bool keepdim,
                 std::string_view kind,
                 bool ignore_nan) {
  check_arguments(self, q, kind);
  int64_t axis = dim ? wrap_dim(*dim, self.dim()) : 0;
  Tensor rows = !dim              ? ops::flatten(self)
                : self.dim() == 0 ? ops::unsqueeze(self, -1)
                                  : ops::movedim(self, axis, -1);
  Tensor sorted = std::get<0>(ops::sort(rows, -1, false));
  Tensor row_q = q.dim() == 0 ? ops::unsqueeze(q, 0) : q;
  Tensor ranks = places(sorted, row_q, ignore_nan);
  if (kind == "lower") ranks = ops::floor(ranks);
  if (kind == "higher") ranks = ops::ceil(ranks);
  if (kind == "nearest") ranks = ops::round(ranks);
  Tensor below = ops::_to_copy(ranks, kLong);
  Tensor out = ops::gather(sorted, -1, below);
  if (kind == "linear" || kind == "midpoint") {
    Tensor weights =
        kind == "midpoint"
            ? ops::full_like(ranks, Scalar(0.5))
            : ops::sub(ranks, ops::_to_copy(below, ranks.dtype()), Scalar(1));
    Tensor above =
        ops::gather(sorted, -1, ops::_to_copy(ops::ceil(ranks), kLong));
    out = ops::lerp(out, above, weights);
  }
  // (..., q) -> (q, ...), with the reduced dim where it was.
  if (keepdim && dim && self.dim() > 0) {
    out = ops::movedim(ops::unsqueeze(out, -2), -2, axis);
  } else if (keepdim) {
    for (int64_t i = 0; i < self.dim(); ++i) out = ops::unsqueeze(out, 0);
  }
  return q.dim() == 0 ? ops::squeeze(out, -1) : ops::movedim(out, -1, 0);
}

Tensor one(double q, const Tensor& self) {
  TAEDA_CHECK(
      q >= 0 && q <= 1, "quantile() q must be in the range [0, 1] but got ", q);
  return ops::full(
      {}, Scalar(q), self.dtype(), std::nullopt, self.device(), std::nullopt);
}

}  // namespace

Tensor quantile(const Tensor& self,
                const Tensor& q,
                std::optional<int64_t> dim,
                bool keepdim,
                std::string_view interpolation) {
  return quantiles(self, q, dim, keepdim, interpolation, false);
}

Tensor quantile(const Tensor& self,
                double q,
                std::optional<int64_t> dim,
                bool keepdim,
                std::string_view interpolation) {
  return quantiles(self, one(q, self), dim, keepdim, interpolation, false);
}

Tensor nanquantile(const Tensor& self,
                   const Tensor& q,
                   std::optional<int64_t> dim,
                   bool keepdim,
                   std::string_view interpolation) {
  return quantiles(self, q, dim, keepdim, interpolation, true);
}

Tensor nanquantile(const Tensor& self,
                   double q,
                   std::optional<int64_t> dim,
                   bool keepdim,
                   std::string_view interpolation) {
  return quantiles(self, one(q, self), dim, keepdim, interpolation, true);
}

}  // namespace taeda::native
