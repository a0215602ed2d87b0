// Calls of users' differentiable C++ functions, as they are recorded. The
// templates that users derive from are in <taeda/autograd.h>.
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/csrc/autograd/saved_variable.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace taeda::autograd {

class FunctionNode;

// What forward leaves for backward.
class TAEDA_API FunctionContext {
 public:
  virtual ~FunctionContext();

  std::unordered_map<std::string, IValue> saved_data;

  // Whether the gradient of forward's argument i is asked for.
  bool needs_input_grad(size_t i) const;
  // On (the default): backward gets zeros for outputs without gradient.
  void set_materialize_grads(bool on) { materialize_ = on; }

 protected:
  std::vector<Tensor> saved() const;

  std::vector<Tensor> to_save_;
  std::vector<Tensor> dirty_;
  std::vector<Tensor> non_differentiable_;

 private:
  friend class FunctionNode;
  FunctionNode* node_ = nullptr;
  SavedList saved_;
  bool materialize_ = true;
};

class TAEDA_API FunctionNode final : public Node {
 public:
  using Backward = std::vector<Tensor> (*)(FunctionContext& context,
                                           std::vector<Tensor> grads);

  FunctionNode(std::string name,
               std::unique_ptr<FunctionContext> context,
               Backward backward);

  // Before forward: its arguments in order.
  void add_argument(const Tensor& t);
  void add_argument(const OptionalTensor& t) {
    add_argument(t ? *t : Tensor());
  }
  void add_other_argument() { inputs_.emplace_back(); }
  // After forward: makes its results outputs of this node if something is to
  // be differentiated. A result that is an argument is replaced by a view.
  void record(ArrayRef<Tensor*> results);

  FunctionContext& context() { return *context_; }
  std::string name() const override { return name_; }
  Tensors apply(Tensors&& grads) override;
  void release_variables() override;

 private:
  friend class FunctionContext;
  void save(ArrayRef<Tensor*> results);

  struct Input {
    Tensor tensor;  // during forward only
    bool is_tensor = false;
    bool needs_grad = false;
  };

  std::string name_;
  std::unique_ptr<FunctionContext> context_;
  Backward backward_;
  std::vector<Input> inputs_;
};

// How a result of a user's function stands to its call.
struct ResultKind {
  bool dirty;               // an argument that forward changed in place
  bool through;             // an argument that was returned as it came
  bool non_differentiable;  // by the user's word
  bool alone;               // the only result
};
// Makes a result an output of the function's node. One that was passed through
// becomes a tensor of its own.
TAEDA_API void record_result(const IntrusivePtr<Node>& node,
                             Tensor& t,
                             ResultKind kind);

// A view that such a function returns, recorded or not: what writes to it would
// pass the function's own backward over.
TAEDA_API void mark_function_view(const Tensor& view, bool alone);

// "Square" for a typeid name.
TAEDA_API std::string class_name(const char* mangled);

}  // namespace taeda::autograd
