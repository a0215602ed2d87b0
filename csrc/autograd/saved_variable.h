// A tensor kept for backward, with the checks and hooks that go with it.
#pragma once

#include <taeda/csrc/autograd/node.h>

#include <vector>

namespace taeda::autograd {

// What a pack hook made of a tensor.
struct TAEDA_API PackedTensor {
  virtual ~PackedTensor() = default;
  virtual Tensor unpack() = 0;
};

// A pair of saved-tensor hooks.
struct TAEDA_API SavedTensorHooks {
  virtual ~SavedTensorHooks() = default;
  virtual std::unique_ptr<PackedTensor> pack(const Tensor& t) = 0;
};

// The hooks of this thread; the last one is in force. A message in
// `disabled` makes pushing an error.
struct SavedHooksState {
  std::vector<std::shared_ptr<SavedTensorHooks>> stack;
  std::string disabled;
};
TAEDA_API SavedHooksState& saved_hooks();
TAEDA_API void push_saved_hooks(std::shared_ptr<SavedTensorHooks> hooks);
TAEDA_API void pop_saved_hooks();

// Note [Saved tensors]
// Inputs are saved as they are. An output is saved without its history, or it
// would hold the node that holds it; unpacking gives it back. What a hook
// packed has to get its history back too.
class TAEDA_API SavedVariable {
 public:
  SavedVariable() = default;
  SavedVariable(const Tensor& t, bool is_output) { save(t, is_output); }
  SavedVariable(SavedVariable&&) = default;
  SavedVariable& operator=(SavedVariable&&) = default;
  ~SavedVariable();

  void save(const Tensor& t, bool is_output = false);
  // `owner` is the node that an output was saved for. Undefined if nothing was
  // saved; RuntimeError when the tensor was changed in place or freed.
  Tensor unpack(const IntrusivePtr<Node>& owner) const;
  Tensor unpack(Node& owner) const {
    return unpack(IntrusivePtr<Node>::share(&owner));
  }
  void release();
  // `node._raw_saved_x.register_hooks(pack, unpack)`.
  void register_hooks(SavedTensorHooks& hooks);
  bool released() const { return state_ == State::Released; }
  bool is_empty() const { return state_ == State::Empty; }
  // Whether unpacking runs a hook.
  bool is_packed() const { return packed_ != nullptr; }
  // Keeps `t` as it is: no hook packs it, whatever hooks are in force.
  void stand_in(const Tensor& t);

 private:
  enum class State : uint8_t { Empty, Saved, Released };
  void pack_with(SavedTensorHooks& hooks);
  void check_version(const Node& owner) const;
  Tensor with_history(Tensor data, const IntrusivePtr<Node>& owner) const;

  Tensor data_;
  IntrusivePtr<Node> grad_fn_;  // of a packed input that is no leaf
  std::unique_ptr<PackedTensor> packed_;
  uint32_t version_ = 0;
  uint32_t output_nr_ = 0;
  State state_ = State::Empty;
  bool is_output_ = false;
  bool requires_grad_ = false;
  bool has_node_ = false;  // an input that was no leaf
};

// The same for lists and for other things that a node frees.
using SavedList = std::vector<SavedVariable>;
TAEDA_API SavedList save_list(TensorList list);
TAEDA_API SavedList save_list(ArrayRef<OptionalTensor> list);
TAEDA_API std::vector<Tensor> unpack_list(const SavedList& list, Node& owner);
TAEDA_API std::vector<OptionalTensor> unpack_optional_list(
    const SavedList& list, Node& owner);
inline void release_list(SavedList& list) {
  for (SavedVariable& v : list) v.release();
}

[[noreturn]] TAEDA_API void backward_twice();
TAEDA_API bool says_backward_twice(const Error& error);

}  // namespace taeda::autograd
