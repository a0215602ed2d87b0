// Derivatives of losses over classes, and of embeddings.
#pragma once

#include <taeda/csrc/autograd/formulas.h>

namespace taeda::autograd {

// An optional argument as operators take it.
inline OptionalTensor given(const Tensor& t) {
  return t.defined() ? OptionalTensor(t) : std::nullopt;
}

TAEDA_API Tensor nll_double_backward(const Tensor& grad,
                                     const Tensor& self,
                                     const Tensor& target,
                                     const Tensor& weight,
                                     int64_t reduction,
                                     const SymInt& ignore_index,
                                     const Tensor& total_weight);
TAEDA_API Tensor embedding_gradient(const Tensor& grad,
                                    const Tensor& indices,
                                    SymIntArrayRef sizes,
                                    const SymInt& padding_idx,
                                    bool scale_grad_by_freq,
                                    bool sparse);
TAEDA_API Tensor embedding_bag_gradient(const Tensor& grad,
                                        const Tensor& indices,
                                        const Tensor& offset2bag,
                                        const Tensor& bag_size,
                                        const Tensor& maximum_indices,
                                        SymIntArrayRef sizes,
                                        bool scale_grad_by_freq,
                                        int64_t mode,
                                        bool sparse,
                                        const Tensor& per_sample_weights,
                                        int64_t padding_idx);
TAEDA_API Tensor embedding_double_backward(const Tensor& grad,
                                           const Tensor& indices,
                                           const SymInt& padding_idx);

}  // namespace taeda::autograd
