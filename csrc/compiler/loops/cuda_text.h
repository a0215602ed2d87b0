// What kernels for CUDA are printed of: heads, indices, and what is done for
// elements.
#pragma once

#include <taeda/csrc/compiler/loops/print_body.h>
#include <taeda/csrc/compiler/loops/print_cuda.h>

namespace taeda::compiler::loops {

// Loads and stores of packs are elements of what was read or will be written.
class CudaBody final : public BodyPrinter {
 public:
  CudaBody(Program& program, const CudaSchedule& s, NumberNames& names)
      : BodyPrinter(program, s.nest, names), program_(program), s_(s) {}

  // The packed loads that are needed for roots, and the packed stores of them.
  std::vector<Var> packs(const std::vector<Var>& roots) const;
  std::string address(Var v) const;

 private:
  std::string place(Var v, const std::string& index) const override;

  const Program& program_;
  const CudaSchedule& s_;
};

// A text with its launches, as it grows.
class CudaText {
 public:
  CudaText(const Program& program, const CudaSchedule& s);

 protected:
  void line(const std::string& text) { made_.text += text + "\n"; }
  // Up to the first brace, with pointers for all accesses.
  void head(const CudaLaunch& launch);
  // The indices of axes, of which `from` counts the points.
  void indices(const std::vector<size_t>& axes, const std::string& from);
  // What stores and sums need and what becomes of them, at the elements from
  // the indices on; values at `turn` go to registers. Stores stand behind
  // `guard`.
  void elements(CudaBody& body,
                const PassParts& parts,
                const std::string& turn,
                const char* guard);

  Program p_;  // printing adds to its expressions
  const CudaSchedule& s_;
  NumberNames names_;  // none: Note [Kernels for CUDA]
  CudaCode made_;

 private:
  void declare_packs(const CudaBody& body, const std::vector<Var>& packs);

  std::vector<bool> shared_;  // by buffer: with another one
};

}  // namespace taeda::compiler::loops
