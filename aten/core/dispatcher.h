// One entry per operator overload: a slot per dispatch key.
#pragma once

#include <taeda/aten/core/tensor_base.h>

#include <atomic>
#include <memory>
#include <string_view>
#include <vector>

namespace taeda {

class IValue;
using Stack = std::vector<IValue>;
struct OperatorEntry;
struct OpInfo;

// A kernel that takes its arguments from a stack and leaves its results there.
struct BoxedKernel {
  virtual ~BoxedKernel() = default;
  virtual void call(const OperatorEntry& op,
                    DispatchKeySet keys,
                    Stack& stack) = 0;
};

// Answered for every operator, by the kernels of level.cpp, of the bindings and
// of both symbolic.cpp.
inline constexpr DispatchKeySet kLevelKeys{DispatchKey::Symbolic,
                                           DispatchKey::Python,
                                           DispatchKey::Wrapped,
                                           DispatchKey::SymbolicGrad,
                                           DispatchKey::Intercept};

// Note [Operator entries]
// Entries of the records are constant-initialised objects of the generated
// code; those of user libraries live on the heap. `present` has the keys with a
// kernel and, always, those of backends and levels, so that a feature key
// without kernel falls through at no cost, while a backend key without kernel
// is an error.
// `to_boxed` has the type R(*)(const OperatorEntry&, DispatchKeySet, A...) and
// puts the arguments on a stack for a boxed kernel; `from_stack` calls a
// function of the operator's type (the public one, a kernel) with arguments
// from a stack. Both are shared by all operators of the same C++ signature.
struct OperatorEntry {
  const char* name;
  const char* overload;
  const char* schema;
  const OpInfo* info;  // what the record says, see op_info.h
  void* to_boxed = nullptr;
  void (*from_stack)(const OperatorEntry&, void* function, Stack&) = nullptr;
  void* slots[kNumDispatchKeys] = {};
  BoxedKernel* boxed[kNumDispatchKeys] = {};
  uint64_t present = (kBackendKeys | kLevelKeys).bits();
  // The public entry: `R(*)(A...)`, computes keys and dispatches.
  void* public_function = nullptr;
  // Which arguments are the results of an in-place or out= operator.
  uint8_t written_first = 0;
  uint8_t written_count = 0;

  DispatchKey select(DispatchKeySet arguments) const {
    uint64_t keys =
        (arguments.bits() | local_state.included) & local_state.mask & present;
    return DispatchKeySet::raw(keys).highest();
  }
  void set(DispatchKey k, void* kernel) {
    slots[static_cast<int>(k)] = kernel;
    present |= DispatchKeySet(k).bits();
  }
  // "aten::add.Tensor"
  std::string qualified_name() const;
};

// NotImplementedError naming the operator and the backend.
[[noreturn]] TAEDA_API void no_kernel(const OperatorEntry& op,
                                      DispatchKeySet keys);

// The boxed kernel of the operator or of all operators; as no_kernel without.
TAEDA_API BoxedKernel& boxed_kernel(const OperatorEntry& op,
                                    DispatchKeySet keys);

// For calls whose arguments hold no tensor: an operator of lists alone runs on
// the CPU and says itself what it thinks of empty ones; others are an error.
TAEDA_API DispatchKeySet keys_without_tensors(const OperatorEntry& op);

template <class R, class... A>
inline R dispatch(const OperatorEntry& op, DispatchKeySet keys, A... args) {
  if (TAEDA_UNLIKELY(keys.empty())) keys = keys_without_tensors(op);
  DispatchKey k = op.select(keys);
  void* kernel = op.slots[static_cast<int>(k)];
  if (TAEDA_LIKELY(kernel != nullptr)) {
    return reinterpret_cast<R (*)(A...)>(kernel)(args...);
  }
  using Boxing = R (*)(const OperatorEntry&, DispatchKeySet, A...);
  return reinterpret_cast<Boxing>(op.to_boxed)(op, keys, args...);
}

// Key sets of arguments.
inline DispatchKeySet keys_of(const TensorBase& t) {
  return t.defined() ? t.keys() : DispatchKeySet();
}
inline DispatchKeySet keys_of(const OptionalTensor& t) {
  return t ? keys_of(*t) : DispatchKeySet();
}
inline DispatchKeySet keys_of(TensorBaseList list) {
  DispatchKeySet keys;
  for (const TensorBase& t : list) keys = keys | keys_of(t);
  return keys;
}
inline DispatchKeySet keys_of(ArrayRef<OptionalTensor> list) {
  DispatchKeySet keys;
  for (const OptionalTensor& t : list) keys = keys | keys_of(t);
  return keys;
}
// Of a factory function's `device` argument.
inline DispatchKeySet keys_of_device(const std::optional<Device>& d) {
  return backend_key((d ? *d : default_device()).type);
}

// Whether a call with this tensor gets to Python: the thread has a mode, or the
// tensor is of a class with __torch_dispatch__. What reads or makes memory past
// the dispatcher asks first.
inline bool meets_python(const TensorBase& t) {
  DispatchKeySet keys = keys_of(t) | DispatchKeySet::raw(local_state.included);
  return DispatchKeySet::raw(keys.bits() & local_state.mask)
      .has(DispatchKey::Python);
}

// All operators, in registration order and by name.
class TAEDA_API Dispatcher {
 public:
  static Dispatcher& get();
  void add(OperatorEntry* const* entries, size_t count);
  OperatorEntry* find(std::string_view name, std::string_view overload);
  const std::vector<OperatorEntry*>& all() const { return entries_; }
  // Called for every operator at `k` that has no kernel of its own there.
  void set_fallback(DispatchKey k, BoxedKernel* kernel);
  BoxedKernel* fallback(DispatchKey k) const {
    return fallbacks_[static_cast<int>(k)];
  }

 private:
  Dispatcher() = default;
  std::vector<OperatorEntry*> entries_;
  BoxedKernel* fallbacks_[kNumDispatchKeys] = {};
};

}  // namespace taeda
