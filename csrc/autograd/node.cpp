#include <taeda/csrc/autograd/node.h>

#include <taeda/c10/core/gpu.h>

#include <atomic>
#include <vector>

#include <string_view>

namespace taeda::autograd {

namespace {
thread_local uint64_t sequence_counter = 0;

// Bit 0: enabled, bit 1: check_nan. One word, since every node made reads it.
std::atomic<uint8_t> anomaly_bits{2};

// Nodes that wait to be freed by the outermost release on this thread.
struct PendingRelease {
  std::vector<IntrusivePtr<Node>> nodes;
};
thread_local PendingRelease* pending_release = nullptr;
}  // namespace

std::shared_ptr<ForwardTrace> (*make_forward_trace)() = nullptr;
void (*report_failure)(const Node& node) = nullptr;

uint32_t current_stream_id(Device device) {
  // Tensors without memory may say that they lie on devices that are not here.
  if (!gpu_is_loaded() || device.index >= gpu().device_count()) return 0;
  return static_cast<uint32_t>(gpu().current_stream(device.index).id);
}

uint64_t next_sequence_nr() { return sequence_counter; }

AnomalyMode anomaly_mode() {
  uint8_t bits = anomaly_bits.load(std::memory_order_relaxed);
  return {(bits & 1) != 0, (bits & 2) != 0};
}
void set_anomaly_mode(AnomalyMode mode) {
  anomaly_bits =
      static_cast<uint8_t>((mode.enabled ? 1 : 0) | (mode.check_nan ? 2 : 0));
}

Node::Node() : Node(sequence_counter++) {
  if (TAEDA_UNLIKELY(anomaly_mode().enabled) && make_forward_trace) {
    extra().trace = make_forward_trace();
  }
}

Node::~Node() { Node::release_resources(); }

void Node::release_resources() {
  for (Edge& edge : next_edges_) {
    if (edge.node) release_node(std::move(edge.node));
  }
  next_edges_.clear();
  extra_.reset();
}

bool Node::list_fields(NodeFields& fields) {
  (void)fields;
  return false;
}

// Note [Releasing graphs]
// Freeing a node frees its edges and what it saved, and either may hold the
// last reference to the next node. So nobody drops a node directly: ~Node and
// ~AutogradMeta hand it over here, and the outermost call on the thread's stack
// frees one after the other.
void release_node(IntrusivePtr<Node> node) noexcept {
  if (!node) return;
  if (node->use_count() > 1) return;  // not the last, so nothing is freed
  if (pending_release != nullptr) {
    pending_release->nodes.push_back(std::move(node));
    return;
  }
  PendingRelease pending;
  pending_release = &pending;
  node.reset();
  while (!pending.nodes.empty()) {
    IntrusivePtr<Node> next = std::move(pending.nodes.back());
    pending.nodes.pop_back();
    next.reset();
  }
  pending_release = nullptr;
}

std::string operator_name(const Node& node) {
  std::string name = node.name();
  size_t end = name.find_last_not_of("0123456789");
  constexpr std::string_view kSuffix = "Backward";
  std::string_view base = std::string_view(name).substr(0, end + 1);
  if (end + 1 == name.size() || !base.ends_with(kSuffix)) return name;
  return std::string(base.substr(0, base.size() - kSuffix.size()));
}

Tensors NotImplementedNode::apply(Tensors&&) {
  throw_error(ErrorKind::Runtime,
              str_cat("derivative for ", op_, " is not implemented"));
}

Tensors ErrorNode::apply(Tensors&&) {
  throw_error(ErrorKind::Runtime, message_);
}

}  // namespace taeda::autograd
