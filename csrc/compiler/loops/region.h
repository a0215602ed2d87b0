// Calls that one kernel computes.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>
#include <taeda/csrc/compiler/loops/schedule.h>
#include <taeda/csrc/compiler/loops/unit.h>

namespace taeda::compiler::loops {

class LoopRegion final : public Region {
 public:
  // `from[b]` is which input (or, from the inputs' count on, which output) the
  // kernel's buffer b is.
  LoopRegion(Graph calls,
             const Program& program,
             const Schedule& schedule,
             std::vector<size_t> from);
  bool run(std::span<const TensorBase> inputs,
           std::span<const TensorBase> outputs) override;
  bool may_overwrite(size_t output, size_t input) const override;
  // The unit that the kernel is part of, once its text is whole.
  void set_unit(IntrusivePtr<Unit> unit, size_t index) {
    unit_ = std::move(unit);
    index_ = index;
  }
  const Program& program() const { return program_; }
  const std::vector<size_t>& from() const { return from_; }

 private:
  bool lies_as_planned(std::span<const TensorBase> inputs) const;

  Program program_;
  std::vector<size_t> from_;
  std::vector<std::pair<size_t, size_t>> sharing_;  // places in from_'s sense
  int64_t outer_ = 1, grain_ = 1;
  IntrusivePtr<Unit> unit_;
  size_t index_ = 0;
};

}  // namespace taeda::compiler::loops
