// Weight normalization: a weight split into its length and its direction.
#include <taeda/c10/util/check.h>
#include <taeda/gen/native/_weight_norm.h>
#include <taeda/gen/native/norm_except_dim.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/norm.h>
#include <taeda/gen/ops/norm_except_dim.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/transpose.h>

namespace taeda::native {

Tensor norm_except_dim(const Tensor& v, int64_t pow, int64_t dim) {
  if (dim == -1) return ops::norm(v, Scalar(pow));
  TAEDA_CHECK_AS(Index,
                 dim >= 0 && dim < v.dim(),
                 "norm_except_dim: dim must be -1 or in [0, ",
                 v.dim(),
                 "), got ",
                 dim);
  int64_t kept = v.sizes()[dim], others = 1;
  DimVector shape(static_cast<size_t>(v.dim()), 1);
  shape[dim] = kept;
  for (int64_t d = 0; d < v.dim(); ++d) {
    if (d != dim) others *= v.sizes()[d];
  }
  Tensor rows = ops::reshape(ops::transpose(v, 0, dim), {kept, others});
  return ops::reshape(ops::norm(rows, Scalar(pow), {1}, false), shape);
}

Tensor _weight_norm(const Tensor& v, const Tensor& g, int64_t dim) {
  return ops::mul(v, ops::div(g, ops::norm_except_dim(v, 2, dim)));
}

}  // namespace taeda::native
