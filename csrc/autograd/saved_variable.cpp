#include <taeda/csrc/autograd/saved_variable.h>

#include <taeda/csrc/autograd/variable.h>

namespace taeda::autograd {

SavedHooksState& saved_hooks() {
  thread_local SavedHooksState state;
  return state;
}

namespace {
// Whether this thread has hooks; saves the lookup of the state above.
thread_local bool has_hooks = false;
}  // namespace

void push_saved_hooks(std::shared_ptr<SavedTensorHooks> hooks) {
  SavedHooksState& state = saved_hooks();
  if (!state.disabled.empty()) {
    throw_error(ErrorKind::Runtime, state.disabled);
  }
  state.stack.push_back(std::move(hooks));
  has_hooks = true;
}

void pop_saved_hooks() {
  SavedHooksState& state = saved_hooks();
  TAEDA_CHECK(!state.stack.empty(), "no saved tensor hooks are in force");
  state.stack.pop_back();
  has_hooks = !state.stack.empty();
}

// release_node takes long chains of nodes apart without recursion.
SavedVariable::~SavedVariable() { release_node(std::move(grad_fn_)); }

void SavedVariable::save(const Tensor& t, bool is_output) {
  if (!t.defined()) return;
  TAEDA_CHECK(!t.impl()->is_inference,
              "Inference tensors cannot be saved for backward. Make a clone of "
              "this one outside of inference mode and use that, or leave out "
              "what records it.");
  state_ = State::Saved;
  is_output_ = is_output;
  requires_grad_ = t.requires_grad();
  // An output's node is the owner of this variable. Saved with its history,
  // node and tensor would keep each other alive; unpack() gives it its node
  // back.
  if (is_output) {
    output_nr_ = output_nr(t);
    data_ = detach(t);
  } else {
    data_ = t;
    AutogradMeta* meta = meta_or_null(t);
    has_node_ = meta != nullptr && meta->grad_fn;
  }
  version_ = data_.version();
  if (TAEDA_UNLIKELY(has_hooks)) {
    std::shared_ptr<SavedTensorHooks> hooks = saved_hooks().stack.back();
    pack_with(*hooks);
  }
}

void SavedVariable::stand_in(const Tensor& t) {
  state_ = State::Saved;
  data_ = t;
  version_ = data_.version();
}

// What the hooks return stands for the value. Hooks see an input itself and may
// return any other tensor, so its place in the graph is kept here.
void SavedVariable::pack_with(SavedTensorHooks& hooks) {
  if (!is_output_ && requires_grad_) {
    IntrusivePtr<Node> node = grad_fn(data_);
    if (node) output_nr_ = output_nr(data_);
    grad_fn_ = node ? std::move(node) : grad_accumulator(data_);
  }
  // Hooks compute on values; nothing of that is recorded.
  GradModeGuard off(false);
  uint32_t before = data_.version();
  packed_ = hooks.pack(data_);
  TAEDA_CHECK(data_.version() == before,
              "A saved tensor pack hook is modifying its input in place. What "
              "is saved is in use elsewhere too, so a hook may only read it; "
              "change a clone instead.");
  data_.reset();
}

void SavedVariable::register_hooks(SavedTensorHooks& hooks) {
  TAEDA_CHECK(state_ != State::Released,
              "Calling register_hooks on a saved tensor after it has been "
              "freed. Saved intermediate values of the graph are freed when "
              "you call .backward() or autograd.grad(). Specify "
              "retain_graph=True if you need to backward through the graph a "
              "second time or if you need to access saved variables after "
              "calling backward.");
  TAEDA_CHECK(state_ == State::Saved,
              "Calling register_hooks on a saved tensor with value None is "
              "forbidden");
  TAEDA_CHECK(!packed_,
              "Calling register_hooks on a saved tensor whose hooks have "
              "already been set. Hint: only one pair of hooks is allowed at a "
              "time.");
  pack_with(hooks);
}

static constexpr const char* kTwice =
    "Trying to backward through the graph a second time (or directly access "
    "saved tensors after they have already been freed). Saved intermediate "
    "values of the graph are freed when you call .backward() or "
    "autograd.grad(). Specify retain_graph=True if you need to backward "
    "through the graph a second time or if you need to access saved tensors "
    "after calling backward.";

void backward_twice() { throw_error(ErrorKind::Runtime, kTwice); }

bool says_backward_twice(const Error& error) {
  return error.message() == kTwice;
}

// The engine calls this for each saved tensor, so that an in-place change
// between forward and backward is an error and not a wrong gradient.
void SavedVariable::check_version(const Node& owner) const {
  uint32_t now = data_.version();
  if (TAEDA_LIKELY(now == version_)) return;
  std::string text =
      "one of the variables needed for gradient computation has been modified "
      "by an inplace operation: [";
  append_to(text, dtype_name(data_.dtype()));
  text += " tensor ";
  append_to(text, data_.sizes());
  text += "]";
  AutogradMeta* meta = meta_or_null(data_);
  const Node* maker =
      is_output_ ? &owner : (meta == nullptr ? nullptr : meta->grad_fn.get());
  if (maker != nullptr) {
    uint32_t nr = is_output_ ? output_nr_ : meta->output_nr;
    text +=
        str_cat(", which is output ", nr, " of ", operator_name(*maker), ",");
  }
  text += str_cat(" is at version ",
                  now,
                  "; expected version ",
                  version_,
                  " instead; it was saved for ",
                  owner.name());
  text += anomaly_mode().enabled
              ? ". Hint: the backtrace further above shows the operation that "
                "failed to compute its gradient. The variable in question was "
                "changed in there or anywhere later. Good luck!"
              : ". Hint: enable anomaly detection to find the operation that "
                "failed to compute its gradient, with "
                "autograd.set_detect_anomaly(True).";
  throw_error(ErrorKind::Runtime, std::move(text));
}

Tensor SavedVariable::unpack(const IntrusivePtr<Node>& owner) const {
  if (state_ == State::Empty) return {};
  if (state_ == State::Released) backward_twice();
  if (TAEDA_UNLIKELY(packed_ != nullptr)) {
    return with_history(packed_->unpack(), owner);
  }
  check_version(*owner);
  if (!is_output_) {
    TAEDA_CHECK(!has_node_ || data_.requires_grad(),
                owner->name(),
                ": Trying to use a saved tensor that has been detached in "
                "place by detach_(), which takes its place in the graph away; "
                "use detach() instead");
    return data_;
  }
  // History matters only to what is recorded.
  if (!requires_grad_ || !grad_enabled()) return data_;
  return with_history(data_, owner);
}

// The value as the formula shall see it: in the graph where the forward call
// saw it, so that a second derivative finds its way.
Tensor SavedVariable::with_history(Tensor data,
                                   const IntrusivePtr<Node>& owner) const {
  if (!requires_grad_) return data;
  // Whoever else has what a hook gave must not get its history: the node would
  // hold itself by what it packed.
  Tensor out = detach(data);
  if (is_output_) {
    set_gradient_edge(out, {owner, output_nr_});
    return out;
  }
  if (grad_fn_ && grad_fn_->accumulated_variable() != nullptr) {
    // A leaf: what is recorded from here on leads to the same accumulator.
    out.impl()->add_key(DispatchKey::Autograd);
    meta_of(out).accumulator = WeakPtr<Node>(grad_fn_.get());
    return out;
  }
  set_gradient_edge(out, {grad_fn_, output_nr_});
  return out;
}

void SavedVariable::release() {
  if (state_ == State::Empty) return;
  state_ = State::Released;
  data_.reset();
  packed_.reset();
  release_node(std::move(grad_fn_));
}

SavedList save_list(TensorList list) {
  SavedList out(list.size());
  for (size_t i = 0; i < list.size(); ++i) out[i].save(list[i]);
  return out;
}

SavedList save_list(ArrayRef<OptionalTensor> list) {
  SavedList out(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    if (list[i]) out[i].save(*list[i]);
  }
  return out;
}

std::vector<Tensor> unpack_list(const SavedList& list, Node& owner) {
  std::vector<Tensor> out;
  out.reserve(list.size());
  for (const SavedVariable& v : list) out.push_back(v.unpack(owner));
  return out;
}

std::vector<OptionalTensor> unpack_optional_list(const SavedList& list,
                                                 Node& owner) {
  std::vector<OptionalTensor> out;
  out.reserve(list.size());
  for (const SavedVariable& v : list) {
    Tensor t = v.unpack(owner);
    out.push_back(t.defined() ? OptionalTensor(std::move(t)) : std::nullopt);
  }
  return out;
}

}  // namespace taeda::autograd
