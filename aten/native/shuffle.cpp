// Channels in another order; vander and trapezoid.
#include <taeda/aten/native/symbolic_sizes.h>
#include <taeda/gen/native/channel_shuffle.h>
#include <taeda/gen/native/cumulative_trapezoid.h>
#include <taeda/gen/native/trapezoid.h>
#include <taeda/gen/native/vander.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/arange.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/flip.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/permute.h>
#include <taeda/gen/ops/pow.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/slice.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/zeros.h>

namespace taeda::native {

Tensor channel_shuffle(const Tensor& self, int64_t groups) {
  TAEDA_CHECK(self.dim() > 2,
              "channel_shuffle expects input with > 2 dims, but got input with "
              "sizes ",
              symbolic_sizes(self));
  const SymInt& c = symbolic_size(self, 1);
  TAEDA_CHECK(groups > 0,
              "Number of groups to divide channels in must be positive. Value "
              "of groups:",
              groups);
  TAEDA_CHECK(c % SymInt(groups) == 0,
              "Number of channels must be divisible by groups. Got ",
              c,
              " channels and ",
              groups,
              " groups.");
  Dims<SymInt> split(symbolic_sizes(self));
  DimVector order;
  split[1] = groups;
  split.insert(split.begin() + 2, c / SymInt(groups));
  for (int64_t d = 0; d <= self.dim(); ++d) order.push_back(d);
  std::swap(order[1], order[2]);
  return reshape_sized(ops::permute(reshape_sized(self, split), order),
                       symbolic_sizes(self));
}

Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  TAEDA_CHECK(
      x.dim() == 1, "vander: x must be a one-dimensional tensor, got ", x);
  int64_t n = N.value_or(x.sizes()[0]);
  TAEDA_CHECK(n >= 0, "vander: N must be non-negative, got ", n);
  Tensor exponents =
      ops::arange(Scalar(n), kLong, std::nullopt, x.device(), std::nullopt);
  if (!increasing) exponents = ops::flip(exponents, {0});
  return ops::pow(ops::unsqueeze(x, 1), exponents);
}

namespace {

// The sums of neighbours along dim.
Tensor neighbours(const Tensor& y, int64_t dim) {
  return ops::add(
      ops::slice(y, dim, 0, -1, 1), ops::slice(y, dim, 1, std::nullopt, 1), 1);
}

bool is_empty_along(const Tensor& y, int64_t dim) {
  return symbolic_size(y, dim) == 0;
}

Tensor zero_integral(const Tensor& y, int64_t dim) {
  DimVector sizes(y.sizes());
  sizes.erase(sizes.begin() + wrap_dim(dim, y.dim()));
  return ops::zeros(sizes, y.dtype(), std::nullopt, y.device(), std::nullopt);
}

}  // namespace

namespace {

void check_integrable(std::string_view op,
                      const Tensor& t,
                      std::string_view names) {
  TAEDA_CHECK(t.dtype() != kBool,
              op,
              ": received a bool input for ",
              names,
              ", but bool is not supported");
}

Scalar half_of(const Scalar& dx) {
  return dx.is_complex() ? Scalar(dx.to_complex() * complex<double>(0.5))
                         : Scalar(dx.to_double() / 2);
}

// Twice the areas between neighbours.
Tensor double_areas(std::string_view op,
                    const Tensor& y,
                    const Tensor& x,
                    int64_t dim) {
  check_integrable(op, y, "`x` or `y`");
  check_integrable(op, x, "`x` or `y`");
  int64_t along = wrap_dim(dim, y.dim());
  TAEDA_CHECK(x.dim() > 0 && (x.dim() > 1 || x.sizes()[0] == y.size(along)),
              op,
              ": There must be one `x` value for each sample point");
  Tensor at = x;
  if (x.dim() == 1) {
    DimVector line(y.sizes().size(), 1);
    line[static_cast<size_t>(along)] = x.sizes()[0];
    at = ops::reshape(x, line);
  }
  Tensor steps = ops::sub(ops::slice(at, dim, 1, std::nullopt, 1),
                          ops::slice(at, dim, 0, -1, 1),
                          1);
  return ops::mul(neighbours(y, along), steps);
}

}  // namespace

Tensor trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  if (is_empty_along(y, dim)) return zero_integral(y, dim);
  check_integrable("trapezoid", y, "`y`");
  Tensor sum = ops::sum(neighbours(y, dim), IntArrayRef({dim}));
  return ops::mul(sum, half_of(dx));
}

Tensor trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  if (is_empty_along(y, dim)) return zero_integral(y, dim);
  Tensor areas = double_areas("trapezoid", y, x, dim);
  return ops::mul(ops::sum(areas, IntArrayRef({dim})), Scalar(0.5));
}

Tensor cumulative_trapezoid(const Tensor& y, const Scalar& dx, int64_t dim) {
  check_integrable("cumulative_trapezoid", y, "`y`");
  return ops::mul(ops::cumsum(neighbours(y, dim), dim), half_of(dx));
}

Tensor cumulative_trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  Tensor areas = double_areas("cumulative_trapezoid", y, x, dim);
  return ops::mul(ops::cumsum(areas, dim), Scalar(0.5));
}

}  // namespace taeda::native
