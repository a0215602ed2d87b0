// The interceptor stack: levels of a thread through which every call goes, from
// the innermost outwards, before autograd and the backends see it.
#pragma once

#include <taeda/aten/core/ivalue.h>
#include <taeda/aten/core/op_info.h>

#include <taeda/aten/core/dispatcher.h>

#include <span>

namespace taeda {

// Note [Levels]
// While a thread has levels, the key Intercept is among its included keys. Its
// boxed kernel finds the innermost level and hands it the call; composites are
// run first, so that a level sees what they are made of (unless it asks to keep
// one). A level computes the call with itself and what is inside of it out of
// the way (BelowLevel), which is how calls reach the levels around it, and at
// last autograd and the backends.
//
// A value that belongs to a level is a wrapper: a tensor without memory and
// without backend key, whose sizes are those that the level's code sees, around
// a value of the levels outside. Wrappers have Intercept and Wrapped among
// their keys. A level that lets autograd record wrappers (functorch/grad.h)
// calls the operator on them with Intercept excluded: below autograd the call
// meets Wrapped, and continues there on the values inside.
class TAEDA_API Level : public IntrusiveTarget {
 public:
  // Computes `op` of the last `op.info->arguments` values of the stack and puts
  // the results in their place.
  virtual void call(const OperatorEntry& op, Stack& stack) = 0;
  // A call that comes from below autograd with wrappers of this level.
  virtual void call_below_autograd(const OperatorEntry& op, Stack& stack);
  // Whether a composite is to be seen as it is.
  virtual bool keeps(const OperatorEntry&) const { return false; }
  // Whether wrappers of the level, once it has ended, stand for the value
  // inside (else using them is an error).
  virtual bool may_outlive() const { return false; }
  // Whether it is one of taeda.func's transforms, in which autograd's own calls
  // (backward, requires_grad_) are refused.
  virtual bool is_transform() const { return true; }
  virtual const char* kind() const = 0;
  // The value that a wrapper of this level stands for now.
  virtual TensorBase value_in(const TensorBase& wrapper) const;

  bool is_alive() const { return alive_; }

 private:
  friend void push_level(IntrusivePtr<Level> level);
  friend void pop_levels(size_t depth);
  bool alive_ = false;
};
using LevelPtr = IntrusivePtr<Level>;

// What a wrapper holds; a level may keep more. `value` may be behind the times
// where the level brings it up to date only when it is asked for (value_in).
struct Wrapped : IntrusiveTarget {
  Wrapped(LevelPtr l, TensorBase v, int64_t batch)
      : level(std::move(l)), value(std::move(v)), batch_dim(batch) {}
  LevelPtr level;
  TensorBase value;
  int64_t batch_dim;  // of a batched value, else -1
};
inline const Wrapped* wrapped_or_null(const TensorBase& t) {
  if (!t.defined() || !t.keys().has(DispatchKey::Wrapped)) return nullptr;
  return static_cast<const Wrapped*>(t.impl()->extra_or_null()->wrapped.get());
}
// The innermost level that a value belongs to; null for a plain tensor.
inline Level* level_of(const TensorBase& t) {
  const Wrapped* w = wrapped_or_null(t);
  return w == nullptr ? nullptr : w->level.get();
}
// The plain tensor in all wrappers: what a check of every element reads.
inline TensorBase innermost_value(TensorBase t) {
  while (const Level* level = level_of(t)) t = level->value_in(t);
  return t;
}
// A wrapper with the given sizes and strides.
TAEDA_API TensorBase make_wrapper(LevelPtr level,
                                  TensorBase value,
                                  IntArrayRef sizes,
                                  IntArrayRef strides,
                                  int64_t batch_dim = -1);
// The wrapper takes over what its value has become.
TAEDA_API void set_wrapped(const TensorBase& wrapper,
                           TensorBase value,
                           IntArrayRef sizes,
                           IntArrayRef strides,
                           int64_t batch_dim = -1);

// The levels of this thread, outermost first.
TAEDA_API ArrayRef<LevelPtr> levels();
// Whether a transform of taeda.func is among them.
TAEDA_API bool in_transform();
// Throws for a wrapper that cannot be used: its level has ended.
TAEDA_API void check_alive(const Wrapped& wrapped, std::string_view user);

TAEDA_API void push_level(LevelPtr level);
// Ends the innermost levels until `depth` are left.
TAEDA_API void pop_levels(size_t depth);

// Makes a level the innermost one; the destructor takes it away, with those
// that were left inside of it.
class LevelScope {
 public:
  explicit LevelScope(LevelPtr level) : depth_(levels().size()) {
    push_level(std::move(level));
  }
  ~LevelScope() { pop_levels(depth_); }
  LevelScope(const LevelScope&) = delete;
  LevelScope& operator=(const LevelScope&) = delete;

 private:
  size_t depth_;
};
// Inside, calls run as if `level` and the levels inside of it did not exist.
class TAEDA_API BelowLevel {
 public:
  explicit BelowLevel(const Level& level);
  ~BelowLevel();
  BelowLevel(const BelowLevel&) = delete;
  BelowLevel& operator=(const BelowLevel&) = delete;

 private:
  LocalStateGuard state_;
  std::vector<LevelPtr> hidden_;
};

// Symbols
// -----------------------------------------------------------------------

// Whether an integer among the arguments is a symbol.
TAEDA_API bool has_symbols(std::span<const IValue> values);
// Symbols among the integers become their hints, which is a guard.
TAEDA_API void fix_symbols(std::span<IValue> values);

// Stacks ----------------------------------------------------------------------

// The arguments of a call: the end of a stack.
inline std::span<IValue> arguments_on(const OperatorEntry& op, Stack& stack) {
  size_t count = op.info->arguments;
  return {stack.data() + (stack.size() - count), count};
}
// Calls f(TensorBase&) for every defined tensor of a value, lists included.
template <class F>
void each_tensor(IValue& v, F&& f) {
  if (v.is<TensorBase>()) {
    if (v.get<TensorBase>().defined()) f(v.get<TensorBase>());
  } else if (v.is<std::vector<TensorBase>>()) {
    for (TensorBase& t : v.get<std::vector<TensorBase>>()) {
      if (t.defined()) f(t);
    }
  } else if (v.is<std::vector<OptionalTensor>>()) {
    for (OptionalTensor& t : v.get<std::vector<OptionalTensor>>()) {
      if (t && t->defined()) f(*t);
    }
  }
}
template <class F>
void each_tensor(std::span<IValue> values, F&& f) {
  for (IValue& v : values) each_tensor(v, f);
}

// The keys of the tensors in a value.
DispatchKeySet keys_in(const IValue& v);
// Dispatches with the operator's arguments at the end of the stack.
TAEDA_API void call_operator(const OperatorEntry& op, Stack& stack);
// The same for arguments in hand; gives the results.
TAEDA_API Stack call_with(const OperatorEntry& op,
                          std::span<const IValue> arguments);
// Runs a composite's definition: what it calls is dispatched from the top.
TAEDA_API void run_composite(const OperatorEntry& op, Stack& stack);
// Runs a kernel's definition by other operators in the same way; false where
// the record has none.
TAEDA_API bool run_means(const OperatorEntry& op, Stack& stack);
// The argument whose memory result `index` shares; -1 if none.
TAEDA_API int viewed_argument(const OpInfo& info, size_t index);
// A composite that records no derivative of its own.
TAEDA_API bool is_transparent(const OperatorEntry& op);

// Called once when the library is loaded.
void register_level_kernels(Dispatcher& dispatcher);

}  // namespace taeda
