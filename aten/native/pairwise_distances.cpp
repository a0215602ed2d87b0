// Distances between all rows of one or two matrices: shapes.
#include <taeda/aten/iter/copy.h>
#include <taeda/aten/native/argument_checks.h>
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/_cdist_backward.h>
#include <taeda/gen/native/_cdist_forward.h>
#include <taeda/gen/native/_pdist_backward.h>
#include <taeda/gen/native/_pdist_forward.h>
#include <taeda/gen/native/cdist.h>
#include <taeda/gen/native/pdist.h>
#include <taeda/gen/ops/_cdist_forward.h>
#include <taeda/gen/ops/_pdist_forward.h>
#include <taeda/gen/ops/contiguous.h>
#include <taeda/gen/ops/expand.h>

namespace taeda::native {

namespace {

// The loops walk both tensors by one batch index.
template <class T>
void check_rows(std::string_view name, const T& x1, const T& x2) {
  auto batch = [](const T& t) {
    return t.sizes().slice(0, static_cast<size_t>(t.dim()) - 2);
  };
  TAEDA_CHECK(x1.dim() >= 2 && x2.dim() == x1.dim() && batch(x1) == batch(x2) &&
                  x1.size(-1) == x2.size(-1),
              name,
              ": expected x1 [..., p, m] and x2 [..., r, m], got ",
              x1.sizes(),
              " and ",
              x2.sizes());
}

void check_order(double p) {
  TAEDA_CHECK(p >= 0, "only supports non-negative p values, got ", p);
}

}  // namespace

Tensor cdist(const Tensor& x1,
             const Tensor& x2,
             double p,
             std::optional<int64_t> compute_mode) {
  TAEDA_CHECK(x1.dim() >= 2 && x2.dim() >= 2,
              "cdist only supports at least 2D tensors, X1 got: ",
              x1.dim(),
              "D, X2 got: ",
              x2.dim(),
              "D");
  TAEDA_CHECK(same_size(x1, x1.dim() - 1, x2, x2.dim() - 1),
              "X1 and X2 must have the same number of columns. X1: ",
              x1.size(-1),
              " X2: ",
              x2.size(-1));
  TAEDA_CHECK(x1.is_floating_point() && x2.is_floating_point(),
              "cdist only supports floating-point dtypes, X1 got: ",
              x1.dtype(),
              ", X2 got: ",
              x2.dtype());
  check_order(p);
  TAEDA_CHECK(compute_mode.value_or(0) >= 0 && compute_mode.value_or(0) <= 2,
              "possible modes: 0, 1, 2, but was: ",
              compute_mode.value_or(0));
  auto batch = [](const Tensor& t) {
    return symbolic_sizes(t).slice(0, static_cast<size_t>(t.dim()) - 2);
  };
  Dims<SymInt> lead = broadcast_shapes<SymInt>("cdist", batch(x1), batch(x2));
  auto expanded = [&](const Tensor& t) {
    Dims<SymInt> sizes = lead;
    ArrayRef<SymInt> own = symbolic_sizes(t);
    sizes.push_back(own[own.size() - 2]);
    sizes.push_back(own.back());
    return same_sizes(sizes, own) ? t : expand_sized(t, sizes);
  };
  return ops::_cdist_forward(expanded(x1), expanded(x2), p, compute_mode);
}

template <class I>
void _cdist_forward_shape(const Spec<I>& x1,
                          const Spec<I>& x2,
                          double p,
                          std::optional<int64_t>,
                          Plan<I>& plan) {
  check_order(p);
  check_rows("_cdist_forward", x1, x2);
  TAEDA_CHECK(x1.dtype() == x2.dtype(),
              "cdist: expected inputs of the same dtype, got ",
              x1.dtype(),
              " and ",
              x2.dtype());
  Dims<I> sizes(x1.sizes());
  sizes.back() = x2.size(-2);
  plan.set(0, sizes, x1.dtype());
}
TAEDA_SHAPE(_cdist_forward_shape);

template <class I>
void _cdist_backward_shape(const Spec<I>& grad,
                           const Spec<I>& x1,
                           const Spec<I>& x2,
                           double,
                           const Spec<I>& cdist,
                           Plan<I>& plan) {
  constexpr std::string_view kName = "cdist_backward";
  const int64_t rank = x1.dim();
  check_rows(kName, x1, x2);
  for (const Spec<I>* t : {&grad, &x2, &cdist}) {
    TAEDA_CHECK(t->dtype() == x1.dtype(),
                kName,
                ": expected tensors of one dtype, got ",
                x1.dtype(),
                " and ",
                t->dtype());
  }
  Dims<I> distances(x1.sizes());
  distances[static_cast<size_t>(rank - 1)] = x2.size(-2);
  check_shape(kName, "grad", grad, distances);
  check_shape(kName, "cdist", cdist, distances);
  plan.set(0, x1.sizes(), x1.dtype());
}
TAEDA_SHAPE(_cdist_backward_shape);

namespace {

// What the loops walk: rows of one matrix, with a distance for each pair.
template <class I>
I check_pairs(std::string_view op, const Spec<I>& self) {
  TAEDA_CHECK(self.dim() == 2, op, ": expected a matrix, got ", self.sizes());
  const I& n = self.sizes()[0];
  return n > 1 ? n * (n - 1) / 2 : I(0);
}

}  // namespace

Tensor pdist(const Tensor& self, double p) {
  TAEDA_CHECK(self.dim() == 2,
              "pdist only supports 2D tensors, got: ",
              self.dim(),
              "D");
  TAEDA_CHECK(self.is_floating_point(),
              "pdist only supports floating-point dtypes, got ",
              self.dtype());
  TAEDA_CHECK(p >= 0, "pdist only supports non-negative p values, got ", p);
  return ops::_pdist_forward(ops::contiguous(self, MemoryFormat::Contiguous),
                             p);
}

template <class I>
void _pdist_forward_shape(const Spec<I>& self, double, Plan<I>& plan) {
  plan.set(0, {check_pairs("_pdist_forward", self)}, self.dtype());
}
TAEDA_SHAPE(_pdist_forward_shape);

template <class I>
void _pdist_backward_shape(const Spec<I>& grad,
                           const Spec<I>& self,
                           double,
                           const Spec<I>& pdist,
                           Plan<I>& plan) {
  constexpr std::string_view kName = "_pdist_backward";
  I pairs = check_pairs(kName, self);
  check_count(kName, "grad", grad, pairs);
  check_count(kName, "pdist", pdist, pairs);
  for (const Spec<I>* t : {&grad, &pdist}) {
    TAEDA_CHECK(t->dtype() == self.dtype(),
                kName,
                ": expected tensors of one dtype, got ",
                self.dtype(),
                " and ",
                t->dtype());
  }
  plan.set(0, self.sizes(), self.dtype());
}
TAEDA_SHAPE(_pdist_backward_shape);

}  // namespace taeda::native
