// The parts of _C, in the order in which module.cpp adds them.
#pragma once

#include <taeda/csrc/python/common.h>

namespace taeda::python {

// At import. Each is a function init_NAME(module).
#define TAEDA_PARTS(_) \
  _(errors)            \
  _(torch_function)    \
  _(torch_dispatch)    \
  _(dtype)             \
  _(size)              \
  _(device)            \
  _(tensor_type)       \
  _(generator)         \
  _(storage)           \
  _(tensor_new)        \
  _(numpy)             \
  _(state)             \
  _(autograd_function) \
  _(autograd_nodes)    \
  _(autograd_hooks)    \
  _(autograd_engine)   \
  _(autograd_modes)
#define _(name) void init_##name(PyObject* module);
TAEDA_PARTS(_)
#undef _

// When _C is asked for a name that it does not have: what most programs never
// touch, for a bound function costs some 50 thousand instructions.
void bind_autograd_engine(PyObject* module);
void bind_torch_function(PyObject* module);
void bind_settings(PyObject* module);
void bind_return_types(PyObject* module);
void bind_autocast(PyObject* module);
void bind_torch_dispatch(PyObject* module);
void bind_symbolic(PyObject* module);
void bind_shared_memory(PyObject* module);

}  // namespace taeda::python
