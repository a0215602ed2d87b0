// The engine's state of each node of one pass: a flat hash table.
#pragma once

#include <taeda/csrc/autograd/node.h>

#include <vector>

namespace taeda::autograd {

struct NodeState {
  Node* node = nullptr;
  uint32_t dependencies = 0;  // edges into it that have not delivered yet
  bool needed = true;         // leads to something that is asked for
  bool captured = false;
  Tensors buffer;  // gradients that have arrived
};

// Node* -> index of its state; open addressing with linear probing.
class NodeTable {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};

  uint32_t find(const Node* node) const {
    if (slots_.empty()) return kNone;
    for (size_t i = hash(node);; i = (i + 1) & mask_) {
      uint32_t index = slots_[i];
      if (index == kNone || states_[index].node == node) return index;
    }
  }
  // The index and whether it is new.
  std::pair<uint32_t, bool> insert(Node* node) {
    if ((states_.size() + 1) * 2 > slots_.size()) grow();
    size_t i = hash(node);
    for (; slots_[i] != kNone; i = (i + 1) & mask_) {
      if (states_[slots_[i]].node == node) return {slots_[i], false};
    }
    auto index = static_cast<uint32_t>(states_.size());
    slots_[i] = index;
    states_.emplace_back().node = node;
    return {index, true};
  }
  NodeState& operator[](uint32_t i) { return states_[i]; }
  const NodeState& operator[](uint32_t i) const { return states_[i]; }
  size_t size() const { return states_.size(); }

 private:
  size_t hash(const Node* node) const {
    auto bits = reinterpret_cast<uintptr_t>(node) >> 4;
    return (bits * 0x9E3779B97F4A7C15u >> 20) & mask_;
  }
  void grow() {
    size_t capacity = slots_.empty() ? 64 : slots_.size() * 2;
    slots_.assign(capacity, kNone);
    mask_ = capacity - 1;
    for (size_t s = 0; s < states_.size(); ++s) {
      size_t i = hash(states_[s].node);
      while (slots_[i] != kNone) i = (i + 1) & mask_;
      slots_[i] = static_cast<uint32_t>(s);
    }
  }

  std::vector<uint32_t> slots_;
  std::vector<NodeState> states_;
  size_t mask_ = 0;
};

}  // namespace taeda::autograd
