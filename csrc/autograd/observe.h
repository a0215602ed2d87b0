// Watching the nodes of backward passes, on all threads.
#pragma once

#include <taeda/csrc/autograd/node.h>

#include <atomic>

namespace taeda::autograd {

// Lives for ever, as those of aten/core/observe.h.
class TAEDA_API NodeObserver {
 public:
  virtual ~NodeObserver() = default;
  // Around all that a pass does for a node: its hooks, the node, and adding its
  // results to what has arrived for other nodes.
  virtual uint64_t evaluates(const Node& node) = 0;
  virtual void evaluated(uint64_t token) noexcept = 0;
  // Around the node with its own hooks. `outputs` is null where it has thrown;
  // else the observer may throw.
  virtual uint64_t applies(const Node& node, const Tensors& grads) = 0;
  virtual void applied(const Node& node,
                       uint64_t token,
                       const Tensors* outputs) = 0;
};
extern TAEDA_API std::atomic<NodeObserver*> node_observer;

}  // namespace taeda::autograd
