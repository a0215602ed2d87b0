// Grad and inference mode, by CPython's own means because programs switch them
// often.
#include <taeda/csrc/python/autograd_common.h>
#include <taeda/csrc/python/init.h>

namespace taeda::python {

namespace {
// `_C._GradMode(on)` switches when it is entered; `_C._InferenceMode(on)` too.
struct PyMode {
  PyObject_HEAD bool mode;
  LocalState before;
};

PyMode* as_mode(PyObject* o) { return reinterpret_cast<PyMode*>(o); }

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

// Inference mode, or grad mode alone.
template <bool Inference>
PyObject* enter(PyObject* o, PyObject*) {
  PyMode* self = as_mode(o);
  if constexpr (!Inference) {
    self->before.grad_enabled = grad_enabled();
    set_grad_enabled(self->mode);
    Py_RETURN_NONE;
  }
  self->before = local_state;
  local_state.inference = self->mode;
  local_state.grad_enabled = !self->mode;
  local_state.fw_grad_enabled = !self->mode;
  local_state.refresh();
  Py_RETURN_NONE;
}
template <bool Inference>
PyObject* leave(PyObject* o, PyObject* const*, Py_ssize_t) {
  const LocalState& before = as_mode(o)->before;
  if constexpr (!Inference) {
    set_grad_enabled(before.grad_enabled);
    Py_RETURN_NONE;
  }
  local_state.inference = before.inference;
  local_state.grad_enabled = before.grad_enabled;
  local_state.fw_grad_enabled = before.fw_grad_enabled;
  local_state.refresh();
  Py_RETURN_NONE;
}
template <bool Inference>
PyMethodDef context_methods[] = {
    {"__enter__", enter<Inference>, METH_NOARGS, nullptr},
    {"__exit__",
     (PyCFunction)(void (*)(void))leave<Inference>,
     METH_FASTCALL,
     nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMemberDef mode_members[] = {
    {"mode", T_BOOL, offsetof(PyMode, mode), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};
PyObject* get_grad_enabled(PyObject*, PyObject*) {
  return boolean(grad_enabled());
}
PyObject* set_grad_mode(PyObject*, PyObject* on) {
  if (!PyBool_Check(on)) {
    PyErr_Format(PyExc_TypeError,
                 "set_grad_enabled(): argument 'enabled' (position 1) must be "
                 "bool, not %s",
                 type_name_of(on));
    return nullptr;
  }
  set_grad_enabled(on == Py_True);
  Py_RETURN_NONE;
}
PyObject* get_inference(PyObject*, PyObject*) {
  return boolean(inference_mode());
}
PyMethodDef functions[] = {
    {"is_grad_enabled",
     get_grad_enabled,
     METH_NOARGS,
     "Whether calls are recorded for backward."},
    {"_set_grad_enabled", set_grad_mode, METH_O, nullptr},
    {"is_inference_mode_enabled",
     get_inference,
     METH_NOARGS,
     "Whether inference mode is on."},
    {nullptr, nullptr, 0, nullptr},
};

void add_mode_type(PyObject* module,
                   const char* name,
                   newfunc make,
                   PyMethodDef* methods) {
  PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(make)},
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
  add_mode_type(module,
                "taeda._C._NoGrad",
                fixed_mode_new<false>,
                context_methods<false>);
  add_mode_type(module,
                "taeda._C._EnableGrad",
                fixed_mode_new<true>,
                context_methods<false>);
  add_mode_type(
      module, "taeda._C._InferenceMode", mode_new, context_methods<true>);
  check_status(PyModule_AddFunctions(module, functions));
}

}  // namespace taeda::python
