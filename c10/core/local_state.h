// What a thread has switched on: dispatch keys, grad and inference mode,
// defaults for new tensors.
#pragma once

#include <taeda/c10/core/dispatch_key.h>
#include <taeda/c10/core/scalar_type.h>

namespace taeda {

// Note [Key mask]
// `mask` is what dispatch uses: all keys but the excluded ones, and without
// Autograd when grad mode is off. It is kept up to date by the setters, so that
// a call costs one load. Grad mode is not folded into `excluded`, because
// enable_grad inside no_grad must bring the key back, while a kernel that runs
// below autograd must not be recorded whatever grad mode says.
struct LocalState {
  uint64_t included = 0;
  uint64_t mask = ~uint64_t{0};
  uint64_t excluded = 0;
  bool grad_enabled = true;
  bool inference = false;
  bool fw_grad_enabled = true;
  bool multithreading_enabled = true;

  void refresh() {
    uint64_t off = excluded;
    if (!grad_enabled) off |= DispatchKeySet(DispatchKey::Autograd).bits();
    mask = ~off;
  }
};

extern TAEDA_API __attribute__((
    tls_model("initial-exec"))) constinit thread_local LocalState local_state;

inline bool grad_enabled() { return local_state.grad_enabled; }
inline void set_grad_enabled(bool on) {
  local_state.grad_enabled = on;
  local_state.refresh();
}
inline bool inference_mode() { return local_state.inference; }

// Restores the whole state; the guards below change one part of it.
class LocalStateGuard {
 public:
  LocalStateGuard() : saved_(local_state) {}
  explicit LocalStateGuard(const LocalState& state) : LocalStateGuard() {
    local_state = state;
  }
  LocalStateGuard(const LocalStateGuard&) = delete;
  LocalStateGuard& operator=(const LocalStateGuard&) = delete;
  ~LocalStateGuard() { local_state = saved_; }

 private:
  LocalState saved_;
};

class GradModeGuard {
 public:
  explicit GradModeGuard(bool on) : saved_(grad_enabled()) {
    set_grad_enabled(on);
  }
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;
  ~GradModeGuard() { set_grad_enabled(saved_); }

 private:
  bool saved_;
};

class ExcludeKeysGuard {
 public:
  explicit ExcludeKeysGuard(DispatchKeySet keys)
      : saved_(local_state.excluded) {
    local_state.excluded |= keys.bits();
    local_state.refresh();
  }
  ExcludeKeysGuard(const ExcludeKeysGuard&) = delete;
  ExcludeKeysGuard& operator=(const ExcludeKeysGuard&) = delete;
  ~ExcludeKeysGuard() {
    local_state.excluded = saved_;
    local_state.refresh();
  }

 private:
  uint64_t saved_;
};

class IncludeKeysGuard {
 public:
  explicit IncludeKeysGuard(DispatchKeySet keys)
      : saved_(local_state.included) {
    local_state.included |= keys.bits();
  }
  IncludeKeysGuard(const IncludeKeysGuard&) = delete;
  IncludeKeysGuard& operator=(const IncludeKeysGuard&) = delete;
  ~IncludeKeysGuard() { local_state.included = saved_; }

 private:
  uint64_t saved_;
};

// Inside, nothing is recorded: what a kernel's own calls need.
class BelowAutograd : ExcludeKeysGuard {
 public:
  BelowAutograd() : ExcludeKeysGuard(DispatchKey::Autograd) {}
};

class InferenceModeGuard : LocalStateGuard {
 public:
  explicit InferenceModeGuard(bool on) {
    local_state.inference = on;
    local_state.grad_enabled = !on;
    local_state.fw_grad_enabled = !on;
    local_state.refresh();
  }
};

// Process-wide defaults of new tensors.
TAEDA_API ScalarType default_dtype();
TAEDA_API void set_default_dtype(ScalarType t);
TAEDA_API Device default_device();
TAEDA_API void set_default_device(Device d);
inline ScalarType default_complex_dtype() {
  return complex_type_of(default_dtype());
}

}  // namespace taeda
