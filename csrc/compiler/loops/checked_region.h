// A kernel that its calls are held to.
#pragma once

#include <taeda/csrc/compiler/graph/executor.h>

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
  CheckedRegion(IntrusivePtr<Region> kernel, ReportDifference report);
  bool run(std::span<const TensorBase> inputs,
           std::span<const TensorBase> outputs,
           IntArrayRef values) override;
  std::string loops_text() const override { return kernel_->loops_text(); }
  std::string kernel_text() const override { return kernel_->kernel_text(); }

 private:
  IntrusivePtr<Region> kernel_;
  Executor calls_;
  ReportDifference report_;
};

}  // namespace taeda::compiler::loops
