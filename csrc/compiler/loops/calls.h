// What the loop compiler knows of a call, from its record.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>
#include <taeda/csrc/compiler/loops/index_map.h>
#include <taeda/csrc/compiler/loops/program.h>

#include <unordered_map>
#include <unordered_set>

namespace taeda::compiler::loops {

enum class CallKind : uint8_t { Opaque, Pointwise, Reduce, View, Map };

struct Call {
  CallKind kind = CallKind::Opaque;
  Compute computes = Compute::F32;
  // Of a pointwise call: what its operands are converted to first.
  ScalarType common = ScalarType::Undefined;
  // Tensor operands by argument, in the order of the schema.
  std::vector<std::pair<size_t, ValueId>> operands;
  uint64_t dims = 0;    // that are reduced
  bool copies = false;  // the element itself: only the dtype may change
  bool frames = false;  // of a map: an operand's elements, and a number outside
  bool parts = false;   // of a map: places by quotients and remainders
  bool weaves = false;  // of a map: wants a loop with a woven axis
  int cost = 0;         // of an element, in additions
};

// What it takes to lower the call; Opaque where the record does not tell, or
// dtypes or devices are not known to loops.
Call describe(const Graph& graph, const Node& node);

// Note [Operands of 16 bits]
// Where the common dtype of a pointwise call's operands is one of 16 bits, its
// kernel takes other tensors, and numbers in place of tensors, as what that
// dtype keeps of them (`x + 1.1`); single values that the record says to be
// exact it takes as they are. Other numbers are no operands (a factor `alpha`).
bool is_rounded(const Node& node, size_t argument, bool single);

// An axis for each dim of more than one element.
Spaces::Dims fresh_dims(const Value& v, Spaces& spaces);

// Adds the call to a group: dims of its results, by those of operands that the
// group makes. False where it does not fit; `spaces` then is to be thrown away.
bool add_call(const Graph& graph,
              const Node& node,
              const Call& call,
              Spaces& spaces);

// Whether a call of a definition shows a part of a value that the group does
// not make: what reads it reads that value's memory.
bool is_window(const Graph& graph, const Node& node, const Spaces& spaces);
// Whether a call of a definition frames such a value, which windows show then:
// what reads it reads the value's memory within bounds.
bool is_frame(const Call& call, const Spaces& spaces);

// Whether what the call reads can be said by the group's axes, now that all
// calls have parted and merged them: inner ones of a map's dim have plain
// sizes.
bool has_places(const Graph& graph,
                const Node& node,
                const Call& call,
                const Spaces& spaces);

// Lowers a call of the group into a program. `vars` has the variables of the
// group's values, `load` gives that of an element of other ones.
class Lowering {
 public:
  Lowering(const Graph& graph, Spaces spaces);
  void lower(const Node& node, const Call& call);
  // Rounds a 16-bit value of the group to what its call would have stored.
  void round(ValueId value);
  // Writes a value of the group to the next output buffer.
  void store(ValueId value);
  Program& program() { return program_; }
  // Values in the order of the program's input buffers.
  const std::vector<ValueId>& inputs() const { return inputs_; }

 private:
  // A value behind a frame: where its elements are, dim by dim of the frame.
  struct Frame {
    ValueId value = kNoValue;
    std::vector<int64_t> offsets;
    expr::Literal fill;
  };

  Place place_of(ValueId value, const Spaces::Dims& dims) const;
  int buffer_of(ValueId memory);
  Var load_at(const MapRead& read);
  Var framed(const Frame& frame, ValueId shown, const Spaces::Dims& result);
  void add_frame(const Node& node, const Call& call);
  void lower_map(const Node& node, const Call& call);
  Var integer(const Linear& at, Compute type);
  Var operand(ValueId value, const Spaces::Dims& result);
  Var as_stored(ValueId value, const Spaces::Dims& result);
  void lower_pointwise(const Node& node, const Call& call);
  void lower_reduce(const Node& node, const Call& call);
  expr::Id bind(const Node& node,
                expr::Id id,
                Compute computes,
                const std::unordered_map<std::string, expr::Id>& names,
                std::vector<Var>* used = nullptr,
                ScalarType common = ScalarType::Undefined);
  Var stored_as(Var v, ScalarType dtype);

  const Graph& graph_;
  const Spaces spaces_;
  Program program_;
  std::unordered_map<int, size_t> axes_;  // of the program, by those of spaces
  std::unordered_map<ValueId, Var> vars_;
  std::unordered_map<ValueId, int> buffers_;
  std::unordered_set<ValueId> windows_;
  std::unordered_map<ValueId, Frame> frames_;
  std::vector<ValueId> inputs_;
};

}  // namespace taeda::compiler::loops
