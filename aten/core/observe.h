// Watching calls of operators, at no cost while nobody watches.
#pragma once

#include <taeda/aten/core/dispatcher.h>

#include <atomic>

namespace taeda::observe {

// Note [Observed calls]
// While there is an observer, the slots of all entries are empty and their
// kernels stand in a table beside them (kernel_at). Dispatch then takes the way
// of calls without a kernel, to the entry's adapter `to_boxed`, as it does for
// levels. From the first observer on that is an adapter which announces the
// call and runs the kernel with the arguments as they are. So a call without
// observer costs what it did before, one with an observer boxes nothing, and
// what runs is the same (other ways of watching set a key of the thread, which
// turns fused derivatives off).
// Every thread's calls are seen. The slots are written while other threads may
// read them: a thread sees either state, and both lead to the same kernel.
//
// An operator's call comes to the adapter again below autograd and below each
// level. It is announced once: a call of the operator that is the innermost
// announced one, at a lower key than the last, is the same call.

// Puts the value at an address on a stack.
using Push = void (*)(Stack& stack, const void* value);

struct Values {
  const void* const* at = nullptr;
  const Push* push = nullptr;
  size_t count = 0;
  TAEDA_API void push_to(Stack& stack) const;
  // Value i where its type is that of one tensor; null for others.
  TAEDA_API const TensorBase* tensor(size_t i) const;
};

struct Frame {
  const OperatorEntry* op = nullptr;
  Values arguments;
  Frame* outer = nullptr;  // of this thread
  DispatchKey key{};
  uint64_t token = 0;  // the observer's own
};

// Lives for ever: calls that are under way when it is taken away end later.
class TAEDA_API Observer {
 public:
  virtual ~Observer() = default;
  virtual void begins(Frame& frame) = 0;
  // Not called where the call throws. May throw.
  virtual void gives(Frame& frame, const Values& results);
  virtual void ends(Frame& frame) noexcept = 0;
};

// RuntimeError where there is one; `user` is named in it. Any thread may call.
TAEDA_API void set_observer(Observer& observer, std::string_view user);
TAEDA_API void clear_observer(const Observer& observer);

// The kernel in a slot, whether calls are observed or not.
TAEDA_API void* kernel_at(const OperatorEntry& op, DispatchKey key);
// What stands in the slot from now on, whether calls are observed or not.
void set_kernel(const OperatorEntry& op, DispatchKey key, void* kernel);

// One call of an adapter.
class TAEDA_API Call {
 public:
  Call(const OperatorEntry& op, DispatchKeySet keys, Values arguments);
  ~Call() {
    if (observer_ != nullptr) close();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // What has been taken out of the slot; null where nothing has.
  void* kernel() const { return kernel_; }
  bool is_seen() const { return observer_ != nullptr; }
  void gave(const void* result, Push push) {
    if (observer_ != nullptr) observer_->gives(frame_, {&result, &push, 1});
  }
  // In-place and out= forms: the results are arguments.
  void wrote();

 private:
  void close();
  void* kernel_ = nullptr;
  Observer* observer_ = nullptr;
  Frame frame_;
};

// The same for a call of an operator without adapter; `stack` has the arguments
// at its end, and then the results.
TAEDA_API void call_boxed_kernel(const OperatorEntry& op,
                                 DispatchKeySet keys,
                                 Stack& stack);

}  // namespace taeda::observe
