// A program as its forward and backward graphs, and how it is called.
#pragma once

#include <taeda/csrc/autograd/autocast.h>
#include <taeda/csrc/compiler/graph/backwards.h>
#include <taeda/csrc/compiler/graph/causes.h>
#include <taeda/csrc/compiler/graph/executor.h>
#include <taeda/csrc/compiler/graph/partition.h>
#include <taeda/csrc/compiler/graph/trace.h>

namespace taeda::compiler {

struct CompileOptions {
  PartitionOptions partition;
  // What fuses a graph's calls into regions; null leaves them as they are.
  void (*fuse)(Graph& graph) = nullptr;
};

// Note [Compiled calls]
// Graphs run below autograd; a call is one node for it. What the program does
// to inputs and which of its results are views is done afterwards, outside of
// that node and under autograd: results that are views of inputs are made of
// them, and new values are copied into them. So whoever looks at the tensors
// sees the same as after the eager program. Graphs hold for inputs that look
// like those that they were traced with (`fits`).
class CompiledProgram final : public IntrusiveTarget {
 public:
  CompiledProgram(const Program& program,
                  std::span<const TensorBase> inputs,
                  const CompileOptions& options);

  bool fits(std::span<const TensorBase> inputs) const;
  // In the order of the program's results.
  std::vector<TensorBase> call(std::span<const TensorBase> inputs);
  const Graph& forward() const { return forward_->graph(); }
  const Graph* backward() const {
    return backward_ ? &backward_->graph() : nullptr;
  }

 private:
  friend class CompiledNode;
  // What a call's input must look like.
  struct Look {
    DimVector sizes, strides;
    ScalarType dtype = kFloat;
    Device device;
    DispatchKeySet keys;
    int64_t offset = -1;   // in its storage, where a view counts from there
    int32_t same_as = -1;  // an earlier input that is the same tensor
  };

  void look_at(std::span<const TensorBase> inputs);
  void look_at_offsets(const Graph& graph, std::span<const TensorBase> inputs);
  std::vector<ValueId> overwritten(Graph& graph) const;
  bool shares_written(std::span<const TensorBase> inputs) const;
  void record(std::span<const TensorBase> inputs,
              std::vector<TensorBase>& outputs);
  void write_back(std::span<const TensorBase> inputs,
                  std::span<const TensorBase> outputs) const;
  TensorBase result(const Result& r,
                    std::span<const TensorBase> inputs,
                    std::span<const TensorBase> outputs) const;

  std::vector<Look> looks_;
  bool grad_mode_ = false;
  bool inference_ = false;
  autocast::Settings autocast_;
  std::vector<Result> results_;
  std::vector<Mutation> mutations_;
  size_t outputs_ = 0;               // of the program; others are saved
  std::vector<int32_t> tangents_;    // by output: its place among them, or -1
  std::vector<TangentSet> causes_;   // by input: what its gradient is made of
  std::vector<TangentSet> readers_;  // by saved value, see causes.h
  std::vector<Split::Saved> saved_;
  std::unique_ptr<Executor> forward_, backward_;
  std::unique_ptr<Backwards> others_;  // passes; null where there is one
};

}  // namespace taeda::compiler
