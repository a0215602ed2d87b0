// Kernels that go before an operator's own where they apply.
#pragma once

#include <taeda/aten/core/dispatcher.h>

#include <vector>

namespace taeda::cuda {

// Computes from the operator's arguments into its planned results; false where
// it does not apply.
using QuickKernel = bool (*)(const IValue* values,
                             const std::vector<TensorBase>& results);

// Where tensors lie as most do.
bool index_select_quick(const IValue* values,
                        const std::vector<TensorBase>& results);
bool embedding_quick(const IValue* values,
                     const std::vector<TensorBase>& results);
bool gather_quick(const IValue* values, const std::vector<TensorBase>& results);

// Note [Convolutions by cuDNN]
bool convolution_by_cudnn(const IValue* values,
                          const std::vector<TensorBase>& results);
bool convolution_backward_by_cudnn(const IValue* values,
                                   const std::vector<TensorBase>& results);

// Note [Attention on a device]
bool attention(const IValue* values, const std::vector<TensorBase>& results);
bool attention_backward(const IValue* values,
                        const std::vector<TensorBase>& results);
bool attention_of_sequences(const IValue* values,
                            const std::vector<TensorBase>& results);
bool attention_of_sequences_backward(const IValue* values,
                                     const std::vector<TensorBase>& results);

}  // namespace taeda::cuda
