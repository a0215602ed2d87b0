// Derivatives along dims by differences, and norms of slices that are held.
#include <taeda/aten/iter/spec.h>
#include <taeda/gen/native/gradient.h>
#include <taeda/gen/native/renorm.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/cat.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/gt.h>
#include <taeda/gen/ops/linalg_vector_norm.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/narrow.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/ones_like.h>
#include <taeda/gen/ops/reciprocal.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/where.h>

#include <numeric>

namespace taeda::native {

namespace {

using Tensors = std::vector<Tensor>;

// Distances of neighbours: one for all, or those of coordinates, a line in the
// direction of the dim.
struct Spacing {
  Scalar step;
  Tensor steps;

  Tensor divided(const Tensor& t, int64_t dim, int64_t at) const {
    return steps.defined() ? ops::div(t, ops::narrow(steps, dim, at, 1))
                           : ops::div(t, step);
  }
};

Tensor minus(const Tensor& a, const Tensor& b) { return ops::sub(a, b, 1); }

// a, b, c of a f(x - l) + b f(x) + c f(x + r), from l and r.
Tensor weighted(const Tensor& before,
                const Tensor& at,
                const Tensor& after,
                const Tensor& l,
                const Tensor& r) {
  Tensor both = ops::add(l, r, 1);
  Tensor a = ops::neg(ops::div(r, ops::mul(l, both)));
  Tensor b = ops::div(minus(r, l), ops::mul(l, r));
  Tensor c = ops::div(l, ops::mul(r, both));
  Tensor sum = ops::add(ops::mul(a, before), ops::mul(b, at), 1);
  return ops::add(sum, ops::mul(c, after), 1);
}

Tensor interior(const Tensor& f, const Spacing& h, int64_t dim, int64_t n) {
  auto part = [&](const Tensor& t, int64_t start, int64_t length) {
    return ops::narrow(t, dim, start, length);
  };
  Tensor before = part(f, 0, n - 2), after = part(f, 2, n - 2);
  if (!h.steps.defined()) {
    Scalar twice = h.step.is_complex()
                       ? Scalar(h.step.to_complex() * complex<double>(2))
                       : Scalar(h.step.to_double() * 2);
    return ops::div(minus(after, before), twice);
  }
  return weighted(before,
                  part(f, 1, n - 2),
                  after,
                  part(h.steps, 0, n - 2),
                  part(h.steps, 1, n - 2));
}

// The derivative at an end, from it inwards: `inward` is 1 or -1.
Tensor end(const Tensor& f,
           const Spacing& h,
           int64_t dim,
           int64_t n,
           int64_t order,
           int64_t inward) {
  int64_t at = inward > 0 ? 0 : n - 1, step = inward > 0 ? 0 : n - 2;
  auto point = [&](int64_t i) {
    return ops::narrow(f, dim, at + i * inward, 1);
  };
  if (order == 1) {
    Tensor rise =
        inward > 0 ? minus(point(1), point(0)) : minus(point(0), point(1));
    return h.divided(rise, dim, step);
  }
  if (!h.steps.defined()) {
    Tensor sum =
        minus(ops::mul(point(1), Scalar(2.0)), ops::mul(point(2), Scalar(0.5)));
    sum = minus(sum, ops::mul(point(0), Scalar(1.5)));
    return h.divided(inward > 0 ? sum : ops::neg(sum), dim, step);
  }
  // Along x inwards: -(2 l + r) / (l (l + r)), (l + r) / (l r), -l / (r (l +
  // r)).
  Tensor l = ops::narrow(h.steps, dim, step, 1);
  Tensor r = ops::narrow(h.steps, dim, step + inward, 1);
  Tensor both = ops::add(l, r, 1);
  Tensor a = ops::div(ops::add(both, l, 1), ops::mul(l, both));
  Tensor b = ops::div(both, ops::mul(l, r));
  Tensor c = ops::div(l, ops::mul(r, both));
  Tensor sum = minus(ops::mul(b, point(1)), ops::mul(a, point(0)));
  sum = minus(sum, ops::mul(c, point(2)));
  return inward > 0 ? sum : ops::neg(sum);
}

Tensor derivative(const Tensor& f,
                  const Spacing& h,
                  int64_t dim,
                  int64_t order) {
  int64_t n = f.size(dim);
  return ops::cat({end(f, h, dim, n, order, 1),
                   interior(f, h, dim, n),
                   end(f, h, dim, n, order, -1)},
                  dim);
}

DimVector dims_of(const Tensor& self, std::optional<int64_t> dim) {
  if (dim) return {*dim};
  DimVector all(self.sizes().size());
  std::iota(all.begin(), all.end(), int64_t{0});
  return all;
}

void check_gradient(const Tensor& self, IntArrayRef dims, int64_t order) {
  TAEDA_CHECK(order == 1 || order == 2,
              "torch.gradient only supports edge_order=1 and edge_order=2.");
  TAEDA_CHECK(self.dtype() != kByte && self.dtype() != kBool,
              "torch.gradient does not support uint8 input.");
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], self.dim());
    for (size_t j = 0; j < i; ++j) {
      TAEDA_CHECK(wrap_dim(dims[j], self.dim()) != d,
                  "dim ",
                  d,
                  " appears multiple times in the list of dims");
    }
    TAEDA_CHECK(self.size(d) >= order + 1,
                "torch.gradient expected each dimension size to be at least "
                "edge_order+1");
  }
}

Tensors by_steps(const Tensor& self,
                 ArrayRef<Scalar> spacing,
                 IntArrayRef dims,
                 int64_t order) {
  check_gradient(self, dims, order);
  Tensors found;
  for (size_t i = 0; i < dims.size(); ++i) {
    Spacing h{spacing[spacing.size() == 1 ? 0 : i], {}};
    found.push_back(derivative(self, h, wrap_dim(dims[i], self.dim()), order));
  }
  return found;
}

// As many distances as dims, though one would do for all. `named`: the call
// has dims.
void check_spacings(const Tensor& self,
                    size_t spacings,
                    IntArrayRef dims,
                    bool named) {
  if (spacings == dims.size()) return;
  TAEDA_CHECK(named,
              "torch.gradient expected spacing to be unspecified, a scalar, or "
              "a list of length equal to 'self.dim() = ",
              self.dim(),
              "', since dim argument was not given, but got a list of length ",
              spacings);
  TAEDA_CHECK(false,
              "torch.gradient expected spacing to be unspecified, a scalar or "
              "it's spacing and dim arguments to have the same length, but got "
              "a spacing argument of length ",
              spacings,
              " and a dim argument of length ",
              dims.size());
}

Tensors by_list(const Tensor& self,
                ArrayRef<Scalar> spacing,
                IntArrayRef dims,
                bool named,
                int64_t order) {
  check_spacings(self, spacing.size(), dims, named);
  return by_steps(self, spacing, dims, order);
}

Tensors by_coordinates(const Tensor& self,
                       TensorList spacing,
                       IntArrayRef dims,
                       bool named,
                       int64_t order) {
  check_spacings(self, spacing.size(), dims, named);
  check_gradient(self, dims, order);
  Tensors found;
  for (size_t i = 0; i < dims.size(); ++i) {
    int64_t d = wrap_dim(dims[i], self.dim()), n = self.size(d);
    Tensor x = spacing[i];
    TAEDA_CHECK(x.dim() == 1 && x.numel() == n,
                "torch.gradient expected each element of spacing to have one "
                "dimension and as many coordinates as its dim, got ",
                x.sizes());
    DimVector line(self.sizes().size(), 1);
    line[static_cast<size_t>(d)] = n - 1;
    Tensor steps =
        minus(ops::narrow(x, 0, 1, n - 1), ops::narrow(x, 0, 0, n - 1));
    found.push_back(
        derivative(self, {{}, ops::reshape(steps, line)}, d, order));
  }
  return found;
}

}  // namespace

Tensors gradient(const Tensor& self,
                 const std::optional<Scalar>& spacing,
                 std::optional<int64_t> dim,
                 int64_t order) {
  Scalar step = spacing.value_or(Scalar(1.0));
  return by_steps(self, ArrayRef<Scalar>(&step, 1), dims_of(self, dim), order);
}
Tensors gradient(const Tensor& self,
                 const Scalar& spacing,
                 IntArrayRef dim,
                 int64_t order) {
  return by_steps(self, ArrayRef<Scalar>(&spacing, 1), dim, order);
}
Tensors gradient(const Tensor& self, IntArrayRef dim, int64_t order) {
  Scalar step(1.0);
  return by_steps(self, ArrayRef<Scalar>(&step, 1), dim, order);
}
Tensors gradient(const Tensor& self,
                 ArrayRef<Scalar> spacing,
                 std::optional<int64_t> dim,
                 int64_t order) {
  return by_list(self, spacing, dims_of(self, dim), dim.has_value(), order);
}
Tensors gradient(const Tensor& self,
                 ArrayRef<Scalar> spacing,
                 IntArrayRef dim,
                 int64_t order) {
  return by_list(self, spacing, dim, true, order);
}
Tensors gradient(const Tensor& self,
                 TensorList spacing,
                 std::optional<int64_t> dim,
                 int64_t order) {
  return by_coordinates(
      self, spacing, dims_of(self, dim), dim.has_value(), order);
}
Tensors gradient(const Tensor& self,
                 TensorList spacing,
                 IntArrayRef dim,
                 int64_t order) {
  return by_coordinates(self, spacing, dim, true, order);
}

Tensor renorm(const Tensor& self,
              const Scalar& p,
              int64_t dim,
              const Scalar& maxnorm) {
  TAEDA_CHECK(!p.is_complex(), "renorm: p must be real-valued");
  TAEDA_CHECK(p.to_double() > 0, "renorm: non-positive-norm not supported");
  TAEDA_CHECK(!maxnorm.is_complex(), "renorm: maxnorm must be real-valued");
  TAEDA_CHECK(maxnorm.to_double() >= 0,
              "renorm: expected maxnorm to be >= 0 but got ",
              maxnorm.to_double());
  TAEDA_CHECK(self.dim() > 1,
              "renorm: input needs at least 2 dimensions, got ",
              self.dim(),
              " dimensions");
  DimVector others;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != wrap_dim(dim, self.dim())) others.push_back(d);
  }
  ScalarType t = self.dtype();
  // Both ways that the gradient comes back cancel each other: they meet before
  // either is rounded to 16 bits.
  bool narrow = t == kHalf || t == kBFloat16;
  Tensor wide = narrow ? ops::to(self, kFloat) : self;
  Tensor norm =
      ops::linalg_vector_norm(wide, p, IntArrayRef(others), /*keepdim=*/true);
  // PyTorch's distance from a division by zero.
  Tensor shorter =
      ops::mul(ops::reciprocal(ops::add(norm, Scalar(1e-7), 1)), maxnorm);
  Tensor factor =
      ops::where(ops::gt(norm, maxnorm), shorter, ops::ones_like(norm));
  return ops::to(ops::mul(wide, factor), t);
}

}  // namespace taeda::native
