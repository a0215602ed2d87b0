// In-place changes of tensors with history, and of views. See Note [Views].
#pragma once

#include <taeda/csrc/autograd/variable.h>

namespace taeda::autograd {

// Where the elements of a strided tensor lie in its storage.
struct TensorGeometry {
  DimVector sizes;
  DimVector strides;
  int64_t storage_offset = 0;
  TensorGeometry() = default;
  explicit TensorGeometry(const Tensor& t)
      : sizes(t.sizes()),
        strides(t.strides()),
        storage_offset(t.storage_offset()) {}
};

// Whether `self` may be changed by an operation that is recorded; RuntimeError
// where it may not.
TAEDA_API void check_inplace(const Tensor& self, bool recorded);

// After an in-place operation that `node` was recorded for: makes self (and the
// tensor it is a view of) an output of it. next_edge(0) must be self's.
TAEDA_API void rebase_history(const Tensor& self,
                              const IntrusivePtr<Node>& node);

// The grad_fn of a view, made anew from its base where an in-place change has
// outdated it.
TAEDA_API IntrusivePtr<Node> view_grad_fn(const Tensor& view);

// Marks the results of a call that returns several views of one tensor.
TAEDA_API void mark_multi_output_views(const std::vector<Tensor>& views);

}  // namespace taeda::autograd
