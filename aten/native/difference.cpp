// diff, isin, frexp, rrelu.
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/iter/pointwise.h>
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
  std::vector<Tensor> parts;
  if (prepend && prepend->defined()) parts.push_back(*prepend);
  parts.push_back(self);
  if (append && append->defined()) parts.push_back(*append);
  Tensor now = parts.size() == 1 ? self : ops::cat(parts, at);
  n = std::min(n, now.sizes()[at]);
  for (int64_t i = 0; i < n; ++i) {
    int64_t left = std::max<int64_t>(now.sizes()[at] - 1, 0);
    int64_t from = now.sizes()[at] - left;
    Tensor later = ops::narrow(now, at, from, left);
    Tensor earlier = ops::narrow(now, at, 0, left);
    now = now.dtype() == kBool ? ops::logical_xor(later, earlier)
                               : ops::sub(later, earlier);
  }
  return now;
}

namespace {

template <class I>
ScalarType common_type(const Spec<I>& elements, const Spec<I>& tests) {
  ResultType type;
  type.add(elements);
  type.add(tests);
  return type.get();
}
}  // namespace

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

void isin_cpu(const Tensor& elements,
              const Tensor& test_elements,
              bool,
              bool invert,
              const Tensor& out) {
  ScalarType common = common_type<int64_t>(elements, test_elements);
  ScalarType type = is_integral(common, true) ? kLong : kDouble;
  Tensor a = contiguous_as(elements, type);
  Tensor b = contiguous_as(test_elements, type);
  bool* to = out.mutable_data<bool>();
  auto run = [&](auto tag) {
    using T = decltype(tag);
    const T* first = b.const_data<T>();
    std::vector<T> sorted;
    // NaN equals nothing, and would spoil the order.
    std::copy_if(first, first + b.numel(), std::back_inserter(sorted), [](T v) {
      return v == v;
    });
    std::sort(sorted.begin(), sorted.end());
    const T* x = a.const_data<T>();
    for (int64_t i = 0, n = a.numel(); i < n; ++i) {
      bool found = x[i] == x[i] &&
                   std::binary_search(sorted.begin(), sorted.end(), x[i]);
      to[i] = found != invert;
    }
  };
  type == kLong ? run(int64_t{}) : run(double{});
}
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

void frexp_cpu(const Tensor& self,
               const Tensor& mantissa,
               const Tensor& exponent) {
  Tensor plain = contiguous_as(self, kDouble);
  Tensor m = make_tensor("frexp", self.sizes(), kDouble);
  Tensor e = make_tensor("frexp", self.sizes(), kInt);
  const double* x = plain.const_data<double>();
  double* fractions = m.mutable_data<double>();
  int32_t* powers = e.mutable_data<int32_t>();
  for (int64_t i = 0, n = plain.numel(); i < n; ++i) {
    int power = 0;
    fractions[i] = std::frexp(x[i], &power);
    powers[i] = power;
  }
  copy_into(mantissa, m);
  copy_into(exponent, e);
}

Tensor rrelu(const Tensor& self,
             const Scalar& lower,
             const Scalar& upper,
             bool training,
             const std::optional<Generator>& generator) {
  double low = lower.to_double(), high = upper.to_double();
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
