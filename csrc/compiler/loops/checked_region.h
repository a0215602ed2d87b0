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
  // `loops` is the loop program, for people.
  CheckedRegion(IntrusivePtr<Region> kernel,
                std::string loops,
                ReportDifference report);
  bool run(std::span<const TensorBase> inputs,
           std::span<const TensorBase> outputs) override;
  const IntrusivePtr<Region>& kernel() const { return kernel_; }

 private:
  IntrusivePtr<Region> kernel_;
  Executor calls_;
  std::string loops_;
  ReportDifference report_;
};

}  // namespace taeda::compiler::loops
