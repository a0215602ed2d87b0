// A backward pass that is about to run, as data.
#pragma once

#include <taeda/csrc/autograd/engine.h>
#include <taeda/csrc/autograd/fields.h>

#include <span>
#include <string>
#include <vector>

namespace taeda::compiler {

// Note [Slots]
// The tensors of a pass have numbers: first those that it begins with (the
// gradients of its roots, and what its nodes have saved), each tensor once,
// then what is computed on the way. What is packed by a hook gets its number
// when it is unpacked.
using Slot = int32_t;
inline constexpr Slot kNoSlot = -1;
inline constexpr Slot kPacked = -2;

// A call of a node.
struct RecordedCall {
  // How its gradients are had.
  enum Kind : uint8_t {
    Captured,    // not called
    Accumulate,  // adds to a leaf, and does nothing else
    Traced,      // its formula can be run on stand-ins
    Opaque,      // the node itself is called
  };
  // Where a gradient goes; call -1: nobody asks for it.
  struct Target {
    int32_t call = -1;
    uint32_t input_nr = 0;
  };
  Kind kind = Opaque;
  bool packed = false;  // something saved is packed
  bool hooked = false;  // hooks of tensors
  autograd::PassCall at;
  std::vector<Target> targets;
  autograd::NodeFields fields;
  std::vector<Slot> saved;  // in the order of the fields, lists laid out
  size_t numbers = 0;       // where its numbers begin
};

// How a slot's tensor lies: its sizes are numbers `sizes_at` and following.
// Strides follow them where they are not those of an `order`: dims from the
// outermost to the innermost, without holes.
struct RecordedLook {
  size_t sizes_at = 0;
  bool is_dense = false;
  SmallVector<uint8_t, 6> order;
};

// Note [Records of passes]
// `key` holds what a compiled pass fixes: kinds of nodes and how they hang
// together, plain values that they keep, dtypes, devices, modes. `numbers`
// holds the sizes, which may be symbols. Two passes with one key have as many
// numbers, in one order.
struct PassRecord {
  std::vector<uint64_t> key;
  std::vector<int64_t> numbers;
  std::vector<RecordedCall> calls;
  std::vector<TensorBase> slots;
  std::vector<RecordedLook> looks;  // of the slots
  struct Root {
    int32_t call = -1;
    uint32_t input_nr = 0;
    Slot slot = kNoSlot;
  };
  std::vector<Root> roots;
};

// Calls f(SavedVariable&) for each one, lists laid out.
template <class F>
void each_saved(const autograd::NodeFields& fields, F&& f) {
  for (const autograd::Field& field : fields.list()) {
    if (auto* one = std::get_if<autograd::SavedVariable*>(&field)) f(**one);
    if (auto* list = std::get_if<autograd::SavedList*>(&field)) {
      for (autograd::SavedVariable& v : **list) f(v);
    }
  }
}

// Where the sizes of what the call's node has made begin among the numbers.
size_t numbers_of_output(const RecordedCall& call, size_t output);

// Whether stand-ins can take the place of `t`.
bool is_plain(const TensorBase& t);

PassRecord record_pass(autograd::PassView& pass);

}  // namespace taeda::compiler
