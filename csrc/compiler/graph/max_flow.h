// The cheapest cut between two vertices of a directed graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace taeda::compiler {

// E. A. Dinic's algorithm: blocking flows in layered networks.
class MaxFlow {
 public:
  static constexpr int64_t kUnlimited = int64_t{1} << 60;

  explicit MaxFlow(size_t vertices) : first_(vertices, -1) {}
  void add_edge(size_t from, size_t to, int64_t capacity);
  // The value of the cut; kUnlimited and more where no finite one exists.
  int64_t run(size_t source, size_t sink);
  // After run: whether a vertex is on the source's side of the cut. Of equally
  // cheap cuts it is the one next to the sink.
  bool on_source_side(size_t vertex) const { return !leads_on_[vertex]; }

 private:
  struct Edge {
    int32_t to;
    int32_t next;  // of the same vertex
    int64_t left;
  };
  bool find_layers(size_t source, size_t sink);
  int64_t push(size_t source, size_t sink);
  void find_sink_side(size_t sink);

  std::vector<Edge> edges_;  // edge i and i ^ 1 are each other's opposite
  std::vector<int32_t> first_, layer_, at_;
  std::vector<bool> leads_on_;  // by what is left of edges, to the sink
};

}  // namespace taeda::compiler
