// What autograd knows of a call of a compiled program.
#pragma once

#include <taeda/csrc/autograd/fields.h>
#include <taeda/csrc/compiler/graph/compiled.h>

namespace taeda::compiler {

class CompiledNode final : public autograd::Node {
 public:
  CompiledNode(IntrusivePtr<CompiledProgram> program,
               std::span<const int64_t> symbols)
      : program_(std::move(program)),
        symbols_(symbols.begin(), symbols.end()) {}
  std::string name() const override { return "CompiledFunctionBackward"; }
  autograd::Tensors apply(autograd::Tensors&& grads) override;
  void release_variables() override;
  bool list_fields(autograd::NodeFields& fields) override {
    fields.add_shared(program_);
    fields.add(symbols_, saved_);
    return true;
  }
  IntrusivePtr<autograd::Node> blank() const override {
    return make_intrusive<CompiledNode>(program_, IntArrayRef());
  }
  void reserve(size_t saved) { saved_.reserve(saved); }
  void save(const TensorBase& t, bool is_output) {
    saved_.emplace_back(t, is_output);
  }

 private:
  std::vector<TensorBase> take_saved(const std::vector<bool>& reads);
  TensorBase unread(size_t saved) const;
  std::vector<bool> readers(const TangentSet& arrived) const;
  TensorBase tangent(size_t output, const TensorBase& grad) const;

  IntrusivePtr<CompiledProgram> program_;
  // The values that the call had.
  DimVector numbers() const;
  // Those, or what stands for them in another trace.
  Dims<SymInt> symbols_;
  autograd::SavedList saved_;
};

}  // namespace taeda::compiler
