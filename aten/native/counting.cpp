// searchsorted, bucketize, histc, bincount: shapes.
#include <taeda/aten/core/dtype_rule.h>
#include <taeda/aten/core/promotion.h>
#include <taeda/aten/native/counting.h>
#include <taeda/aten/native/dim_rules.h>
#include <taeda/gen/native/bucketize.h>
#include <taeda/gen/native/histc.h>
#include <taeda/gen/native/searchsorted.h>
#include <taeda/gen/ops/bucketize.h>
#include <taeda/gen/ops/scalar_tensor.h>
#include <taeda/gen/ops/searchsorted.h>

namespace taeda::native {

bool is_right(bool right, Side side) {
  if (!side) return right;
  TAEDA_CHECK(*side == "left" || *side == "right",
              "torch.searchsorted(): side can only be 'left' or 'right' but "
              "got ",
              *side);
  TAEDA_CHECK(*side == "right" || !right,
              "torch.searchsorted(): side and right can't be set to opposites, "
              "got side of left while right was True");
  return *side == "right";
}

namespace {

template <class I>
void plan_search(const Spec<I>& sequence,
                 const Spec<I>& self,
                 bool out_int32,
                 const Spec<I>& sorter,
                 Plan<I>& plan) {
  TAEDA_CHECK(sequence.dim() > 0,
              "torch.searchsorted(): boundaries tensor should have positive "
              "dimension, but got 0 dimension");
  bool fits = sequence.dim() == 1 || self.dim() == sequence.dim();
  for (int64_t d = 0; fits && sequence.dim() > 1 && d + 1 < self.dim(); ++d) {
    fits = self.sizes()[d] == sequence.sizes()[d];
  }
  TAEDA_CHECK(
      fits,
      "torch.searchsorted(): boundaries tensor should be 1 dimension or "
      "the first N-1 dimensions of boundaries tensor and input value "
      "tensor must match, but we got boundaries tensor ",
      sequence.sizes(),
      " and input value tensor ",
      self.sizes());
  plan.set(0, self.sizes(), out_int32 ? kInt : kLong);
  if (!sorter.defined()) return;
  TAEDA_CHECK(sorter.sizes() == sequence.sizes(),
              "torch.searchsorted(): boundary and sorter must have the same "
              "size, but got boundary tensor ",
              sequence.sizes(),
              " and got sorter tensor ",
              sorter.sizes());
  TAEDA_CHECK(sorter.dtype() == kLong,
              "torch.searchsorted(): sorter must be a tensor of long dtype but "
              "got dtype ",
              sorter.dtype());
}

// A number keeps its kind: 1.5 lies between the integers 1 and 2.
Tensor number(const Scalar& s, const Tensor& like) {
  ScalarType type = s.is_integral() ? kLong : result_type(like, s);
  return ops::scalar_tensor(s, type, {}, like.device(), {});
}

}  // namespace

template <class I>
void searchsorted_shape(const Spec<I>& sorted_sequence,
                        const Spec<I>& self,
                        bool out_int32,
                        bool right,
                        Side side,
                        const Spec<I>& sorter,
                        Plan<I>& plan) {
  is_right(right, side);
  plan_search(sorted_sequence, self, out_int32, sorter, plan);
}
TAEDA_SHAPE(searchsorted_shape);
Tensor searchsorted(const Tensor& sorted_sequence,
                    const Scalar& self,
                    bool out_int32,
                    bool right,
                    Side side,
                    const OptionalTensor& sorter) {
  Tensor value = number(self, sorted_sequence);
  return ops::searchsorted(
      sorted_sequence, value, out_int32, right, side, sorter);
}

template <class I>
void bucketize_shape(const Spec<I>& self,
                     const Spec<I>& boundaries,
                     bool out_int32,
                     bool,
                     Plan<I>& plan) {
  TAEDA_CHECK(boundaries.dim() == 1,
              "bucketize: boundaries tensor must be 1 dimension, but got dim(",
              boundaries.dim(),
              ")");
  plan_search(boundaries, self, out_int32, Spec<I>(), plan);
}
TAEDA_SHAPE(bucketize_shape);
Tensor bucketize(const Scalar& self,
                 const Tensor& boundaries,
                 bool out_int32,
                 bool right) {
  return ops::bucketize(number(self, boundaries), boundaries, out_int32, right);
}

template <class I>
void histc_shape(const Spec<I>& self,
                 int64_t bins,
                 const Scalar& min,
                 const Scalar& max,
                 Plan<I>& plan) {
  TAEDA_CHECK(bins > 0, "torch.histc(): bins must be > 0, but got ", bins);
  double low = min.to<double>(), high = max.to<double>();
  settle_histc_range(self.dtype(), low, high);
  if (!self.is_floating_point()) not_implemented_for("histc", self.dtype());
  plan.set(0, {I(bins)}, self.dtype());
}
TAEDA_SHAPE(histc_shape);

}  // namespace taeda::native
