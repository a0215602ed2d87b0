#include <taeda/csrc/autograd/formulas_loss.h>

#include <taeda/gen/ops/clamp_min.h>
#include <taeda/gen/ops/div.h>
#include <taeda/gen/ops/embedding_sparse_backward.h>
#include <taeda/gen/ops/eq.h>
#include <taeda/gen/ops/index_select.h>
#include <taeda/gen/ops/masked_fill.h>
#include <taeda/gen/ops/mul.h>
#include <taeda/gen/ops/sum.h>
#include <taeda/gen/ops/to.h>
#include <taeda/gen/ops/unsqueeze.h>
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
  if (sparse) {
    return ops::embedding_sparse_backward(grad,
                                          indices,
                                          sizes[0].guard(),
                                          padding_idx.guard(),
                                          scale_grad_by_freq);
  }
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
  if (sparse) {
    TAEDA_CHECK(mode == 0 || mode == 1,
                "embedding_bag: sparse gradients of mode 'max' do not exist");
    // Each row gets what its bag gets, with its own weight.
    Tensor rows = ops::index_select(grad, 0, offset2bag);
    if (mode == 1) {
      Tensor count = ops::clamp_min(bag_size, Scalar(1));
      count = ops::index_select(ops::to(count, grad.dtype()), 0, offset2bag);
      rows = ops::div(rows, ops::unsqueeze(count, 1));
    }
    if (per_sample_weights.defined()) {
      rows = ops::mul(rows, ops::unsqueeze(per_sample_weights, 1));
    }
    return ops::embedding_sparse_backward(
        rows, indices, sizes[0].guard(), padding_idx, scale_grad_by_freq);
  }
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
