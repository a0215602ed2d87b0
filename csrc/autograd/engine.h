// Runs a recorded graph backward. See Note [Engine].
#pragma once

#include <taeda/csrc/autograd/node.h>

#include <functional>
#include <vector>

namespace taeda::autograd {

struct BackwardOptions {
  bool keep_graph = false;
  bool create_graph = false;
  // Leaves add to their grad; false: only the captures are wanted.
  bool accumulate = true;
};

// Sends grads[i] into roots[i] and runs what is reachable. With `inputs`, only
// the nodes that lead to them run, and (unless accumulating) the gradients that
// arrive at them are returned, undefined where none does.
TAEDA_API std::vector<Tensor> run_backward(ArrayRef<Edge> roots,
                                           std::vector<Tensor> grads,
                                           ArrayRef<Edge> inputs,
                                           const BackwardOptions& options);

// Runs `callback` when the backward pass that is running on this thread ends.
TAEDA_API void queue_callback(std::function<void()> callback);
// Whether a backward pass is running on this thread.
TAEDA_API bool in_backward();
// Whether the running pass has a use for gradient i of `node`.
TAEDA_API bool task_should_compute(const Node& node, size_t i);
TAEDA_API bool task_should_compute(const Node& node, size_t from, size_t to);
// Whether the running pass will run `node` (GradientEdge-based hooks ask).
TAEDA_API bool task_will_run(const Node* node);
// Whether the running pass, and each one around it, goes all the way to the
// leaves: a backward() without `inputs`. Outside a pass it is true.
TAEDA_API bool task_is_full();
// Whether the running pass keeps the graph.
TAEDA_API bool task_keeps_graph();
// Identifies the running pass; 0 outside.
TAEDA_API uint64_t current_task_id();
// The node that is running on this thread; null outside.
TAEDA_API Node* current_node();

// Set by the bindings. The first is called before each node and throws to end
// the pass; the second runs f on a new thread and rethrows what it throws.
extern TAEDA_API void (*check_interrupt)();
extern TAEDA_API void (*run_on_new_thread)(const std::function<void()>& f);

}  // namespace taeda::autograd
