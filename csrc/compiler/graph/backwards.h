// Backward graphs for some of a program's tangents.
#pragma once

#include <taeda/csrc/compiler/graph/causes.h>
#include <taeda/csrc/compiler/graph/executor.h>
#include <taeda/csrc/compiler/graph/partition.h>
#include <taeda/csrc/compiler/graph/trace.h>

#include <functional>
#include <map>
#include <mutex>

namespace taeda::compiler {

struct CompileOptions {
  PartitionOptions partition;
  // What fuses a graph's calls into regions; null leaves them as they are.
  std::function<void(Graph& graph)> fuse;
  // Whether values may lie otherwise than eagerly: Note [Layouts].
  bool layouts = false;
};

// Each is traced when the first pass needs it. Threads may share it.
class Backwards {
 public:
  struct Pass {
    std::unique_ptr<Executor> executor;
    std::vector<bool> reads;  // by saved value
  };
  Backwards(std::unique_ptr<Tape> tape,
            size_t inputs,
            std::vector<ValueId> results,
            std::vector<ValueId> saved,
            std::vector<size_t> turned,
            const CompileOptions& options)
      : tape_(std::move(tape)),
        inputs_(inputs),
        results_(std::move(results)),
        saved_(std::move(saved)),
        turned_(std::move(turned)),
        options_(options) {}

  // Lives as long as this. Null where there is none: Note [Tangents that do not
  // arrive].
  const Pass* of(const TangentSet& arrived);

 private:
  std::unique_ptr<const Pass> make(const TangentSet& arrived);

  std::mutex mutex_;  // of all below
  std::unique_ptr<Tape> tape_;
  size_t inputs_;
  std::vector<ValueId> results_;  // of the program, as they were traced
  std::vector<ValueId> saved_;
  std::vector<size_t> turned_;  // saved values: Note [Layouts]
  CompileOptions options_;
  std::map<TangentSet, std::unique_ptr<const Pass>> passes_;
};

}  // namespace taeda::compiler
