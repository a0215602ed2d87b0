// Runs graphs.
#pragma once

#include <taeda/c10/util/small_vector.h>
#include <taeda/csrc/compiler/graph/graph.h>

#include <memory>

namespace taeda::compiler {

// Note [Executing]
// The nodes run in their order, below autograd. A view whose place is known is
// made without a call; other calls go through the dispatcher; a region gets its
// results' memory, and where its code is not there its calls run one by one. A
// value is let go after its last use. What a call gives must lie as its value
// says, since later nodes were chosen by that: where a kernel chose other
// strides than the rule, its result is copied. Nothing of an executor changes
// while it runs, so that threads may share it.
class Executor {
 public:
  // `into`: Note [Writes in place]; by value, or empty.
  explicit Executor(Graph graph, std::vector<ValueId> into = {});
  ~Executor();
  Executor(Executor&&) noexcept;

  // One tensor for each input; taken over, so that memory which nobody else
  // holds is free after its last use. `symbols`: the values of the graph's.
  // Where `in_place` is false, nothing is written to inputs.
  std::vector<TensorBase> run(std::vector<TensorBase> inputs,
                              std::span<const int64_t> symbols = {},
                              bool in_place = true) const;
  // How an input lies.
  struct Layout {
    DimVector sizes, strides;
  };
  Layout layout_of_input(size_t input, std::span<const int64_t> symbols) const;
  const Graph& graph() const { return graph_; }

 private:
  struct Step;
  // The tensors of a run by value, and the integers of its SizeTable.
  struct Values {
    SmallVector<TensorBase, 24> tensors;
    std::span<const int64_t> symbols;
    SizeNumbers numbers;
    TensorBase& operator[](ValueId id) {
      return tensors[static_cast<size_t>(id)];
    }
  };
  struct Lists {
    SizeList sizes, strides;
  };

  void plan();
  void drop_unread_views();
  void plan_frees();
  void run_view(const Step& step, Values& values) const;
  void run_call(const Step& step, Values& values, Stack& stack) const;
  void run_region(const Step& step, Values& values, bool in_place) const;
  void take_results(const Step& step, Values& values, Stack& stack) const;

  Graph graph_;
  SizeTable table_;
  std::vector<Lists> lists_;  // by value
  std::vector<ValueId> into_;
  std::vector<Step> steps_;
  std::vector<ValueId> kept_constants_;
};

// `t` with the given strides: itself, or a copy.
TensorBase laid_out(const TensorBase& t, IntArrayRef strides);

}  // namespace taeda::compiler
