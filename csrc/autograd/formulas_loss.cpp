#include <taeda/csrc/autograd/formulas_loss.h>

#include <taeda/gen/ops/_embedding_bag_dense_backward.h>
#include <taeda/gen/ops/embedding.h>
#include <taeda/gen/ops/embedding_dense_backward.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/nll_loss2d_backward.h>
#include <taeda/gen/ops/nll_loss2d_forward.h>
#include <taeda/gen/ops/nll_loss_backward.h>
#include <taeda/gen/ops/nll_loss_forward.h>
#include <taeda/gen/ops/reshape.h>
#include <taeda/gen/ops/sum.h>

namespace taeda::autograd {

// The gradient is linear in the gradient of the loss: its transpose is the loss
// of `grad` as if those were the log probabilities.
Tensor nll_double_backward(const Tensor& grad,
                           const Tensor& self,
                           const Tensor& target,
                           const Tensor& weight,
                           int64_t reduction,
                           int64_t ignore_index,
                           const Tensor& total_weight) {
  (void)total_weight;
  auto found = self.dim() == 4
                   ? ops::nll_loss2d_forward(
                         grad, target, given(weight), reduction, ignore_index)
                   : ops::nll_loss_forward(
                         grad, target, given(weight), reduction, ignore_index);
  return std::get<0>(found);
}

Tensor embedding_gradient(const Tensor& grad,
                          const Tensor& indices,
                          IntArrayRef sizes,
                          int64_t padding_idx,
                          bool scale_grad_by_freq,
                          bool sparse) {
  TAEDA_CHECK_AS(NotImplemented,
                 !sparse,
                 "embedding: sparse gradients are not implemented yet");
  return ops::embedding_dense_backward(
      grad, indices, sizes[0], padding_idx, scale_grad_by_freq);
}

Tensor embedding_bag_gradient(const Tensor& grad,
                              const Tensor& indices,
                              const Tensor& offset2bag,
                              const Tensor& bag_size,
                              const Tensor& maximum_indices,
                              IntArrayRef sizes,
                              bool scale_grad_by_freq,
                              int64_t mode,
                              bool sparse,
                              const Tensor& per_sample_weights,
                              int64_t padding_idx) {
  TAEDA_CHECK_AS(NotImplemented,
                 !sparse,
                 "embedding_bag: sparse gradients are not implemented yet");
  return ops::_embedding_bag_dense_backward(grad,
                                            indices,
                                            offset2bag,
                                            bag_size,
                                            maximum_indices,
                                            sizes[0],
                                            scale_grad_by_freq,
                                            mode,
                                            given(per_sample_weights),
                                            padding_idx);
}

Tensor embedding_double_backward(const Tensor& grad,
                                 const Tensor& indices,
                                 int64_t padding_idx) {
  Tensor rows = ops::embedding(grad, indices, padding_idx, false, false);
  if (padding_idx < 0) return rows;
  DimVector column(indices.sizes());
  column.push_back(1);
  Tensor padded = ops::eq(ops::reshape(indices, column), Scalar(padding_idx));
  return ops::masked_fill(rows, padded, Scalar(int64_t{0}));
}

}  // namespace taeda::autograd
