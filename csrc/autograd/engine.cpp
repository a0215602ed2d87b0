#include <taeda/csrc/autograd/engine.h>

#include <taeda/csrc/autograd/accumulate_grad.h>
#include <taeda/csrc/autograd/autocast.h>
#include <taeda/csrc/autograd/device_pass.h>
#include <taeda/csrc/autograd/observe.h>
#include <taeda/csrc/autograd/validate.h>

#include <algorithm>
#include <exception>
#include <thread>

namespace taeda::autograd {

// Note [Engine]
// One pass counts, for every node that it reaches, the edges that will deliver
// to it, then runs nodes whose gradients are complete, the latest recorded
// first. Everything is iterative, so depth costs no stack. CPU work runs on the
// calling thread, that of GPUs as Note [Backward on devices] says: passes of
// several threads share nothing but nodes, and a node guards what it saved. A
// backward call inside a node (checkpointing) is a pass of its own on the same
// thread; only very deep nesting moves to a new one.

std::atomic<NodeObserver*> node_observer{nullptr};

namespace {

constexpr int kMaxNesting = 60;

thread_local Pass* current_pass = nullptr;
thread_local Node* running_node = nullptr;
thread_local PassRunner* pass_runner = nullptr;
thread_local int nesting = 0;

class Running {
 public:
  explicit Running(Node* n) : outer_(std::exchange(running_node, n)) {}
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;
  ~Running() { running_node = outer_; }

 private:
  Node* outer_;
};

bool is_observed() {
  return TAEDA_UNLIKELY(node_observer.load(std::memory_order_relaxed) !=
                        nullptr);
}

}  // namespace

PassScope::PassScope(Pass* pass)
    : saved_(std::exchange(current_pass, pass)),
      node_(std::exchange(running_node, nullptr)) {
  ++nesting;
}
PassScope::~PassScope() {
  current_pass = saved_;
  running_node = node_;
  --nesting;
}
int pass_nesting() { return nesting; }

Pass::Pass(const BackwardOptions& options, bool pruned)
    : options_(options),
      pruned_(pruned),
      full_(!pruned && task_is_full()),
      id_(next_id()) {}
Pass::~Pass() = default;

uint64_t Pass::next_id() {
  static std::atomic<uint64_t> counter{0};
  return ++counter;
}

inline void Pass::push(uint32_t index) {
  ready_.push_back({table_[index].node->sequence_nr(), index});
  std::push_heap(ready_.begin(), ready_.end());
}

void Pass::discover(ArrayRef<Edge> roots) {
  std::vector<Node*> stack;
  for (const Edge& root : roots) {
    if (table_.insert(root.node.get()).second) {
      stack.push_back(root.node.get());
    }
  }
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    for (const Edge& edge : node->next_edges()) {
      if (!edge.valid()) continue;
      auto [index, is_new] = table_.insert(edge.node.get());
      ++table_[index].dependencies;
      if (is_new) stack.push_back(edge.node.get());
    }
  }
}

void Pass::register_inputs(ArrayRef<Edge> inputs) {
  results_.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    uint32_t index = table_.find(inputs[i].node.get());
    if (index == NodeTable::kNone) continue;
    if (options_.accumulate) {
      table_[index].needed = true;
    } else {
      table_[index].captured = true;
      captures_.push_back({index, inputs[i].input_nr, i});
    }
  }
}

// Depth first, a node after its successors: it is needed if one of them is.
void Pass::mark_needed(ArrayRef<Edge> roots) {
  struct Frame {
    uint32_t index;
    uint32_t edge;
  };
  std::vector<bool> seen(table_.size());
  std::vector<Frame> stack;
  for (const Edge& root : roots) {
    uint32_t start = table_.find(root.node.get());
    if (seen[start]) continue;
    seen[start] = true;
    stack.push_back({start, 0});
    while (!stack.empty()) {
      Frame& frame = stack.back();
      uint32_t index = frame.index;
      const auto& edges = table_[index].node->next_edges();
      if (frame.edge < edges.size()) {
        const Edge& edge = edges[frame.edge++];
        if (!edge.valid()) continue;
        uint32_t next = table_.find(edge.node.get());
        if (!seen[next]) {
          seen[next] = true;
          stack.push_back({next, 0});
        }
        continue;
      }
      stack.pop_back();
      for (const Edge& edge : edges) {
        if (!edge.valid()) continue;
        const NodeState& next = table_[table_.find(edge.node.get())];
        if (next.needed || next.captured) table_[index].needed = true;
      }
    }
  }
}

std::vector<Tensor> Pass::run(ArrayRef<Edge> roots,
                              std::vector<Tensor> grads,
                              ArrayRef<Edge> inputs) {
  PassScope scope(this);
  GradModeGuard grad_mode(options_.create_graph);
  discover(roots);
  if (pruned_) {
    for (uint32_t i = 0; i < table_.size(); ++i) table_[i].needed = false;
    register_inputs(inputs);
    mark_needed(roots);
  }
  if (TAEDA_UNLIKELY(pass_runner != nullptr) && take_over(roots, grads)) {
    return finish();
  }
  if (TAEDA_UNLIKELY(gpu_is_loaded()) && !gpu_is_lost_in_fork()) {
    std::vector<int> devices = devices_of(table_);
    if (!devices.empty()) {
      devices_ = std::make_unique<DevicePass>(*this, devices);
      devices_->run([&] { begin(*devices_, roots, grads); });
      return finish();
    }
  }
  begin(*this, roots, grads);
  while (!ready_.empty()) {
    std::pop_heap(ready_.begin(), ready_.end());
    uint32_t index = ready_.back().state;
    ready_.pop_back();
    if (check_interrupt != nullptr) check_interrupt();
    is_observed() ? announce(index) : execute<false>(index);
  }
  return finish();
}

template <class To>
inline void Pass::begin(To& to,
                        ArrayRef<Edge> roots,
                        std::vector<Tensor>& grads) {
  for (size_t i = 0; i < roots.size(); ++i) {
    uint32_t index = table_.find(roots[i].node.get());
    to.add(index, roots[i].input_nr, std::move(grads[i]));
  }
  for (size_t i = 0; i < roots.size(); ++i) {
    uint32_t index = table_.find(roots[i].node.get());
    if (table_[index].dependencies != 0) continue;
    // A node may be the root of several tensors.
    table_[index].dependencies = 1;
    to.push(index);
  }
}

std::vector<Tensor> Pass::finish() {
  // A callback may queue another one.
  for (size_t i = 0; i < callbacks_.size(); ++i) {
    std::function<void()> callback = std::move(callbacks_[i]);
    callback();
  }
  return std::move(results_);
}

class TakenPass final : public PassView {
 public:
  explicit TakenPass(Pass& pass) : pass_(pass) {}
  int32_t place_of(const Node* node) const override {
    uint32_t at = table->find(node);
    return at == NodeTable::kNone ? -1 : places[at];
  }
  const BackwardOptions& options() const override { return pass_.options(); }
  std::vector<Tensor>& results() override { return pass_.results(); }
  void run_as(Node& node, const std::function<void()>& f) override {
    Running running(&node);
    f();
  }
  const NodeTable* table = nullptr;
  std::vector<int32_t> places;  // among the calls, by index in the table

 private:
  Pass& pass_;
};

// The order in which the nodes would run, which no gradient has a say in.
void Pass::order(ArrayRef<Edge> roots, TakenPass& view) const {
  std::vector<uint32_t> dependencies;
  std::vector<Ready> ready;
  for (uint32_t i = 0; i < table_.size(); ++i) {
    dependencies.push_back(table_[i].dependencies);
  }
  auto push = [&](uint32_t i) {
    ready.push_back({table_[i].node->sequence_nr(), i});
    std::push_heap(ready.begin(), ready.end());
  };
  for (const Edge& root : roots) {
    uint32_t i = table_.find(root.node.get());
    if (dependencies[i] != 0) continue;
    dependencies[i] = 1;
    push(i);
  }
  view.table = &table_;
  view.places.assign(table_.size(), -1);
  while (!ready.empty()) {
    std::pop_heap(ready.begin(), ready.end());
    uint32_t index = ready.back().state;
    ready.pop_back();
    const NodeState& state = table_[index];
    if (!state.needed && !state.captured) continue;
    view.places[index] = static_cast<int32_t>(view.calls.size());
    view.calls.push_back({state.node, state.needed, {}});
    for (const Capture& c : captures_) {
      if (c.state != index) continue;
      view.calls.back().captured.push_back({c.input_nr, c.result});
    }
    if (!state.needed) continue;
    for (const Edge& edge : state.node->next_edges()) {
      if (!edge.valid()) continue;
      uint32_t next = table_.find(edge.node.get());
      if (pruned_ && !table_[next].needed && !table_[next].captured) continue;
      if (--dependencies[next] == 0) push(next);
    }
  }
}

// False where the thread's runner leaves the pass to the engine.
bool Pass::take_over(ArrayRef<Edge> roots, std::vector<Tensor>& grads) {
  TakenPass view(*this);
  order(roots, view);
  view.roots.assign(roots.begin(), roots.end());
  view.grads = std::move(grads);
  if (pass_runner->run(view)) return true;
  grads = std::move(view.grads);
  return false;
}

void Pass::add(uint32_t index, uint32_t input_nr, Tensor grad) {
  NodeState& state = table_[index];
  if (state.buffer.empty()) {
    state.buffer.resize(std::max<size_t>(state.node->num_outputs(), 1));
  }
  if (!grad.defined()) return;
  Tensor& slot = state.buffer[input_nr];
  slot = slot.defined() ? sum_of(std::move(slot), grad) : std::move(grad);
}

void Pass::capture(uint32_t index, const Tensors& grads) {
  for (const Capture& c : captures_) {
    if (c.state == index) results_[c.result] = grads[c.input_nr];
  }
}

// Of a leaf, its own; else those of the tensors that the node made.
static LeafHooks* leaf_hooks(const Node& node) {
  TensorImpl* variable = node.accumulated_variable();
  if (variable == nullptr) return nullptr;
  auto* meta = static_cast<AutogradMeta*>(variable->autograd_meta());
  return meta == nullptr ? nullptr : meta->leaf_hooks.get();
}

bool has_tensor_hooks(const Node& node) {
  if (node.accumulated_variable() != nullptr) {
    LeafHooks* hooks = leaf_hooks(node);
    return hooks != nullptr && !hooks->before.empty();
  }
  NodeExtra* extra = node.extra_or_null();
  return extra != nullptr && !extra->tensor_hooks.empty();
}

static void run_hooks(SmallVector<NodeExtra::ForOutput, 1> hooks,
                      Tensors& grads) {
  for (auto& h : hooks) h.hook->call(grads[h.output_nr]);
}

// Lists are copied: a hook may add another one. A gradient that did not come is
// shown to hooks too, as None.
void run_tensor_hooks(Node& node, Tensors& grads) {
  if (node.accumulated_variable() != nullptr) {
    LeafHooks* own = leaf_hooks(node);
    if (own == nullptr) return;
    auto hooks = own->before;
    for (auto& hook : hooks) hook->call(grads[0]);
    return;
  }
  NodeExtra* extra = node.extra_or_null();
  if (extra != nullptr) run_hooks(extra->tensor_hooks, grads);
}

void run_retain_hooks(Node& node, Tensors& grads) {
  NodeExtra* extra = node.extra_or_null();
  if (extra != nullptr) run_hooks(extra->retain_hooks, grads);
}

Tensors call_node(Node& node, Tensors grads) {
  NodeExtra* extra = node.extra_or_null();
  if (extra != nullptr && !extra->pre_hooks.empty()) {
    auto pre = extra->pre_hooks;
    for (auto& hook : pre) hook->call(grads);
  }
  bool watched = extra != nullptr && !extra->post_hooks.empty();
  // Hooks that come while the node runs are told of no gradients.
  Tensors kept = watched ? grads : Tensors();
  size_t count = grads.size();
  Tensors outputs = node.apply(std::move(grads));
  extra = node.extra_or_null();
  if (TAEDA_LIKELY(extra == nullptr || extra->post_hooks.empty())) {
    return outputs;
  }
  kept.resize(count);
  auto post = extra->post_hooks;
  for (auto& hook : post) hook->call(outputs, kept);
  return outputs;
}

// The observer may go meanwhile.
static Tensors call_observed(Node& node, Tensors grads) {
  NodeObserver* observer = node_observer.load(std::memory_order_acquire);
  if (observer == nullptr) return call_node(node, std::move(grads));
  uint64_t token = observer->applies(node, grads);
  Tensors outputs;
  try {
    outputs = call_node(node, std::move(grads));
  } catch (...) {
    observer->applied(node, token, nullptr);
    throw;
  }
  observer->applied(node, token, &outputs);
  return outputs;
}

void Pass::announce(uint32_t index) {
  const NodeState& state = table_[index];
  if (!state.needed && !state.captured) return;
  NodeObserver* observer = node_observer.load(std::memory_order_acquire);
  uint64_t token = observer == nullptr ? 0 : observer->evaluates(*state.node);
  try {
    execute<true>(index);
  } catch (...) {
    if (observer != nullptr) observer->evaluated(token);
    throw;
  }
  if (observer != nullptr) observer->evaluated(token);
}

template <bool kObserved>
inline void Pass::execute(uint32_t index) {
  NodeState& state = table_[index];
  Node& node = *state.node;
  Tensors grads = std::move(state.buffer);
  bool needed = state.needed, captured = state.captured;
  if (!needed && !captured) return;
  Running running(&node);
  try {
    run_tensor_hooks(node, grads);
    run_retain_hooks(node, grads);
    if (captured) capture(index, grads);
    if (!needed) return;
    Tensors outputs = kObserved ? call_observed(node, std::move(grads))
                                : call_node(node, std::move(grads));
    if (!options_.keep_graph) node.release_variables();
    validate_grads(node, outputs);
    if (TAEDA_UNLIKELY(devices_ != nullptr)) {
      devices_->deliver(node, outputs);
    } else {
      deliver(node, outputs);
    }
  } catch (...) {
    NodeExtra* extra = node.extra_or_null();
    bool traced = extra != nullptr && extra->trace;
    if (report_failure && (traced || anomaly_mode().enabled)) {
      report_failure(node);
    }
    throw;
  }
}

void Pass::run_node(uint32_t index) {
  if (check_interrupt != nullptr) check_interrupt();
  is_observed() ? announce(index) : execute<false>(index);
}

inline void Pass::deliver(Node& node, Tensors& outputs) {
  const auto& edges = node.next_edges();
  for (size_t i = 0; i < edges.size(); ++i) {
    const Edge& edge = edges[i];
    if (!edge.valid()) continue;
    uint32_t next = table_.find(edge.node.get());
    if (pruned_ && !table_[next].needed && !table_[next].captured) continue;
    if (i < outputs.size()) {
      add(next, edge.input_nr, std::move(outputs[i]));
    } else {
      add(next, edge.input_nr, {});
    }
    if (--table_[next].dependencies == 0) push(next);
  }
}

void (*check_interrupt)() = nullptr;
void (*call_on_thread)(const std::function<void()>&) =
    [](const std::function<void()>& f) { f(); };
std::exception_ptr (*current_error)() = [] { return std::current_exception(); };
bool (*holds_interpreter)() = nullptr;

static void run_on_new_thread(const std::function<void()>& f) {
  std::exception_ptr error;
  std::thread thread([&] {
    call_on_thread([&] {
      try {
        f();
      } catch (...) {
        error = current_error();
      }
    });
  });
  thread.join();
  if (error) std::rethrow_exception(error);
}

std::vector<Tensor> run_backward(ArrayRef<Edge> roots,
                                 std::vector<Tensor> grads,
                                 ArrayRef<Edge> inputs,
                                 const BackwardOptions& options) {
  Pass pass(options, !inputs.empty());
  if (nesting < kMaxNesting) {
    return pass.run(roots, std::move(grads), inputs);
  }
  std::vector<Tensor> results;
  LocalState state = local_state;
  autocast::Settings casts = autocast::settings();
  Handover handover;
  run_on_new_thread([&] {
    LocalStateGuard guard(state);
    handover.take();
    autocast::restore(casts);
    results = pass.run(roots, std::move(grads), inputs);
  });
  return results;
}

PassRunner* exchange_pass_runner(PassRunner* runner) {
  return std::exchange(pass_runner, runner);
}

void queue_callback(std::function<void()> callback) {
  TAEDA_CHECK(current_pass != nullptr,
              "Final callbacks can only be installed during backward pass.");
  current_pass->queue_callback(std::move(callback));
}

bool in_backward() { return current_pass != nullptr; }

bool task_should_compute(const Node& node, size_t i) {
  if (!node.should_compute(i)) return false;
  return current_pass == nullptr ||
         current_pass->will_run(node.next_edge(i).node.get());
}

bool task_should_compute(const Node& node, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) {
    if (task_should_compute(node, i)) return true;
  }
  return false;
}

bool task_will_run(const Node* node) {
  return current_pass != nullptr && current_pass->contains(node);
}
bool task_is_full() { return current_pass == nullptr || current_pass->full(); }
bool task_keeps_graph() {
  return current_pass != nullptr && current_pass->options().keep_graph;
}
uint64_t current_task_id() {
  return current_pass == nullptr ? 0 : current_pass->id();
}
Node* current_node() { return running_node; }

}  // namespace taeda::autograd
