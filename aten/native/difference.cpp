// diff, isin, frexp, rrelu: shapes and compositions.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/native/difference.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/diff.h>
#include <taeda/gen/native/frexp.h>
#include <taeda/gen/native/isin.h>
#include <taeda/gen/native/rrelu.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/isin.h>
#include <taeda/gen/ops/le.h>
#include <taeda/gen/ops/leaky_relu.h>
#include <taeda/gen/ops/logical_xor.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/uniform_.h>
#include <taeda/gen/ops/where.h>
#include <taeda/gen/sym/narrow.h>
#include <taeda/gen/sym/new_empty.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace taeda::native {

Tensor diff(const Tensor& self,
            int64_t n,
            int64_t dim,
            const OptionalTensor& prepend,
            const OptionalTensor& append) {
  TAEDA_CHECK(self.dim() > 0,
              "diff expects input to be at least one-dimensional");
  TAEDA_CHECK(n >= 0, "order must be non-negative but got ", n);
  int64_t at = wrap_dim(dim, self.dim());
  if (n == 0) return ops::clone(self);
  for (const OptionalTensor& end : {prepend, append}) {
    TAEDA_CHECK(!end || !end->defined() || end->dim() == self.dim(),
                "diff expects prepend or append to be the same dimension as "
                "input, but got ",
                end->dim(),
                " and ",
                self.dim());
    for (int64_t d = 0; end && end->defined() && d < self.dim(); ++d) {
      TAEDA_CHECK(d == at || same_size(*end, d, self, d),
                  "diff expects the shape of tensor to prepend or append to "
                  "match that of input except along the differencing "
                  "dimension; input.size(",
                  d,
                  ") = ",
                  self.size(d),
                  ", but got ",
                  end->size(d));
    }
  }
  std::vector<Tensor> parts;
  if (prepend && prepend->defined()) parts.push_back(*prepend);
  parts.push_back(self);
  if (append && append->defined()) parts.push_back(*append);
  Tensor now = parts.size() == 1 ? self : ops::cat(parts, at);
  if (symbolic_size(now, at) < n) n = now.sizes()[at];
  for (int64_t i = 0; i < n; ++i) {
    SymInt left = symbolic_size(now, at) - SymInt(1);
    Tensor later = sym::narrow(now, at, 1, left);
    Tensor earlier = sym::narrow(now, at, 0, left);
    now = now.dtype() == kBool ? ops::logical_xor(later, earlier)
                               : ops::sub(later, earlier);
  }
  return now;
}

template <class I>
void isin_shape(const Spec<I>& elements,
                const Spec<I>& test_elements,
                bool,
                bool,
                Plan<I>& plan) {
  ScalarType common = common_type(elements, test_elements);
  if (is_complex(common)) not_implemented_for("isin", common);
  plan.set(0, elements.sizes(), kBool);
}
TAEDA_SHAPE(isin_shape);
Tensor isin(const Tensor& elements,
            const Scalar& test_element,
            bool assume_unique,
            bool invert) {
  return ops::isin(elements, wrap_number(test_element), assume_unique, invert);
}
Tensor isin(const Scalar& element,
            const Tensor& test_elements,
            bool assume_unique,
            bool invert) {
  return ops::isin(wrap_number(element), test_elements, assume_unique, invert);
}

template <class I>
void frexp_shape(const Spec<I>& self, Plan<I>& plan) {
  TAEDA_CHECK(self.is_floating_point(),
              "torch.frexp() only supports floating-point dtypes, got ",
              self.dtype());
  plan.set_like(0, self, self.dtype());
  plan.set_like(1, self, kInt);
}
TAEDA_SHAPE(frexp_shape);

Tensor rrelu(const Tensor& self,
             const Scalar& lower,
             const Scalar& upper,
             bool training,
             const std::optional<Generator>& generator) {
  double low = lower.to_double(), high = upper.to_double();
  TAEDA_CHECK(
      std::isfinite(low), "rrelu: lower bound must be finite, got ", low);
  TAEDA_CHECK(
      std::isfinite(high), "rrelu: upper bound must be finite, got ", high);
  TAEDA_CHECK(low <= high,
              "rrelu: Lower bound should be less than or equal to the upper "
              "bound, got ",
              low,
              " and ",
              high);
  if (!training) return ops::leaky_relu(self, Scalar((low + high) / 2));
  Tensor drawn = sym::new_empty(self, symbolic_sizes(self));
  ops::uniform_(drawn, low, high, generator);
  Tensor factor = ops::where(ops::le(self, Scalar(0)), drawn, Scalar(1.0));
  return ops::mul(self, factor);
}

}  // namespace taeda::native
