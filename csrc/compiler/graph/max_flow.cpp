#include <taeda/csrc/compiler/graph/max_flow.h>

#include <algorithm>

namespace taeda::compiler {

void MaxFlow::add_edge(size_t from, size_t to, int64_t capacity) {
  auto n = static_cast<int32_t>(edges_.size());
  edges_.push_back({static_cast<int32_t>(to), first_[from], capacity});
  edges_.push_back({static_cast<int32_t>(from), first_[to], 0});
  first_[from] = n;
  first_[to] = n + 1;
}

bool MaxFlow::find_layers(size_t source, size_t sink) {
  layer_.assign(first_.size(), -1);
  layer_[source] = 0;
  std::vector<size_t> queue{source};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int32_t e = first_[queue[i]]; e >= 0; e = edges_[e].next) {
      auto to = static_cast<size_t>(edges_[e].to);
      if (edges_[e].left <= 0 || layer_[to] >= 0) continue;
      layer_[to] = layer_[queue[i]] + 1;
      queue.push_back(to);
    }
  }
  return layer_[sink] >= 0;
}

// One path to the sink, walked without recursion: graphs are deep.
int64_t MaxFlow::push(size_t source, size_t sink) {
  std::vector<int32_t> path;
  size_t v = source;
  while (v != sink) {
    int32_t& e = at_[v];
    while (e >= 0 &&
           (edges_[e].left <= 0 || layer_[edges_[e].to] != layer_[v] + 1)) {
      e = edges_[e].next;
    }
    if (e >= 0) {
      path.push_back(e);
      v = static_cast<size_t>(edges_[e].to);
      continue;
    }
    if (path.empty()) return 0;
    // A dead end: back by one edge, which is not tried again.
    v = static_cast<size_t>(edges_[path.back() ^ 1].to);
    at_[v] = edges_[path.back()].next;
    path.pop_back();
  }
  int64_t amount = kUnlimited;
  for (int32_t e : path) amount = std::min(amount, edges_[e].left);
  for (int32_t e : path) {
    edges_[e].left -= amount;
    edges_[e ^ 1].left += amount;
  }
  return amount;
}

int64_t MaxFlow::run(size_t source, size_t sink) {
  int64_t total = 0;
  while (total < kUnlimited && find_layers(source, sink)) {
    at_ = first_;
    while (int64_t amount = push(source, sink)) {
      total += amount;
      if (total >= kUnlimited) break;
    }
  }
  find_sink_side(sink);
  return total;
}

void MaxFlow::find_sink_side(size_t sink) {
  leads_on_.assign(first_.size(), false);
  leads_on_[sink] = true;
  std::vector<size_t> queue{sink};
  for (size_t i = 0; i < queue.size(); ++i) {
    for (int32_t e = first_[queue[i]]; e >= 0; e = edges_[e].next) {
      auto from = static_cast<size_t>(edges_[e].to);
      if (edges_[e ^ 1].left <= 0 || leads_on_[from]) continue;
      leads_on_[from] = true;
      queue.push_back(from);
    }
  }
}

}  // namespace taeda::compiler
