// Runs a recorded graph backward. See Note [Engine].
#pragma once

#include <taeda/csrc/autograd/node.h>

#include <exception>
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

// Note [Passes that are taken over]
// A thread may have a runner, which gets its passes in place of the engine: the
// calls in the order in which the engine would make them. Callbacks and
// captured results are the pass's as ever, and what the runner calls inside
// finds the pass (`current_node`, `task_will_run`). Passes that begin inside of
// one are the engine's unless the runner says otherwise.
struct PassCall {
  struct Captured {
    uint32_t input_nr;
    size_t result;
  };
  Node* node = nullptr;
  bool needed = true;  // false: only captured
  SmallVector<Captured, 1> captured;
};
class TAEDA_API PassView {
 public:
  virtual ~PassView() = default;
  std::vector<PassCall> calls;
  std::vector<Edge> roots;
  std::vector<Tensor> grads;                             // of the roots
  virtual int32_t place_of(const Node* node) const = 0;  // -1: not called
  virtual const BackwardOptions& options() const = 0;
  virtual std::vector<Tensor>& results() = 0;
  // While `node` counts as the running one.
  virtual void run_as(Node& node, const std::function<void()>& f) = 0;
};
class TAEDA_API PassRunner {
 public:
  virtual ~PassRunner() = default;
  // False, with nothing done: the engine runs the pass.
  virtual bool run(PassView& pass) = 0;
};
// This thread's; gives the one before.
TAEDA_API PassRunner* exchange_pass_runner(PassRunner* runner);

// The steps of a call: hooks of the tensors that `node` made, hooks that keep
// the gradients of such, the node itself between its own hooks.
TAEDA_API bool has_tensor_hooks(const Node& node);
TAEDA_API void run_tensor_hooks(Node& node, Tensors& grads);
TAEDA_API void run_retain_hooks(Node& node, Tensors& grads);
TAEDA_API Tensors call_node(Node& node, Tensors grads);

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

// Set by the bindings. Called before each node; throws to end the pass.
extern TAEDA_API void (*check_interrupt)();
// Calls f on a thread that the engine has made, for as long as that lasts.
extern TAEDA_API void (*call_on_thread)(const std::function<void()>& f);
// In a handler: the exception, as one that can go to another thread.
extern TAEDA_API std::exception_ptr (*current_error)();
// Whether this thread holds the interpreter's lock; null without one.
extern TAEDA_API bool (*holds_interpreter)();

}  // namespace taeda::autograd
