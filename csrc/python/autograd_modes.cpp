// Context managers of grad and inference mode, in C because programs enter them
// often.
#include <taeda/csrc/python/autograd_common.h>

#include <structmember.h>
#include <cstddef>

namespace taeda::python {

namespace {
// `_C._GradMode(on)` switches when it is entered; `_C._InferenceMode(on)` too.
struct PyMode {
  PyObject_HEAD bool mode;
  bool entered;
  LocalState before;
};

PyMode* as_mode(PyObject* o) { return reinterpret_cast<PyMode*>(o); }

void mode_dealloc(PyObject* o) {
  PyTypeObject* type = Py_TYPE(o);
  type->tp_free(o);
  Py_DECREF(type);
}

PyObject* new_mode(PyTypeObject* type, bool mode) {
  PyObject* o = type->tp_alloc(type, 0);
  if (o != nullptr) as_mode(o)->mode = mode;
  return o;
}
template <bool On>
PyObject* fixed_mode_new(PyTypeObject* type, PyObject*, PyObject*) {
  return new_mode(type, On);
}
PyObject* mode_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  static const char* names[] = {"mode", nullptr};
  int mode = 1;
  if (!PyArg_ParseTupleAndKeywords(
          args, kwargs, "|p", const_cast<char**>(names), &mode)) {
    return nullptr;
  }
  return new_mode(type, mode != 0);
}

PyObject* enter_grad_mode(PyObject* o, PyObject*) {
  PyMode* self = as_mode(o);
  self->before.grad_enabled = grad_enabled();
  set_grad_enabled(self->mode);
  Py_RETURN_NONE;
}
PyObject* exit_grad_mode(PyObject* o, PyObject* const*, Py_ssize_t) {
  set_grad_enabled(as_mode(o)->before.grad_enabled);
  Py_RETURN_NONE;
}

PyObject* enter_inference(PyObject* o, PyObject*) {
  PyMode* self = as_mode(o);
  self->before = local_state;
  local_state.inference = self->mode;
  local_state.grad_enabled = !self->mode;
  local_state.fw_grad_enabled = !self->mode;
  local_state.refresh();
  Py_RETURN_NONE;
}
PyObject* exit_inference(PyObject* o, PyObject* const*, Py_ssize_t) {
  const LocalState& before = as_mode(o)->before;
  local_state.inference = before.inference;
  local_state.grad_enabled = before.grad_enabled;
  local_state.fw_grad_enabled = before.fw_grad_enabled;
  local_state.refresh();
  Py_RETURN_NONE;
}

PyMemberDef mode_members[] = {
    {"mode", T_BOOL, offsetof(PyMode, mode), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyMethodDef grad_methods[] = {
    {"__enter__", enter_grad_mode, METH_NOARGS, nullptr},
    {"__exit__",
     (PyCFunction)(void (*)(void))exit_grad_mode,
     METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr},
};
PyMethodDef inference_methods[] = {
    {"__enter__", enter_inference, METH_NOARGS, nullptr},
    {"__exit__",
     (PyCFunction)(void (*)(void))exit_inference,
     METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr},
};

void add_mode_type(PyObject* module,
                   const char* name,
                   newfunc make,
                   PyMethodDef* methods) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(make)},
      {Py_tp_dealloc, reinterpret_cast<void*>(mode_dealloc)},
      {Py_tp_members, mode_members},
      {Py_tp_methods, methods},
      {0, nullptr},
  };
  PyType_Spec spec = {
      name, sizeof(PyMode), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, slots};
  add_type(module, spec);
}
}  // namespace

void init_autograd_modes(PyObject* module) {
  add_mode_type(
      module, "taeda._C._NoGrad", fixed_mode_new<false>, grad_methods);
  add_mode_type(
      module, "taeda._C._EnableGrad", fixed_mode_new<true>, grad_methods);
  add_mode_type(module, "taeda._C._InferenceMode", mode_new, inference_methods);
}

// Everything of autograd, after the types and operators.
void init_autograd(PyObject* module);
void init_autograd(PyObject* module) {
  init_autograd_function(module);
  init_autograd_nodes(module);
  init_autograd_hooks(module);
  init_autograd_engine(module);
  init_autograd_modes(module);
}

}  // namespace taeda::python
