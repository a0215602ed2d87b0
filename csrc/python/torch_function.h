// __torch_function__: subclasses, foreign types and modes that take calls over.
#pragma once

#include <taeda/csrc/python/arg_parser.h>

namespace taeda::python {

struct OverrideState {
  bool subclasses_enabled = true;
  bool modes_enabled = true;
  int mode_depth = 0;
};
extern thread_local OverrideState override_state;

inline bool modes_active() {
  return override_state.mode_depth > 0 && override_state.modes_enabled;
}
// Whether an object that is no plain tensor takes calls over.
bool has_override(PyObject* o);
inline bool takes_over(PyObject* o) {
  return !is_plain_tensor(o) && has_override(o);
}
// The same for a method's own object.
inline bool overrides(PyObject* o) {
  return TAEDA_UNLIKELY(modes_active()) || takes_over(o);
}

// An object that takes the call over stands where none was expected.
struct OverriddenArgument {};
// `call()`, or `handed_over()` where one is met.
template <class F, class H>
PyObject* unless_overridden(F&& call, H&& handed_over) {
  return guarded([&] {
    try {
      return call();
    } catch (const OverriddenArgument&) {
      return handed_over();
    }
  });
}

// Hands a bound call to whoever overrides it.
PyObject* call_overridden(const Call& call);
// For a hand-written method or getter of a tensor: looks `name` up on Tensor.
PyObject* override_method(PyObject* self,
                          const char* name,
                          PyObject* const* args = nullptr,
                          Py_ssize_t count = 0,
                          PyObject* names = nullptr);
PyObject* override_getter(PyObject* self, const char* name);
int override_setter(PyObject* self, const char* name, PyObject* value);

// For a hand-written function of the module.
PyObject* override_function(const char* name, const Call& call);

}  // namespace taeda::python
