// The compiler's graph: calls of operators on values, without writes.
#pragma once

#include <taeda/aten/core/level.h>
#include <taeda/c10/symbolic/sym_int.h>
#include <taeda/csrc/compiler/graph/sizes.h>

#include <span>
#include <string>
#include <vector>

namespace taeda::compiler {

// Note [Graph]
// What a captured function computes, below autograd: calls of operators with a
// record, in an order in which they may run, each value made once and never
// written to. Views stay views (they cost nothing and say how elements are
// found); what a program writes to its inputs is a result of the graph that is
// copied into them afterwards. A value knows its geometry, whose integers may
// be expressions (Note [Sizes in graphs]), so that passes need no tensors.
// Passes replace nodes by regions: loops over elements that take the place of
// several calls. An executor gives each region its results' memory.
using ValueId = int32_t;
inline constexpr ValueId kNoValue = -1;

struct Value {
  std::vector<SymInt> sizes, strides;
  SymInt offset = 0;  // of views: counted from the first element of `base`
  ScalarType dtype = ScalarType::Float;
  Device device;
  ValueId base = kNoValue;  // itself no view: whose memory a view shows
  int32_t node = -1;        // that makes it; -1 for inputs and constants
  int32_t result = 0;       // which of the node's results it is
  bool lazy = false;        // conjugated or negated when it is read
  TensorBase constant;      // of constants, defined
  std::string name;         // of inputs: what the program calls it
};

// A tensor among a call's arguments.
struct Use {
  uint16_t argument = 0;
  int16_t element = -1;  // of a list; -1 where the argument is the tensor
  ValueId value = kNoValue;
};

class Region;

struct Node {
  const OperatorEntry* op = nullptr;  // null for a region
  std::vector<IValue> arguments;      // where `uses` stand: empty tensors
  std::vector<Use> uses;              // in the order of the arguments
  std::vector<ValueId> results;       // kNoValue where the result is undefined
  IntrusivePtr<Region> region;
  bool backward = false;  // called by the backward pass
  bool behind = false;    // waits for a pass inside: see made_again
  int32_t line = -1;      // the captured call that it comes from
};

struct Graph {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;  // kNoValue where an output is undefined
  std::vector<SymInt> symbols;   // whose values a run gets

  const Value& operator[](ValueId v) const {
    return values[static_cast<size_t>(v)];
  }
  Value& operator[](ValueId v) { return values[static_cast<size_t>(v)]; }
};

// Calls that were fused. It can always be computed by the calls themselves,
// which is what runs until its code is there.
class Region : public IntrusiveTarget {
 public:
  // The fused part as a graph: its inputs are the values that the region's
  // node uses, in that order, its outputs the node's results.
  Graph body;

  // Whose values `run` gets.
  std::vector<SymInt> numbers;

  // Computes into `outputs`, which are allocated as `body` says, contiguous or
  // by the strides of the value. False where its code is not there yet, or not
  // for these tensors and numbers; then nothing was written.
  virtual bool run(std::span<const TensorBase> inputs,
                   std::span<const TensorBase> outputs,
                   IntArrayRef numbers) = 0;

  // Whether output `output` may lie in the memory of input `input`: each
  // element of that is read before the element at the same place is written.
  virtual bool may_overwrite(size_t output, size_t input) const {
    (void)output, (void)input;
    return false;
  }
};

// Puts a tensor where a use stands among the arguments of its node.
void put_use(std::span<IValue> arguments, const Use& use, TensorBase value);

// Throws where a node uses a value that is not made before it, a result has
// two makers, or a use names no tensor argument.
void check(const Graph& graph);
// One line a node, for people.
std::string text_of(const Graph& graph);

}  // namespace taeda::compiler
