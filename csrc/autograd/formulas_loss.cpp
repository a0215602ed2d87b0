#include <taeda/csrc/autograd/formulas_loss.h>

#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/sym/_embedding_bag_dense_backward.h>
#include <taeda/gen/sym/embedding.h>
#include <taeda/gen/sym/embedding_dense_backward.h>
#include <taeda/gen/sym/nll_loss2d_forward.h>
#include <taeda/gen/sym/nll_loss_forward.h>
#include <taeda/gen/sym/reshape.h>

namespace taeda::autograd {

// The gradient is linear in the gradient of the loss: its transpose is the loss
// of `grad` as if those were the log probabilities.
Tensor nll_double_backward(const Tensor& grad,
                           const Tensor& self,
                           const Tensor& target,
                           const Tensor& weight,
                           int64_t reduction,
                           const SymInt& ignore_index,
                           const Tensor& total_weight) {
  (void)total_weight;
  auto found = self.dim() == 4
                   ? sym::nll_loss2d_forward(
                         grad, target, given(weight), reduction, ignore_index)
                   : sym::nll_loss_forward(
                         grad, target, given(weight), reduction, ignore_index);
  return std::get<0>(found);
}

Tensor embedding_gradient(const Tensor& grad,
                          const Tensor& indices,
                          SymIntArrayRef sizes,
                          const SymInt& padding_idx,
                          bool scale_grad_by_freq,
                          bool sparse) {
  TAEDA_CHECK_AS(NotImplemented,
                 !sparse,
                 "embedding: sparse gradients are not implemented yet");
  return sym::embedding_dense_backward(
      grad, indices, sizes[0], padding_idx, scale_grad_by_freq);
}

Tensor embedding_bag_gradient(const Tensor& grad,
                              const Tensor& indices,
                              const Tensor& offset2bag,
                              const Tensor& bag_size,
                              const Tensor& maximum_indices,
                              SymIntArrayRef sizes,
                              bool scale_grad_by_freq,
                              int64_t mode,
                              bool sparse,
                              const Tensor& per_sample_weights,
                              int64_t padding_idx) {
  TAEDA_CHECK_AS(NotImplemented,
                 !sparse,
                 "embedding_bag: sparse gradients are not implemented yet");
  return sym::_embedding_bag_dense_backward(grad,
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
                                 const SymInt& padding_idx) {
  Tensor rows = sym::embedding(grad, indices, padding_idx, false, false);
  if (padding_idx < 0) return rows;
  Dims<SymInt> column(symbolic_sizes(indices));
  column.push_back(1);
  Tensor padded =
      ops::eq(sym::reshape(indices, column), Scalar(padding_idx.guard()));
  return ops::masked_fill(rows, padded, Scalar(int64_t{0}));
}

}  // namespace taeda::autograd
