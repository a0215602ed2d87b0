// Work that is recorded once and replayed.
#pragma once

#include <taeda/c10/cuda/generator.h>
#include <taeda/c10/cuda/mem_pool.h>
#include <taeda/c10/cuda/stream.h>

#include <memory>
#include <vector>

namespace taeda::cuda {

// Note [Graphs]
// While a stream records, what is put in it is not done but becomes part of a
// graph, and so is what streams do that wait for it. The graph has addresses,
// not tensors: what it takes comes from a pool of its own (Note [Pools]),
// which keeps free blocks for as long as the graph lives. Kernels that draw
// read seed and offset from device memory: each replay writes there where its
// draws begin, and moves the generator on as the recorded calls would have.
class Graph {
 public:
  explicit Graph(bool keep_graph) : keep_graph_(keep_graph) {}
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Of the current stream; `pool` 0 is one of its own.
  void begin(PoolId pool, const std::string& mode);
  // How many pieces of work there are.
  size_t end();
  void instantiate();
  void replay();
  void reset();
  PoolId pool() const;
  void add_generator(const Generator& generator);
  void dump(const std::string& path);
  GraphHandle graph();
  GraphExecHandle executable();

 private:
  enum class State : uint8_t { Empty, Recording, Recorded };
  struct Draw {
    Generator generator;
    RecordedDraws recorded;
    DataPtr memory;
  };

  void make_draws(int device);
  void name_draws(bool recording);
  void replay_draws();

  State state_ = State::Empty;
  bool keep_graph_;
  GpuStream stream_;
  PoolId pool_ = 0;
  uint64_t number_ = 0;
  GraphHandle graph_ = nullptr;
  GraphExecHandle executable_ = nullptr;
  std::vector<Generator> generators_;
  std::vector<std::unique_ptr<Draw>> draws_;
};

}  // namespace taeda::cuda
