// Cross products, covariances and correlations.
#include <taeda/aten/core/tensor_base.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/c10/util/check.h>
#include <taeda/gen/native/corrcoef.h>
#include <taeda/gen/native/cov.h>
#include <taeda/gen/native/cross.h>
#include <taeda/gen/native/linalg_cross.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/any.h>
#include <taeda/gen/ops/bitwise_not.h>
#include <taeda/gen/ops/clamp.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/conj.h>
#include <taeda/gen/ops/cov.h>
#include <taeda/gen/ops/diagonal.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/full.h>
#include <taeda/gen/ops/linalg_cross.h>
#include <taeda/gen/ops/lt.h>
#include <taeda/gen/ops/matmul.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/real.h>
#include <taeda/gen/ops/roll.h>
#include <taeda/gen/ops/sqrt.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/t.h>
#include <taeda/gen/ops/unsqueeze.h>

namespace taeda::native {

Tensor linalg_cross(const Tensor& self, const Tensor& other, int64_t dim) {
  constexpr std::string_view op = "linalg.cross";
  TAEDA_CHECK(self.dim() == other.dim(),
              op,
              ": inputs must have the same number of dimensions.");
  int64_t axis = wrap_dim(dim, self.dim());
  TAEDA_CHECK(self.size(axis) == 3 && other.size(axis) == 3,
              op,
              ": inputs dimension ",
              dim,
              " must have length 3. Got ",
              self.size(axis),
              " and ",
              other.size(axis));
  DimVector sizes = broadcast_shapes<int64_t>(op, self.sizes(), other.sizes());
  Tensor a = ops::expand(self, sizes, false);
  Tensor b = ops::expand(other, sizes, false);
  auto turned = [axis](const Tensor& t, int64_t by) {
    int64_t shifts[] = {by}, dims[] = {axis};
    return ops::roll(t, IntArrayRef(shifts), IntArrayRef(dims));
  };
  return ops::sub(ops::mul(turned(a, -1), turned(b, -2)),
                  ops::mul(turned(a, -2), turned(b, -1)),
                  Scalar(1));
}

Tensor cross(const Tensor& self,
             const Tensor& other,
             std::optional<int64_t> dim) {
  if (dim) return ops::linalg_cross(self, other, *dim);
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (self.size(i) == 3) return ops::linalg_cross(self, other, i);
  }
  TAEDA_CHECK(false, "no dimension of size 3 in input");
}

namespace {

bool is_nowhere_negative(const Tensor& t) {
  return holds_throughout(
      ops::bitwise_not(ops::any(ops::lt(t, Scalar(int64_t{0})))));
}

void check_weight(const char* name,
                  std::string_view kind,
                  const std::optional<Tensor>& weights,
                  int64_t count) {
  if (!weights || !weights->defined()) return;
  ScalarType dtype = weights->dtype();
  bool fits =
      kind == "integral" ? is_integral(dtype, false) : is_floating(dtype);
  TAEDA_CHECK(weights->dim() <= 1,
              "cov(): expected ",
              name,
              " to have one or fewer dimensions but got ",
              name,
              " with ",
              weights->dim(),
              " dimensions");
  TAEDA_CHECK(fits,
              "cov(): expected ",
              name,
              " to have ",
              kind,
              " dtype but got ",
              name,
              " with ",
              dtype,
              " dtype");
  TAEDA_CHECK(weights->numel() == count,
              "cov(): expected ",
              name,
              " to have the same numel as there are observations in the input "
              "but got ",
              weights->numel(),
              " != ",
              count);
  TAEDA_CHECK(
      is_nowhere_negative(*weights), "cov(): ", name, " cannot be negative");
}

Tensor weights_of(const std::optional<Tensor>& fweights,
                  const std::optional<Tensor>& aweights,
                  int64_t count) {
  check_weight("fweights", "integral", fweights, count);
  check_weight("aweights", "floating point", aweights, count);
  Tensor w;
  for (const auto& each : {fweights, aweights}) {
    if (!each || !each->defined()) continue;
    w = w.defined() ? ops::mul(w, *each) : *each;
  }
  return w;
}

}  // namespace

Tensor cov(const Tensor& self,
           int64_t correction,
           const std::optional<Tensor>& fweights,
           const std::optional<Tensor>& aweights) {
  TAEDA_CHECK(
      self.dim() <= 2,
      "cov(): expected input to have two or fewer dimensions but got an "
      "input with ",
      self.dim(),
      " dimensions");
  TAEDA_CHECK(self.dtype() != kBool,
              "cov(): bool dtype is not supported for input");
  Tensor x = self;
  while (x.dim() < 2) x = ops::unsqueeze(x, 0);
  if (!x.is_floating_point() && !x.is_complex()) x = ops::_to_copy(x, kFloat);
  int64_t count = x.size(1), dims[] = {1};
  IntArrayRef along(dims);
  Tensor w = weights_of(fweights, aweights, count);
  // In the dtype of the weights, which may be wider than x.
  Tensor total =
      w.defined() ? ops::sum(w) : ops::full({}, Scalar(count), kLong);
  Tensor weighted = w.defined() ? ops::mul(x, w) : x;
  Tensor mean = ops::div(ops::sum(weighted, along, /*keepdim=*/true), total);
  Tensor norm = total;
  if (w.defined() && aweights && aweights->defined() && correction != 0) {
    Tensor share = ops::div(ops::sum(ops::mul(w, *aweights)), total);
    norm = ops::sub(total, ops::mul(share, Scalar(correction)), Scalar(1));
  } else {
    norm = ops::sub(total, Scalar(correction), Scalar(1));
  }
  x = ops::sub(x, mean, Scalar(1));
  Tensor right = w.defined() ? ops::mul(x, w) : x;
  right = x.is_complex() ? ops::conj(ops::t(right)) : ops::t(right);
  Tensor c = ops::matmul(x, right);
  c = ops::div(c, ops::clamp_min(norm, Scalar(0)));
  return ops::squeeze(c);
}

Tensor corrcoef(const Tensor& self) {
  TAEDA_CHECK(self.dim() <= 2,
              "corrcoef(): expected input to have two or fewer dimensions but "
              "got an input with ",
              self.dim(),
              " dimensions");
  Tensor c = ops::cov(self);
  if (c.dim() == 0) return ops::div(c, c);
  Tensor d = ops::diagonal(c);
  Tensor deviation = ops::sqrt(d.is_complex() ? ops::real(d) : d);
  c = ops::div(c, ops::unsqueeze(deviation, -1));
  c = ops::div(c, ops::unsqueeze(deviation, 0));
  return c.is_complex() ? c : ops::clamp(c, Scalar(-1), Scalar(1));
}

}  // namespace taeda::native
