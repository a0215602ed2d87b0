// Norms of matrices.
#include <taeda/aten/native/linalg/matrices.h>
#include <taeda/gen/native/linalg_matrix_norm.h>
#include <taeda/gen/native/linalg_norm.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/abs.h>
#include <taeda/gen/ops/amax.h>
#include <taeda/gen/ops/amin.h>
#include <taeda/gen/ops/linalg_matrix_norm.h>
#include <taeda/gen/ops/linalg_svdvals.h>
#include <taeda/gen/ops/linalg_vector_norm.h>
#include <taeda/gen/ops/movedim.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>

#include <cmath>

namespace taeda::native {

namespace {

constexpr std::string_view kNorm = "linalg.matrix_norm";
using Dims = std::optional<IntArrayRef>;

struct Pair {
  int64_t rows, columns;
};

Pair matrix_dims(const Tensor& a, IntArrayRef dim) {
  TAEDA_CHECK(a.dim() >= 2,
              kNorm,
              ": The input tensor A must have at least 2 dimensions.");
  TAEDA_CHECK(a.is_floating_point() || a.is_complex(),
              kNorm,
              ": Expected a floating point or complex tensor as input. Got ",
              a.dtype());
  TAEDA_CHECK(dim.size() == 2, kNorm, ": dim must be a 2-tuple. Got ", dim);
  Pair p{wrap_dim(dim[0], a.dim()), wrap_dim(dim[1], a.dim())};
  TAEDA_CHECK(
      p.rows != p.columns, kNorm, ": dims must be different. Got ", dim);
  return p;
}

Tensor in_dtype(const Tensor& a, std::optional<ScalarType> dtype) {
  return dtype && *dtype != a.dtype() ? ops::_to_copy(a, *dtype) : a;
}

// Sets sizes of 1 where the two reduced dims were.
Tensor kept(Tensor norm, Pair p, bool keepdim) {
  if (!keepdim) return norm;
  norm = ops::unsqueeze(norm, std::min(p.rows, p.columns));
  return ops::unsqueeze(norm, std::max(p.rows, p.columns));
}

Tensor singular_values(const Tensor& a, Pair p) {
  return ops::linalg_svdvals(ops::movedim(a, {p.rows, p.columns}, {-2, -1}),
                             std::nullopt);
}

// The largest of no norms is 0, the smallest an error.
Tensor extreme(const Tensor& t, int64_t dim, bool keepdim, bool largest) {
  int64_t dims[] = {dim};
  if (!largest) return ops::amin(t, IntArrayRef(dims), keepdim);
  if (t.size(dim) > 0) return ops::amax(t, IntArrayRef(dims), keepdim);
  return ops::sum(t, IntArrayRef(dims), keepdim);
}

// The largest or smallest sum of magnitudes along `along`.
Tensor extreme_sum(const Tensor& a,
                   int64_t along,
                   int64_t other,
                   bool largest) {
  int64_t dims[] = {along};
  Tensor sums = ops::sum(ops::abs(a), IntArrayRef(dims), /*keepdim=*/true);
  return extreme(sums, other, /*keepdim=*/true, largest);
}

}  // namespace

Tensor linalg_matrix_norm(const Tensor& self,
                          const Scalar& ord,
                          IntArrayRef dim,
                          bool keepdim,
                          std::optional<ScalarType> dtype) {
  Pair p = matrix_dims(self, dim);
  TAEDA_CHECK(!ord.is_complex(),
              kNorm,
              ": Expected a non-complex scalar as the order of norm, got ",
              ord);
  double order = ord.to<double>();
  double size = std::abs(order);
  TAEDA_CHECK(size == 1 || size == 2 || std::isinf(order),
              kNorm,
              ": Order ",
              order,
              " not supported.");
  Tensor a = in_dtype(self, dtype);
  bool largest = order > 0;
  if (size == 2) {
    Tensor s = singular_values(a, p);
    return kept(extreme(s, -1, /*keepdim=*/false, largest), p, keepdim);
  }
  bool by_columns = size == 1;
  Tensor out = extreme_sum(a,
                           by_columns ? p.rows : p.columns,
                           by_columns ? p.columns : p.rows,
                           largest);
  if (keepdim) return out;
  DimVector sizes;
  for (int64_t d = 0; d < out.dim(); ++d) {
    if (d != p.rows && d != p.columns) sizes.push_back(out.size(d));
  }
  return ops::reshape(out, sizes);
}

Tensor linalg_matrix_norm(const Tensor& self,
                          std::string_view ord,
                          IntArrayRef dim,
                          bool keepdim,
                          std::optional<ScalarType> dtype) {
  Pair p = matrix_dims(self, dim);
  TAEDA_CHECK(
      ord == "fro" || ord == "nuc", kNorm, ": Order ", ord, " not supported.");
  if (ord == "fro") {
    int64_t dims[] = {p.rows, p.columns};
    return ops::linalg_vector_norm(
        self, Scalar(2), IntArrayRef(dims), keepdim, dtype);
  }
  Tensor s = singular_values(in_dtype(self, dtype), p);
  int64_t last[] = {-1};
  return kept(ops::sum(s, IntArrayRef(last)), p, keepdim);
}

namespace {

bool is_matrix_norm(const Tensor& a, Dims dim) {
  size_t count = dim ? dim->size() : static_cast<size_t>(a.dim());
  TAEDA_CHECK(count == 1 || count == 2,
              "linalg.norm: If dim is not specified but ord is, the input must "
              "be 1D or 2D; with dim, it must be one or two dims. Got ",
              a.dim(),
              "D");
  return count == 2;
}

}  // namespace

Tensor linalg_norm(const Tensor& self,
                   const std::optional<Scalar>& ord,
                   Dims dim,
                   bool keepdim,
                   std::optional<ScalarType> dtype) {
  if (!ord || !is_matrix_norm(self, dim)) {
    return ops::linalg_vector_norm(
        self, ord.value_or(Scalar(2)), dim, keepdim, dtype);
  }
  int64_t all[] = {0, 1};
  return ops::linalg_matrix_norm(
      self, *ord, dim.value_or(IntArrayRef(all)), keepdim, dtype);
}

Tensor linalg_norm(const Tensor& self,
                   std::string_view ord,
                   Dims dim,
                   bool keepdim,
                   std::optional<ScalarType> dtype) {
  int64_t all[] = {0, 1};
  TAEDA_CHECK(dim || self.dim() == 2,
              "linalg.norm: order ",
              ord,
              " needs a matrix or two dims, got ",
              self.sizes());
  return ops::linalg_matrix_norm(
      self, ord, dim.value_or(IntArrayRef(all)), keepdim, dtype);
}

}  // namespace taeda::native
