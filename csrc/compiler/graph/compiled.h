// A program as its forward and backward graphs, and how it is called.
#pragma once

#include <taeda/csrc/autograd/autocast.h>
#include <taeda/csrc/autograd/node.h>
#include <taeda/csrc/compiler/graph/backwards.h>
#include <taeda/csrc/compiler/graph/causes.h>
#include <taeda/csrc/compiler/graph/executor.h>
#include <taeda/csrc/compiler/graph/partition.h>
#include <taeda/csrc/compiler/graph/trace.h>

namespace taeda::compiler {

// Note [Compiled calls]
// Graphs run below autograd; a call is one node for it. What the program does
// to inputs and which of its results are views is done afterwards, outside of
// that node and under autograd: results that are views of inputs are made of
// them, and new values are copied into them. So whoever looks at the tensors
// sees the same as after the eager program. Graphs hold for inputs that look
// like those that they were traced with (`fits`): where sizes are symbols, for
// all values for which the guards hold that the trace left.
class CompiledProgram final : public IntrusiveTarget {
 public:
  CompiledProgram(const Program& program,
                  std::span<const TensorBase> inputs,
                  const CompileOptions& options,
                  const SymbolicInputs* symbolic = nullptr,
                  const InnerPasses* passes = nullptr);

  // `symbols`: the values of those that the inputs have.
  bool fits(std::span<const TensorBase> inputs,
            std::span<const int64_t> symbols = {}) const;
  // In the order of the program's results; then those that are the grads of
  // inputs, for `give_grads` to hand over.
  std::vector<TensorBase> call(std::span<const TensorBase> inputs,
                               std::span<const int64_t> symbols = {});
  void give_grads(std::span<const TensorBase> inputs,
                  std::vector<TensorBase>& results) const;
  const Graph& forward() const { return forward_->graph(); }
  const Graph* backward() const {
    return backward_ ? &backward_->graph() : nullptr;
  }

 private:
  friend class CompiledNode;
  // What a call's input must look like.
  struct Look {
    SizeList sizes, strides;
    ScalarType dtype = kFloat;
    Device device;
    DispatchKeySet keys;
    int64_t offset = -1;   // in its storage, where a view counts from there
    int32_t same_as = -1;  // an earlier input that is the same tensor
  };

  void look_at(std::span<const TensorBase> inputs,
               const SymbolicInputs* symbolic);
  void keep_steps();
  void split_graph(Traced traced, size_t inputs, const CompileOptions& options);
  std::vector<size_t> choose_layouts_of(Split& split, bool joint) const;
  void keep_guards(const SymbolicInputs& symbolic);
  bool looks_like(const TensorBase& t,
                  const Look& look,
                  const int64_t* numbers) const;
  void look_at_offsets(const Graph& graph, std::span<const TensorBase> inputs);
  std::vector<ValueId> overwritten(Graph& graph) const;
  bool shares_written(std::span<const TensorBase> inputs) const;
  bool has_same_grads(std::span<const TensorBase> inputs) const;
  void record(std::span<const TensorBase> inputs,
              std::vector<TensorBase>& outputs,
              std::span<const int64_t> symbols);
  void add_inputs_to(autograd::Node& node,
                     std::span<const TensorBase> inputs) const;
  void write_back(std::span<const TensorBase> inputs,
                  std::span<const TensorBase> outputs) const;
  TensorBase result(size_t place,
                    std::span<const TensorBase> inputs,
                    std::span<const TensorBase> outputs,
                    const int64_t* numbers) const;

  SizeTable table_;              // of looks, guards and results
  std::vector<int64_t> lowest_;  // of symbols
  std::vector<int32_t> guards_;  // places in the table
  std::vector<Look> looks_;
  bool grad_mode_ = false;
  bool inference_ = false;
  autocast::Settings autocast_;
  std::optional<InnerPasses> passes_;  // Note [Passes inside]
  std::vector<size_t> graded_;  // the last results are grads of these inputs
  std::vector<std::pair<size_t, std::string>> released_;  // outputs
  std::vector<Result> results_;
  std::vector<std::vector<SizeArguments>> steps_;  // by result, by step
  bool has_steps_ = false;                         // that say expressions
  std::vector<Mutation> mutations_;
  size_t outputs_ = 0;               // of the program; others are saved
  std::vector<int32_t> tangents_;    // by output: its place among them, or -1
  std::vector<TangentSet> causes_;   // by input: what its gradient is made of
  std::vector<TangentSet> readers_;  // by saved value, see causes.h
  std::vector<bool> all_readers_;    // which are read where all arrive
  std::vector<Split::Saved> saved_;
  std::unique_ptr<Executor> forward_, backward_;
  std::unique_ptr<Backwards> others_;  // passes; null where there is one
};

}  // namespace taeda::compiler
