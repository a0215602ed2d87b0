// backward() and grad(): what users of the C++ library and the bindings call.
#pragma once

#include <taeda/csrc/autograd/engine.h>
#include <taeda/csrc/autograd/variable.h>

namespace taeda::autograd {

// Where a pass starts: the gradient of something with respect to `edge`.
struct Root {
  Edge edge;
  Tensor grad;
};

// A root for a tensor. Without a gradient the tensor must have one element, and
// 1 is taken. The gradient must have the tensor's shape.
TAEDA_API Root root_of(const Tensor& t, const Tensor& grad, size_t index);
// Of an output that no tensor stands for; without a gradient it is a single
// real number.
TAEDA_API Root root_of(Edge edge, Tensor grad, size_t index);

// Adds to the grad of the leaves (of `inputs` alone, if given).
TAEDA_API void backward(TensorList tensors,
                        TensorList grads = {},
                        bool keep_graph = false,
                        bool create_graph = false,
                        TensorList inputs = {});

// The gradients of the outputs' sum with respect to each input; undefined for
// an unused one where that is allowed.
TAEDA_API std::vector<Tensor> grad(TensorList outputs,
                                   TensorList inputs,
                                   TensorList grad_outputs = {},
                                   bool keep_graph = false,
                                   bool create_graph = false,
                                   bool allow_unused = false);

// The edge whose gradient is asked for with respect to `input`.
TAEDA_API Edge input_edge(const Tensor& input);
[[noreturn]] TAEDA_API void unused_input(size_t index);

}  // namespace taeda::autograd
