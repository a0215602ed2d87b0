// The recorded graph: a node per differentiable call, edges to the nodes that
// made its inputs.
#pragma once

#include <taeda/aten/core/tensor_base.h>
#include <taeda/c10/core/symbolic_geometry.h>

#include <memory>
#include <mutex>
#include <string>

namespace taeda::autograd {

class Node;
class NodeFields;
using Tensors = SmallVector<Tensor, 4>;

// Where a gradient goes: input `input_nr` of `node`.
struct Edge {
  IntrusivePtr<Node> node;
  uint32_t input_nr = 0;
  bool valid() const { return static_cast<bool>(node); }
};

TAEDA_API uint32_t current_stream_id(Device device);

// What a node knows of a tensor that it was recorded for; gradients arriving
// for it are checked and brought to this form.
struct OutputInfo {
  DimVector sizes;              // hints where they are symbols
  std::vector<SymInt> symbols;  // empty where none is one
  ScalarType dtype = kFloat;
  Device device;
  bool known = false;  // not for outputs outside the graph
  // The stream that was current on the GPU where the output lies.
  uint32_t stream = 0;
  OutputInfo() = default;
  explicit OutputInfo(const Tensor& t)
      : sizes(t.impl()->hinted_sizes()),
        dtype(t.dtype()),
        device(t.device()),
        known(true) {
    if (TAEDA_UNLIKELY(t.impl()->is_symbolic())) {
      symbols = sym_sizes(*t.impl()).vec();
    }
    if (TAEDA_UNLIKELY(device.is_cuda())) stream = current_stream_id(device);
  }
  SymIntArrayRef symbolic_sizes() const {
    return symbols.empty() ? as_symbolic(sizes) : SymIntArrayRef(symbols);
  }
  bool has_sizes_of(const Tensor& t) const {
    if (TAEDA_LIKELY(symbols.empty() && !t.impl()->is_symbolic())) {
      return t.sizes() == IntArrayRef(sizes);
    }
    SymIntArrayRef own = sym_sizes(*t.impl()), wanted = symbolic_sizes();
    return std::equal(own.begin(), own.end(), wanted.begin(), wanted.end());
  }
};

// Hooks change what they are given in place.
struct TAEDA_API TensorHook {
  virtual ~TensorHook() = default;
  virtual void call(Tensor& grad) = 0;
};
struct TAEDA_API NodePreHook {
  virtual ~NodePreHook() = default;
  virtual void call(Tensors& grad_outputs) = 0;
};
struct TAEDA_API NodePostHook {
  virtual ~NodePostHook() = default;
  virtual void call(Tensors& grad_inputs, const Tensors& grad_outputs) = 0;
};

// Where a node was made, kept in anomaly mode only.
struct TAEDA_API ForwardTrace {
  virtual ~ForwardTrace() = default;
};

// What few nodes have.
struct NodeExtra {
  struct ForOutput {
    uint32_t output_nr;
    std::shared_ptr<TensorHook> hook;
  };
  SmallVector<ForOutput, 1> tensor_hooks;
  SmallVector<ForOutput, 1> retain_hooks;  // run after all others
  SmallVector<std::shared_ptr<NodePreHook>, 1> pre_hooks;
  SmallVector<std::shared_ptr<NodePostHook>, 1> post_hooks;
  std::shared_ptr<ForwardTrace> trace;
  std::shared_ptr<void> metadata;  // what Python keeps with the node
};

class TAEDA_API Node : public IntrusiveTarget {
 public:
  Node();
  // AccumulateGrad and the like, which run before all others.
  explicit Node(uint64_t sequence_nr) : sequence_nr_(sequence_nr) {}
  ~Node() override;

  virtual std::string name() const = 0;
  // One gradient per output in, one per next edge out; undefined means zero.
  virtual Tensors apply(Tensors&& grads) = 0;
  // Frees what was saved; afterwards unpacking is an error.
  virtual void release_variables() {}
  // Lists what the node keeps for `apply`, always in one order; false where
  // that is known to `apply` alone. `blank` makes a node of the same class
  // with nothing kept.
  virtual bool list_fields(NodeFields& fields);
  virtual IntrusivePtr<Node> blank() const { return {}; }
  // The tensor that an AccumulateGrad node adds to.
  virtual TensorImpl* accumulated_variable() const { return nullptr; }

  uint64_t sequence_nr() const { return sequence_nr_; }

  const SmallVector<Edge, 2>& next_edges() const { return next_edges_; }
  SmallVector<Edge, 2>& mutable_next_edges() { return next_edges_; }
  const Edge& next_edge(size_t i) const { return next_edges_[i]; }
  void add_next_edge(Edge e) { next_edges_.push_back(std::move(e)); }
  bool should_compute(size_t i) const {
    return i < next_edges_.size() && next_edges_[i].valid();
  }
  bool should_compute(size_t from, size_t to) const {
    for (size_t i = from; i < to; ++i) {
      if (should_compute(i)) return true;
    }
    return false;
  }

  // Dims of the first output.
  size_t output_rank() const {
    return outputs_.empty() ? 0 : outputs_[0].sizes.size();
  }
  size_t num_outputs() const { return outputs_.size(); }
  const OutputInfo& output(size_t i) const { return outputs_[i]; }
  // Returns the number of the new output.
  uint32_t add_output(const Tensor& t) {
    outputs_.emplace_back(t);
    return static_cast<uint32_t>(outputs_.size() - 1);
  }
  uint32_t add_undefined_output() { return add_output(OutputInfo()); }
  uint32_t add_output(OutputInfo info) {
    outputs_.push_back(std::move(info));
    return static_cast<uint32_t>(outputs_.size() - 1);
  }
  void replace_output(size_t i, const Tensor& t) {
    outputs_[i] = OutputInfo(t);
  }

  NodeExtra& extra() {
    if (!extra_) extra_ = std::make_unique<NodeExtra>();
    return *extra_;
  }
  NodeExtra* extra_or_null() const { return extra_.get(); }

  // Held while a generated node reads or frees what it saved, since several
  // threads may run one graph.
  std::unique_lock<std::mutex> lock() {
    return std::unique_lock<std::mutex>(mutex_);
  }

  // The Python object of this node, not owned; guarded by the GIL.
  void* python_object = nullptr;

 protected:
  // Runs in place of the destructor while weak references remain (those of a
  // leaf to its accumulator, of a ctx to its node): nodes that can have them
  // let go of everything here, or they would keep what refers to them.
  void release_resources() override;

 private:
  uint64_t sequence_nr_;
  SmallVector<Edge, 2> next_edges_;
  SmallVector<OutputInfo, 1> outputs_;
  std::unique_ptr<NodeExtra> extra_;
  std::mutex mutex_;
};

// The operator that a node is the derivative of: its name without "Backward0".
TAEDA_API std::string operator_name(const Node& node);

// Lets go of a node without recursion, however long the graph behind it is.
TAEDA_API void release_node(IntrusivePtr<Node> node) noexcept;

// The number that this thread's next node gets.
TAEDA_API uint64_t next_sequence_nr();

// Stands where a derivative is missing: raises in backward.
class TAEDA_API NotImplementedNode final : public Node {
 public:
  explicit NotImplementedNode(std::string op) : op_(std::move(op)) {}
  std::string name() const override { return "NotImplemented"; }
  Tensors apply(Tensors&& grads) override;

 private:
  std::string op_;
};

// Raises in backward with a given message (once_differentiable and others).
class TAEDA_API ErrorNode final : public Node {
 public:
  explicit ErrorNode(std::string message) : message_(std::move(message)) {}
  std::string name() const override { return "Error"; }
  Tensors apply(Tensors&& grads) override;

 private:
  std::string message_;
};

// Anomaly mode ------------------------------------------------------------

struct AnomalyMode {
  bool enabled = false;
  bool check_nan = true;
};
TAEDA_API AnomalyMode anomaly_mode();
TAEDA_API void set_anomaly_mode(AnomalyMode mode);
// Set by the bindings: what is kept with a node made in anomaly mode, and what
// tells the user of a node that failed, with the trace that it may have.
extern TAEDA_API std::shared_ptr<ForwardTrace> (*make_forward_trace)();
extern TAEDA_API void (*report_failure)(const Node& node);

}  // namespace taeda::autograd
