// Losses of class numbers by other operators: what they are differentiated and
// mapped by.
#include <taeda/aten/native/loss_reduction.h>
#include <taeda/gen/native/_cross_entropy_rows.h>
#include <taeda/gen/native/_cross_entropy_rows_backward.h>
#include <taeda/gen/native/nll_loss_backward.h>
#include <taeda/gen/native/nll_loss_forward.h>
#include <taeda/gen/ops/_to_copy.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/exp.h>
#include <taeda/gen/ops/expand_as.h>
#include <taeda/gen/ops/gather.h>
#include <taeda/gen/ops/log_softmax.h>
#include <taeda/gen/ops/logsumexp.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/neg.h>
#include <taeda/gen/ops/nll_loss_backward.h>
#include <taeda/gen/ops/nll_loss_forward.h>
#include <taeda/gen/ops/ones_like.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/scatter.h>
#include <taeda/gen/ops/squeeze.h>
#include <taeda/gen/ops/sub.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/unsqueeze.h>
#include <taeda/gen/ops/zeros_like.h>

namespace taeda::native {

namespace {

// For each target, where its class stands in dim `dim` of the scores, and its
// weight: 0 where the target is ignored.
struct Chosen {
  int64_t dim;
  Tensor places, weights;
  Chosen(const Tensor& scores,
         const Tensor& target,
         const OptionalTensor& weight,
         int64_t ignore_index)
      : dim(scores.dim() == 1 ? 0 : 1) {
    Tensor ignored = ops::eq(target, Scalar(ignore_index));
    Tensor safe = ops::masked_fill(target, ignored, Scalar(0));
    places = ops::unsqueeze(safe, dim);
    Tensor of_class = ops::ones_like(scores);
    if (weight) {
      DimVector shape(static_cast<size_t>(scores.dim()), 1);
      shape[static_cast<size_t>(dim)] = -1;
      of_class = ops::expand_as(ops::reshape(*weight, shape), scores);
    }
    weights = ops::masked_fill(pick(of_class), ignored, Scalar(0));
  }
  Tensor pick(const Tensor& of_class) const {
    return ops::squeeze(ops::gather(of_class, dim, places), dim);
  }
};

}  // namespace

std::tuple<Tensor, Tensor> nll_loss_forward_means(const Tensor& self,
                                                  const Tensor& target,
                                                  const OptionalTensor& weight,
                                                  int64_t reduction,
                                                  int64_t ignore_index) {
  Chosen chosen(self, target, weight, ignore_index);
  Tensor losses = ops::neg(ops::mul(chosen.weights, chosen.pick(self)));
  Tensor total = ops::sum(chosen.weights);
  if (reduction == kNoReduction) return {losses, ops::zeros_like(total)};
  Tensor loss = ops::sum(losses);
  if (reduction == kMeanReduction) loss = ops::div(loss, total);
  return {loss, total};
}

Tensor nll_loss_backward_means(const Tensor& grad,
                               const Tensor& self,
                               const Tensor& target,
                               const OptionalTensor& weight,
                               int64_t reduction,
                               int64_t ignore_index,
                               const Tensor&) {
  Chosen chosen(self, target, weight, ignore_index);
  Tensor g = grad;
  if (reduction == kMeanReduction) g = ops::div(g, ops::sum(chosen.weights));
  Tensor slopes = ops::neg(ops::mul(chosen.weights, g));
  return ops::scatter(ops::zeros_like(self),
                      chosen.dim,
                      chosen.places,
                      ops::unsqueeze(slopes, chosen.dim));
}

std::tuple<Tensor, Tensor, Tensor> cross_entropy_rows_means(
    const Tensor& self,
    const Tensor& target,
    const OptionalTensor& weight,
    int64_t reduction,
    int64_t ignore_index) {
  Tensor logs = ops::log_softmax(self, 1, self.dtype());
  auto [loss, total] =
      ops::nll_loss_forward(logs, target, weight, reduction, ignore_index);
  return {loss, ops::logsumexp(self, IntArrayRef{1}, false), total};
}

// Through log_softmax, whose derivative can be differentiated again.
Tensor cross_entropy_rows_backward_means(const Tensor& grad,
                                         const Tensor& self,
                                         const Tensor& target,
                                         const OptionalTensor& weight,
                                         int64_t reduction,
                                         int64_t ignore_index,
                                         const Tensor&,
                                         const Tensor& total_weight) {
  Tensor logs = ops::log_softmax(self, 1, self.dtype());
  Tensor total = total_weight;
  if (total.dtype() != self.dtype()) total = ops::_to_copy(total, self.dtype());
  Tensor inner = ops::nll_loss_backward(
      grad, logs, target, weight, reduction, ignore_index, total);
  Tensor sums = ops::sum(inner, IntArrayRef{1}, true);
  return ops::sub(inner, ops::mul(ops::exp(logs), sums));
}

}  // namespace taeda::native
