// Autocast: operators run in the dtypes that their records' policies ask for.
#pragma once

#include <taeda/aten/core/tensor_base.h>

#include <vector>

namespace taeda {

class Dispatcher;
class IValue;
struct OperatorEntry;

namespace autocast {

// Note [Autocast]
// While autocast is on for some kind of device, the key Autocast is among the
// thread's included keys. It lies above autograd, which records the casts, and
// levels ask it first (comes_first), so that they see cast arguments. Two sorts
// of operators answer it, which their entries say in `present`:
// - Those with a policy. The arguments of the functional form are cast; all
// forms
//   run with the key excluded: what they are made of is left alone.
// - Kernels, and composites with a derivative of their own, without a policy.
//   They run with the key excluded too, because their code counts on the dtypes
//   that it was given.
// A composite without a policy is seen through what it calls; formulas and
// views call nothing. The state is the thread's own, and so is the cache.

// RuntimeError for a device that autocast does not know (all functions below).
TAEDA_API bool is_available(DeviceType type);  // false instead of the error
TAEDA_API bool is_enabled(DeviceType type);
TAEDA_API void set_enabled(DeviceType type, bool on);
TAEDA_API ScalarType dtype_of(DeviceType type);
TAEDA_API void set_dtype(DeviceType type, ScalarType dtype);

// Casts of leaves that require grad are kept until the outermost scope ends, so
// that a weight used twice is cast once and its gradient summed in the small
// dtype.
TAEDA_API bool cache_enabled();
TAEDA_API void set_cache_enabled(bool on);
TAEDA_API void clear_cache();
// Both return the number of scopes that are open afterwards.
TAEDA_API int increment_nesting();
TAEDA_API int decrement_nesting();

// What is carried to a thread that continues the work of another.
struct Settings {
  uint32_t enabled = 0;  // bits by DeviceType
  bool cache_enabled = true;
  ScalarType dtypes[static_cast<int>(DeviceType::PrivateUse1) + 1] = {};
};
TAEDA_API const Settings& settings();
TAEDA_API void restore(const Settings& settings);

// Whether a level has to leave a call to the kernel of the key.
bool comes_first(const OperatorEntry& op, std::vector<IValue>& stack);

}  // namespace autocast

// Called once when the library is loaded.
void register_autocast_kernel(Dispatcher& dispatcher);

}  // namespace taeda
