// Checks that gradients fit the tensors they are for, and makes them fit where
// that is meant: broadcast dims are summed, dtypes converted.
#pragma once

#include <taeda/csrc/autograd/node.h>

namespace taeda::autograd {

// What `node` returned, against the outputs that its edges lead to. Checks for
// NaN in anomaly mode.
TAEDA_API void validate_grads(const Node& node, Tensors& grads);

// One gradient for an output; `what` names it in errors.
TAEDA_API void fit_grad(const OutputInfo& info,
                        Tensor& grad,
                        const std::string& what);

}  // namespace taeda::autograd
