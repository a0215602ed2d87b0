// A backward pass, for the two files of the engine.
#pragma once

#include <taeda/csrc/autograd/engine.h>
#include <taeda/csrc/autograd/node_table.h>

#include <algorithm>
#include <memory>
#include <mutex>

namespace taeda::autograd {

class TakenPass;
class DevicePass;

class Pass final {
 public:
  Pass(const BackwardOptions& options, bool pruned);
  ~Pass();
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  std::vector<Tensor> run(ArrayRef<Edge> roots,
                          std::vector<Tensor> grads,
                          ArrayRef<Edge> inputs);
  bool will_run(const Node* node) const {
    if (!pruned_) return true;
    uint32_t i = table_.find(node);
    // A node outside the table is run by another one (CopySlices).
    return i == NodeTable::kNone || table_[i].needed || table_[i].captured;
  }
  bool contains(const Node* node) const {
    uint32_t i = table_.find(node);
    return i != NodeTable::kNone && (table_[i].needed || table_[i].captured);
  }
  const BackwardOptions& options() const { return options_; }
  std::vector<Tensor>& results() { return results_; }
  uint64_t id() const { return id_; }
  bool full() const { return full_; }
  NodeTable& table() { return table_; }
  // What is to be done for a node of the table whose gradients are complete.
  void run_node(uint32_t index);
  // Adds a gradient to what has arrived for a node.
  void add(uint32_t index, uint32_t input_nr, Tensor grad);

  // From any of the pass's threads; it runs at the end, on the caller's.
  void queue_callback(std::function<void()> callback) {
    std::lock_guard guard(callbacks_mutex_);
    callbacks_.push_back(std::move(callback));
  }

 private:
  struct Capture {
    uint32_t state;
    uint32_t input_nr;
    size_t result;
  };
  struct Ready {
    uint64_t sequence_nr;
    uint32_t state;
    bool operator<(const Ready& o) const { return sequence_nr < o.sequence_nr; }
  };

  static uint64_t next_id();
  void discover(ArrayRef<Edge> roots);
  bool take_over(ArrayRef<Edge> roots, std::vector<Tensor>& grads);
  void order(ArrayRef<Edge> roots, TakenPass& view) const;
  void register_inputs(ArrayRef<Edge> inputs);
  void mark_needed(ArrayRef<Edge> roots);
  // Into this pass or its device pass.
  template <class To>
  void begin(To& to, ArrayRef<Edge> roots, std::vector<Tensor>& grads);
  std::vector<Tensor> finish();
  // With one caller of each, so that the plain one is part of its loop.
  template <bool kObserved>
  void execute(uint32_t index);
  void announce(uint32_t index);
  void capture(uint32_t index, const Tensors& grads);
  void deliver(Node& node, Tensors& outputs);
  void push(uint32_t index);

  BackwardOptions options_;
  bool pruned_;
  bool full_;
  uint64_t id_;
  NodeTable table_;
  std::vector<Ready> ready_;
  std::vector<Capture> captures_;
  std::vector<Tensor> results_;
  std::mutex callbacks_mutex_;
  std::vector<std::function<void()>> callbacks_;
  // Where the pass has nodes on a GPU.
  std::unique_ptr<DevicePass> devices_;
};

// What the thread is doing, restored at the end.
class PassScope {
 public:
  explicit PassScope(Pass* pass);
  PassScope(const PassScope&) = delete;
  PassScope& operator=(const PassScope&) = delete;
  ~PassScope();

 private:
  Pass* saved_;
  Node* node_;
};

// How deep passes stand in each other on this thread.
int pass_nesting();

}  // namespace taeda::autograd
