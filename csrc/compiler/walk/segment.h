// A stretch of a backward pass, run on stand-ins: one graph.
#pragma once

#include <taeda/csrc/compiler/graph/trace_level.h>
#include <taeda/csrc/compiler/walk/numbers.h>
#include <taeda/csrc/functorch/functional_level.h>

#include <map>
#include <unordered_map>

namespace taeda::compiler {

// How a slot's tensor lies where symbols say it; the tensor itself tells where
// none do.
struct SlotShape {
  std::vector<SymInt> sizes, strides;
};
using SlotShapes = std::unordered_map<Slot, SlotShape>;

// Wrappers as in Note [Tracing] stand for the tensors of slots. A node's
// formula is run by a blank node of its class that has stand-ins and symbols
// where the node has tensors and sizes, so that the node itself is not touched:
// other threads may run it meanwhile.
class Segment {
 public:
  // `env`: of the symbols; null where there are none. `slots` outlive it.
  Segment(const PassRecord& record,
          const Numbers& numbers,
          const SlotShapes& shapes,
          IntrusivePtr<ShapeEnv> env,
          std::span<const TensorBase> slots);

  // Throws NotImplemented for what no wrapper can stand for.
  TensorBase stand_in(Slot slot);
  // The slot that a wrapper stands for; kNoSlot for a value of this segment.
  Slot input_of(const TensorBase& wrapper);
  ValueId value_of(const TensorBase& wrapper);
  // What the call's node makes of wrappers, brought to the form of its targets;
  // `unpacked`: slots for what is packed.
  autograd::Tensors apply(const RecordedCall& call,
                          autograd::Tensors grads,
                          std::span<const Slot> unpacked);
  // The shape of a value, if it has symbols.
  std::optional<SlotShape> shape_of(ValueId value) const;
  // The graph with these outputs.
  Graph take_graph(std::vector<ValueId> outputs);
  const std::vector<Slot>& inputs() const { return inputs_; }
  const LevelPtr& outer() const { return outer_; }
  const LevelPtr& inner() const { return inner_; }

 private:
  TensorBase like(Slot slot) const;
  SymInt number(size_t position) const;
  autograd::OutputInfo info_of(const RecordedCall& call, size_t output) const;
  const IntrusivePtr<autograd::Node>& target(int32_t call);
  IntrusivePtr<autograd::Node> copy(const RecordedCall& call,
                                    std::span<const Slot> unpacked);

  const PassRecord& record_;
  const Numbers& numbers_;
  const SlotShapes& shapes_;
  IntrusivePtr<ShapeEnv> env_;
  std::span<const TensorBase> slots_;
  IntrusivePtr<TraceLevel> level_;
  IntrusivePtr<functorch::FunctionalLevel> functional_;
  LevelPtr outer_, inner_;
  std::vector<Slot> inputs_;
  std::unordered_map<Slot, TensorBase> stand_ins_;
  std::map<int32_t, IntrusivePtr<autograd::Node>> targets_;
};

}  // namespace taeda::compiler
