// Calls that one kernel computes.
#pragma once

#include <taeda/csrc/compiler/graph/graph.h>
#include <taeda/csrc/compiler/loops/schedule.h>
#include <taeda/csrc/compiler/loops/tiles.h>
#include <taeda/csrc/compiler/loops/unit.h>

#include <mutex>

namespace taeda::compiler::loops {

class LoopRegion final : public Region {
 public:
  // `kernel_numbers`: the expressions that the kernel's text names.
  LoopRegion(Graph calls,
             const Program& program,
             const Schedule& schedule,
             std::vector<SymInt> kernel_numbers);
  // `from[b]` is which input (or, from the inputs' count on, which output) the
  // kernel's buffer b is.
  void set_buffers(std::vector<size_t> from) { from_ = std::move(from); }
  bool run(std::span<const TensorBase> inputs,
           std::span<const TensorBase> outputs,
           IntArrayRef values) override;
  bool may_overwrite(size_t output, size_t input) const override;
  // The unit that the kernel is part of, once its text is whole.
  void set_unit(IntrusivePtr<Unit> unit, size_t index) {
    unit_ = std::move(unit);
    index_ = index;
  }
  Unit& unit() const { return *unit_; }
  const Program& program() const { return program_; }
  const std::vector<size_t>& from() const { return from_; }

 private:
  // Behind the kernel's numbers: how often its outer loop turns, the work of a
  // turn, and the elements of its arrays; then the input's sizes and strides
  // that are expressions.
  enum Fact : uint8_t { kOuter, kWork, kArrays, kFacts };
  struct Dim {
    size_t input, dim;
    bool is_stride;
  };
  bool lies_as_planned(std::span<const TensorBase> inputs,
                       IntArrayRef values) const;
  // What runs until there is code; null where the calls do.
  const TileProgram* tiles();

  Program program_;
  std::vector<size_t> from_;
  std::vector<std::pair<int, int>> sharing_;  // a written and a read buffer
  size_t kernel_numbers_;
  std::vector<Dim> dims_;
  IntrusivePtr<Unit> unit_;
  size_t index_ = 0;
  std::once_flag tiles_asked_;
  std::unique_ptr<const TileProgram> tiles_;
};

}  // namespace taeda::compiler::loops
