// Backward passes inside of a program: what they leave at its inputs.
//
// Note [Passes inside]
// A program may call `backward()` itself. While it is traced, the pass is the
// engine's over the wrappers, as any other, and its calls are the graph's; a
// node of ours collects at each leaf what a leaf's own would add to its grad.
// The grads that inputs have beforehand are further inputs, and those that they
// have in the end further results, which the caller hands to the inputs. So the
// graph holds for inputs that have a grad where those had one, and no hooks.
// What such a pass has released cannot be passed again: results that led there
// raise what they raised in the trace.
#pragma once

#include <taeda/csrc/autograd/node.h>

#include <span>
#include <vector>

namespace taeda::compiler {

// The node at which gradients of a leaf of the trace arrive, for whoever asks
// for its accumulator while the node is held.
IntrusivePtr<autograd::Node> collect_at(const TensorBase& leaf);

// A result of a graph whose pass has been made.
IntrusivePtr<autograd::Node> released_node(std::string message);

// The inputs, then the grads of leaves among them that have one, in order;
// `which` gets their leaves.
std::vector<TensorBase> with_grads(std::span<const TensorBase> inputs,
                                   std::vector<size_t>& which);

}  // namespace taeda::compiler
