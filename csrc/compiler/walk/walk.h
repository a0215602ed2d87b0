// Captures the stages of a pass: Note [Walks].
#pragma once

#include <taeda/csrc/compiler/walk/stage.h>

namespace taeda::compiler {

// What stays the same for all stages of a pass.
struct WalkPlan {
  explicit WalkPlan(Numbers n) : numbers(std::move(n)) {}
  std::vector<uint64_t> key;
  std::vector<IntrusivePtr<IntrusiveTarget>> kept;  // that the key names
  Numbers numbers;
  Slot next_slot = 0;
  std::vector<int32_t> last_reads;  // by initial slot: the last call
  SlotShapes shapes;                // of the initial slots
  std::vector<std::unique_ptr<Stage>> first;
};
std::unique_ptr<WalkPlan> make_plan(const PassRecord& record, Numbers numbers);

// Fills in `stage`, which begins at `from` and has an env, if there are
// symbols, and the shapes of the slots by it. Gives the graph to be compiled,
// nothing where there is none.
std::optional<Graph> walk_stage(const PassRecord& record,
                                WalkPlan& plan,
                                Position from,
                                std::span<const TensorBase> slots,
                                Stage& stage);
// The position at the beginning of a pass.
Position first_position(const PassRecord& record);

}  // namespace taeda::compiler
