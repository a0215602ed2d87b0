// A backward pass as graphs and what runs between them.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>
#include <taeda/csrc/compiler/walk/segment.h>

#include <map>
#include <memory>

namespace taeda::compiler {

// Note [Walks]
// A pass is walked in the order of the engine, with stand-ins for gradients, as
// far as formulas go. Where something has to be called as it is (a hook, a
// node whose formula is its own, what unpacks a saved tensor) the stretch
// before ends: its graph is compiled and run, what it leaves to do is done
// (leaves get their grads), then the call is made with real tensors. What it
// gives is looked at, and the walk goes on from there, with stand-ins that look
// so. A stretch and the call behind it are a stage; a stage has one stage
// behind it for each look that the call's results have had. So a pass that runs
// again finds its stages, and one whose hook does something new is captured
// from that hook on. Nothing of a stage changes once it is captured.

// What runs a stretch's graph.
class SegmentCode {
 public:
  virtual ~SegmentCode() = default;
  // Takes the inputs over.
  virtual std::vector<TensorBase> run(std::vector<TensorBase> inputs,
                                      std::span<const int64_t> symbols) = 0;
};

// Gradients that have arrived, by input of the node; several where they could
// not be summed yet.
using Buffer = std::vector<SmallVector<Slot, 1>>;

// How far a pass has come.
struct Position {
  enum Point : uint8_t {
    Start,     // of a call: its gradients are in its buffer
    Hooked,    // `grads` are behind the hooks of tensors
    Unpacked,  // and `unpacked` is what was packed
    Called,    // `grads` are the node's, for its targets
  };
  size_t call = 0;
  Point point = Start;
  std::vector<Slot> grads, unpacked;
  std::map<int32_t, Buffer> buffers;
};

// What is done with results of a stretch.
struct Effect {
  enum Kind : uint8_t {
    Accumulate,  // the call's node adds it to its leaf
    Retain,      // hook `index` of the call's node keeps it
    Capture,     // it is result `index` of the pass
  };
  Kind kind = Accumulate;
  bool last = false;  // nobody needs the slot after it
  uint32_t call = 0;
  size_t index = 0;
  Slot slot = kNoSlot;
};

// A call that is made as it is.
struct Opaque {
  enum Kind : uint8_t {
    None,    // the pass is over
    Hooks,   // of the tensors that the call's node made
    Unpack,  // what the call's node has saved behind hooks
    Call,    // the node with its hooks
    Sum,     // of two gradients for input `index` that no graph can hold
  };
  Kind kind = None;
  size_t call = 0;
  size_t index = 0;
  std::vector<Slot> inputs, outputs;
  std::string reason;
};

// What a call's result looks like.
struct Look {
  enum Kind : uint8_t { None, Plain, Other };
  Kind kind = None;
  std::vector<SymInt> sizes, strides;
  ScalarType dtype = kFloat;
  Device device;
  DispatchKeySet keys;
};

struct Stage {
  // What led here: looks of the results before, and guards.
  std::vector<Look> looks;
  SizeTable table;
  std::vector<SizeList> sizes, strides;  // of the looks
  std::vector<int32_t> guards;           // places in the table
  bool has_sizes = false;

  Slot slots = 0;                     // that there are so far
  std::unique_ptr<SegmentCode> code;  // null where there is nothing to compute
  std::vector<Slot> inputs, outputs;
  std::vector<bool> takes;       // inputs that nobody needs later
  std::vector<size_t> released;  // calls whose nodes are done
  std::vector<Effect> effects;
  std::vector<Slot> dropped;  // after the effects
  Opaque opaque;
  std::vector<Slot> spent;  // after the opaque call
  Position after;           // with all results of the call

  IntrusivePtr<ShapeEnv> env;
  SlotShapes shapes;
  std::vector<std::unique_ptr<Stage>> next;
};

}  // namespace taeda::compiler
