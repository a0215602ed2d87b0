// What masked_scatter and its gradient mean: where each chosen element comes
// from is told by counting, so that no size depends on the mask.
#include <taeda/aten/core/tensor_base.h>
#include <taeda/gen/native/masked_scatter.h>
#include <taeda/gen/native/masked_scatter_backward.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/clone.h>
#include <taeda/gen/ops/cumsum.h>
#include <taeda/gen/ops/expand.h>
#include <taeda/gen/ops/index_add.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/logical_not.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/new_zeros.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/where.h>

namespace taeda::native {

namespace {

// Which element of source each element that the mask chooses takes; 0 for the
// others.
Tensor place_in_source(const Tensor& bits) {
  Tensor counted = ops::cumsum(bits, 0, std::nullopt);
  return ops::clamp_min(ops::sub(counted, Scalar(1)), Scalar(0));
}

}  // namespace

Tensor masked_scatter_means(const Tensor& self,
                            const Tensor& mask,
                            const Tensor& source) {
  DimVector shape =
      broadcast_shapes<int64_t>("masked_scatter", self.sizes(), mask.sizes());
  Tensor to = ops::expand(self, shape);
  if (source.numel() == 0) return ops::clone(to);
  int64_t row[] = {to.numel()}, all[] = {source.numel()};
  Tensor bits = ops::reshape(ops::expand(mask, shape), IntArrayRef(row));
  Tensor from = ops::reshape(source, IntArrayRef(all));
  Tensor taken = ops::index_select(from, 0, place_in_source(bits));
  return ops::where(ops::reshape(bits, shape), ops::reshape(taken, shape), to);
}

Tensor masked_scatter_backward_means(const Tensor& grad,
                                     const Tensor& mask,
                                     IntArrayRef sizes) {
  int64_t count = 1, row[] = {grad.numel()};
  for (int64_t s : sizes) count *= s;
  Tensor out = ops::new_zeros(grad, {count});
  if (count > 0) {
    Tensor wide = ops::expand(mask, grad.sizes());
    Tensor bits = ops::reshape(wide, IntArrayRef(row));
    Tensor moved =
        ops::masked_fill(grad, ops::logical_not(wide), Scalar(int64_t{0}));
    out = ops::index_add(out,
                         0,
                         place_in_source(bits),
                         ops::reshape(moved, IntArrayRef(row)),
                         Scalar(int64_t{1}));
  }
  return ops::reshape(out, sizes);
}

}  // namespace taeda::native
