// A kernel that its calls are held to.
#pragma once

#include <taeda/csrc/compiler/graph/executor.h>
#include <taeda/csrc/compiler/loops/region.h>

namespace taeda::compiler::loops {

// Told in words where a kernel's results differ; does not return.
using ReportDifference = void (*)(const std::string& text);

// Note [Checked kernels]
// Both run on the same inputs, and results may differ by the roundings of as
// many operations as kernels have: a share of the largest number of a result,
// which depends on its dtype. Nothing is computed into an input, whose old
// numbers the calls read.
class CheckedRegion final : public Region {
 public:
  CheckedRegion(IntrusivePtr<LoopRegion> kernel, ReportDifference report);
  bool run(std::span<const TensorBase> inputs,
           std::span<const TensorBase> outputs,
           IntArrayRef values) override;
  const IntrusivePtr<LoopRegion>& kernel() const { return kernel_; }

 private:
  IntrusivePtr<LoopRegion> kernel_;
  Executor calls_;
  ReportDifference report_;
};

}  // namespace taeda::compiler::loops
