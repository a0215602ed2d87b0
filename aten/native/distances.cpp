// Distances between vectors of two tensors, and the loss of triplets.
#include <taeda/aten/core/promotion.h>
#include <taeda/gen/native/cosine_similarity.h>
#include <taeda/gen/native/pairwise_distance.h>
#include <taeda/gen/native/triplet_margin_loss.h>
#include <taeda/gen/ops/add.h>
#include <taeda/gen/ops/broadcast_tensors.h>
#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/linalg_vector_norm.h>
#include <taeda/gen/ops/mean.h>
#include <taeda/gen/ops/minimum.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/norm.h>
#include <taeda/gen/ops/pairwise_distance.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/to.h>

#include <algorithm>

namespace taeda::native {

namespace {
const Scalar kOne = int64_t{1};
}  // namespace

Tensor pairwise_distance(
    const Tensor& x1, const Tensor& x2, double p, double eps, bool keepdim) {
  int64_t last = std::max(x1.dim(), x2.dim()) - 1;
  Tensor apart = ops::add(ops::sub(x1, x2, kOne), Scalar(eps), kOne);
  return ops::norm(apart, Scalar(p), IntArrayRef{last}, keepdim);
}

// Of what both are when broadcast: the norm counts an element as often.
Tensor cosine_similarity(const Tensor& x1,
                         const Tensor& x2,
                         int64_t dim,
                         double eps) {
  ScalarType type = result_type(x1, x2);
  TAEDA_CHECK(
      is_floating(type) || is_complex(type),
      "expected common dtype to be floating point, yet common dtype is ",
      type);
  TAEDA_CHECK(
      eps >= 0, "cosine_similarity: eps must be non-negative, got: ", eps);
  auto floating = [&](const Tensor& t) {
    return is_integral(t.dtype(), true) ? ops::to(t, type) : t;
  };
  std::vector<Tensor> both =
      ops::broadcast_tensors({floating(x1), floating(x2)});
  auto unit = [&](const Tensor& t) {
    Tensor norm = ops::linalg_vector_norm(
        t, Scalar(int64_t{2}), IntArrayRef{dim}, true, std::nullopt);
    // The limit takes no part in the derivative: small norms keep theirs.
    Tensor limited;
    {
      GradModeGuard off(false);
      limited = ops::clamp_min(norm, Scalar(eps));
      limited = ops::sub(limited, norm, kOne);
    }
    return ops::div(t, ops::add(norm, limited, kOne));
  };
  Tensor products = ops::mul(unit(both[0]), unit(both[1]));
  return ops::sum(products, IntArrayRef{dim}, false);
}

Tensor triplet_margin_loss(const Tensor& anchor,
                           const Tensor& positive,
                           const Tensor& negative,
                           double margin,
                           double p,
                           double eps,
                           bool swap,
                           int64_t reduction) {
  TAEDA_CHECK(
      anchor.dim() == positive.dim() && positive.dim() == negative.dim(),
      "The anchor, positive, and negative tensors are expected to have "
      "the same number of dimensions, but got: anchor ",
      anchor.dim(),
      "D, positive ",
      positive.dim(),
      "D, and negative ",
      negative.dim(),
      "D inputs");
  Tensor near = ops::pairwise_distance(anchor, positive, p, eps, false);
  Tensor far = ops::pairwise_distance(anchor, negative, p, eps, false);
  if (swap) {
    far = ops::minimum(
        far, ops::pairwise_distance(positive, negative, p, eps, false));
  }
  Tensor loss =
      ops::clamp_min(ops::add(ops::sub(near, far, kOne), Scalar(margin), kOne),
                     Scalar(int64_t{0}));
  if (reduction == 1) return ops::mean(loss);
  return reduction == 2 ? ops::sum(loss) : loss;
}

}  // namespace taeda::native
